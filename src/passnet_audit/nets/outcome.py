"""The outcome of an audited case, and counts of outcomes by backend. It imports no torch."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Outcome: TypeAlias = Literal["wrong", "changed", "crashed", "refused", "served"]

OUTCOMES: tuple[Outcome, ...] = ("wrong", "changed", "crashed", "refused", "served")
"""All that an audit can find: results unlike eager PyTorch's; a net, arguments or a process that
the optimisation changed; an error that is no sentence, the end of the process, or a hang; no
backend for the example; a backend that is right on all calls.
"""

HARMLESS = "harmless"
"""The kind of nets that must get a fast backend."""

DEFAULT = "default"
"""The name of the default choice among the backends."""

LEAST_FASTER = 0.9
"""The least share of the harmless nets that the default choice makes faster."""


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The outcome of a case with one choice of backends."""

    case: str
    """The path of its file."""
    kind: str
    asked: str
    """The backend, or `default`."""
    outcome: Outcome
    reason: str = ""
    backend: str = "eager"
    """The backend that serves the example."""
    speedup: float | None = None
    """Over eager PyTorch."""
    is_faster: bool = False
    """True where the interval of the speedup lies above 1."""
    seconds: float = 0.0
    file_hash: str = ""
    """SHA-256 of the file; a resumed run audits a changed file again."""

    @property
    def is_right(self) -> bool:
        """True if the net is right, and served by a faster backend where it is harmless."""
        if self.kind == HARMLESS and self.asked == DEFAULT:
            return self.outcome == "served" and self.is_faster
        return self.outcome in ("refused", "served")


@dataclass(frozen=True, slots=True)
class BackendTotals:
    """The counts of an audit for one choice of backends."""

    asked: str
    outcomes: dict[Outcome, int]
    num_harmless: int
    num_faster: int
    """Harmless nets that are served by a backend faster than eager PyTorch."""


def totals(outcomes: Sequence[CaseOutcome]) -> list[BackendTotals]:
    """Count the outcomes of each choice of backends."""
    return [
        _totals(asked, [each for each in outcomes if each.asked == asked])
        for asked in dict.fromkeys(each.asked for each in outcomes)
    ]


def _totals(asked: str, outcomes: Iterable[CaseOutcome]) -> BackendTotals:
    counts: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
    num_harmless = num_faster = 0
    for each in outcomes:
        counts[each.outcome] += 1
        if each.kind == HARMLESS:
            num_harmless += 1
            num_faster += each.outcome == "served" and each.is_faster
    return BackendTotals(asked, counts, num_harmless, num_faster)


def complaints(outcomes: Sequence[CaseOutcome]) -> Iterator[str]:
    """Yield a sentence for each reason why an audit failed."""
    for total in totals(outcomes):
        bad = [f"{total.outcomes[name]} {name}" for name in OUTCOMES[:3] if total.outcomes[name]]
        if bad:
            yield f"{total.asked}: {', '.join(bad)}"
        is_judged = total.asked == DEFAULT and total.num_harmless
        if is_judged and total.num_faster < LEAST_FASTER * total.num_harmless:
            yield (
                f"{total.asked}: {total.num_faster} of {total.num_harmless} harmless nets get a "
                f"backend faster than eager PyTorch, fewer than {LEAST_FASTER:.0%}"
            )
