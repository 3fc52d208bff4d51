"""The judging and the printing that commands of `passnet library` share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passnet.cli.terminal.exits import fail
from passnet.cli.terminal.output import print_notes

if TYPE_CHECKING:
    from passnet.core.hardware import Hardware
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.settings import RunSettings
    from passnet.passes.library.entries import PassEntry
    from passnet.passes.library.store import PassLibrary, PassOrder, VerifiedPass

SHOWN_DIGITS = 12
"""Characters of a digest that are shown; fewer may name an entry."""


def judged(
    library: PassLibrary,
    orders: Sequence[PassOrder],
    plan: RunPlan,
    settings: RunSettings,
    sandbox: Sandbox,
) -> list[VerifiedPass]:
    """Judge passes and add each result to a library at once; show the progress."""
    from passnet.bench.cluster import device_of
    from passnet.bench.run import environment_here
    from passnet.core.jobs.actors import results_of
    from passnet.core.terminal.progress import progress
    from passnet.optimizer.choose.judging import pass_judge
    from passnet.passes.library.store import verify_library

    print_notes((), sandbox)
    settings = replace(settings, sandbox=sandbox.name)
    num_actors, device = plan.num_actors, device_of(settings)
    opener = partial(pass_judge, settings, environment_here(settings) if num_actors else None)
    with progress("judging passes", len(orders)) as step:

        def judge(orders: Sequence[PassOrder]) -> Iterator[Any]:
            return results_of(orders, opener, num_actors, device)

        def report(verified: VerifiedPass) -> None:
            step(verified.entry.digest[:SHOWN_DIGITS])

        return verify_library(library, orders, judge, judging_hardware(settings), report)


def judging_hardware(settings: RunSettings) -> Hardware:
    """Return the hardware that passes are judged on with some settings."""
    from passnet.core.hardware import this_hardware

    return this_hardware(settings.num_threads, settings.judge.device)


def facts(entry: PassEntry) -> dict[str, Any]:
    """Return the facts that --json prints of an entry."""
    names = ("digest", "range", "ops", "forms", "hardware", "author", "code_hash", "origin",
             "judged", "passnet", "status", "error", "speedup", "speedup_low", "speedup_high",
             "reference_ms", "candidate_ms", "saved_ms")  # fmt: skip
    return {name: getattr(entry, name) for name in names}


def row(entry: PassEntry) -> tuple[str, ...]:
    """Return the cells of an entry in the table of a library."""
    times = (entry.reference_ms, entry.candidate_ms)
    eager_ms, pass_ms = ("–" if each is None else f"{each:.4f}" for each in times)
    origin = "" if entry.origin == "here" else " (elsewhere)"
    return (
        entry.digest[:SHOWN_DIGITS],
        " ".join(op.rsplit(".", 1)[-1] for op in entry.ops),
        ", ".join(entry.forms),
        entry.author,
        eager_ms,
        pass_ms,
        interval(entry),
        f"{entry.saved_ms:.4f}",
        entry.status,
        entry.hardware.text + origin,
    )


def interval(entry: PassEntry) -> str:
    """Return the 95 % interval of a speedup, or a dash."""
    if entry.speedup_low is None or entry.speedup_high is None:
        return "–"
    return f"{entry.speedup_low:.2f} – {entry.speedup_high:.2f}"


def verified_facts(verified: VerifiedPass) -> dict[str, Any]:
    """Return the facts that --json prints of a pass that was judged again."""
    return {
        "before": facts(verified.entry),
        "after": facts(verified.after) if verified.after else None,
        "is_used": verified.is_used,
        "error": verified.error,
    }


def verified_lines(results: Sequence[VerifiedPass]) -> list[str]:
    """Return a line for each pass that was judged again, and their number."""
    used = sum(verified.is_used for verified in results)
    return [*map(_verified_line, results), f"{used} of {len(results)} passes are used here"]


def _verified_line(verified: VerifiedPass) -> str:
    name = verified.entry.digest[:SHOWN_DIGITS]
    if verified.after is None:
        return f"{name}: not judged: {verified.error}"
    reason = f": {verified.error}" if verified.error else ""
    return (
        f"{name}: {verified.entry.status} before, {verified.after.status} here, speedup "
        f"{interval(verified.after)}{reason}"
    )


def fail_if_wrong(source: Path, results: Sequence[VerifiedPass]) -> None:
    """Exit with 1 if a pass won before and is wrong here."""
    wrong = [verified.entry.digest[:SHOWN_DIGITS] for verified in results if verified.is_wrong]
    if wrong:
        fail(f"{source}: {', '.join(wrong)} won before, and are wrong here; see above")
