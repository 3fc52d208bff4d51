"""An audit of `passnet.optimize`: counts by backend, and each case that is not right."""

from collections.abc import Sequence
from pathlib import Path

from passnet.pages.tables.tables import Table
from passnet_audit.nets.outcome import OUTCOMES, CaseOutcome, totals


def audit_table(outcomes: Sequence[CaseOutcome]) -> Table:
    """Return a row of counts for each choice of backends."""
    rows: list[tuple[str, ...]] = [
        (
            total.asked,
            *(str(total.outcomes[name]) for name in OUTCOMES),
            f"{total.num_faster} of {total.num_harmless}",
        )
        for total in totals(outcomes)
    ]
    return Table(
        "Nets",
        ("backend", *OUTCOMES, "harmless and faster"),
        rows,
        "wrong: results unlike eager PyTorch's. changed: the net, its arguments or the process. "
        "crashed: an error that is no sentence, the end of the process, or a hang. harmless and "
        "faster: harmless nets served by a backend faster than eager PyTorch.",
    )


def audit_lines(outcomes: Sequence[CaseOutcome], width: int) -> list[str]:
    """Return a line for each case that is not right, with its reason, at most so wide."""
    return [_line(each, width) for each in outcomes if not each.is_right]


def _line(outcome: CaseOutcome, width: int) -> str:
    path = Path(outcome.case)
    name = f"{path.parent.name}/{path.name}" if path.parent.name else path.name
    reason = outcome.reason
    if outcome.outcome == "served":
        gain = "" if outcome.speedup is None else f", {outcome.speedup:.2f} times as fast as eager"
        reason = f"no faster by {outcome.backend}{gain}"
    line = f"{outcome.asked}: {outcome.outcome}: {name}" + (f": {reason}" if reason else "")
    return line if len(line) <= width else f"{line[: width - 1]}…"
