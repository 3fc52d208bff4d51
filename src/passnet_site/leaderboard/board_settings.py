"""The settings that the runs of one board have in common."""

from collections.abc import Iterator
from dataclasses import fields, replace

from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan

_FREE = (
    "seed", "limits", "compile_timeout_s", "call_timeout_s", "trial_timeout_s",
    "self_tolerance", "max_repeats",
)  # fmt: skip
"""Settings of the judge that runs of one board need not share: they decide whether a trial ends, or
is measured again, and not what it is compared with."""


def board_settings(given: RunSettings) -> RunSettings:
    """Return the judge's own settings on the board of a run.

    The run decides device, rules, memory order, threads, held-out shapes, and the time of a
    measurement.
    """
    judge, timing = given.judge, given.judge.timing
    own = JudgeSettings(
        device=judge.device,
        rules=judge.rules,
        strides=judge.strides,
        timing=None if timing is None else TimingPlan(timing.seconds),
    )
    return RunSettings(own, given.num_threads, given.sandbox, given.held_out)


def shared_settings(given: RunSettings) -> RunSettings:
    """Return the settings of a run with the judge's own where runs of one board may differ."""
    own = JudgeSettings()
    free = {name: getattr(own, name) for name in _FREE}
    return replace(given, judge=replace(given.judge, **free), sandbox="none")


def changed_settings(given: RunSettings) -> Iterator[str]:
    """Yield the settings of a run's judge that differ from its board's, with values."""
    own, found = board_settings(given).judge, shared_settings(given).judge
    for here, there in ((found, own), (found.timing, own.timing)):
        for each in fields(here) if here is not None and there is not None else ():
            value = getattr(here, each.name)
            if each.name != "timing" and value != getattr(there, each.name):
                yield f"{each.name} ({value})"
