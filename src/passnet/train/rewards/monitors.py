"""Monitors of a training by rewards, and the limits at which they end it.

An LLM that is rewarded also finds the holes of its judge. A monitor reads the last answers of a run
(`samples`). Beyond its limit the run stops with a sentence that says why.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from passnet.errors import TrainingStoppedError
from passnet.train.rewards.samples import Sample

MONITORS_FILE = "monitors.jsonl"


@dataclass(frozen=True, slots=True)
class MonitorLimits:
    """Limits that stop a run; None only shows the reading.

    Args:
        window: over how many answers each monitor looks, the last ones.
        min_samples: fewer say nothing, and stop nothing.
        min_counted: a share of fewer answers is shown, and stops nothing: all answers to one prompt
            may share a flag; never more than `min_samples`.
        cheats: share of answers that the judge proves to cheat.
        flags: share with a flag, of those that are correct.
        near_floor: share of correct answers that take less than `floor_ratio` times what this
            machine needs at least to read the arguments and write the results.
        floor_ratio: see `near_floor`.
        held_out: share of correct answers that fail on shapes that were held out.
        remeasured: how far the fastest answers may fall when they are measured again: the median of
            their new speedup over the old.
        equal_groups: share of groups in which all answers earn the same, from which nothing is
            learned.
        truncated: share of answers that were cut off at the most tokens.
        clip_ratio: share of tokens whose step was clipped.
        least_entropy: of the llm's next token, in nats.
        length_growth: the median length of the window over that of the first answers of the run.
        unknown: share of answers that could not be judged: unstable, or our own fault.
    """

    window: int = 256
    min_samples: int = 64
    min_counted: int = 24
    cheats: float | None = 0.10
    flags: float | None = 0.20
    near_floor: float | None = 0.10
    floor_ratio: float = 1.1
    held_out: float | None = 0.20
    remeasured: float | None = 0.85
    equal_groups: float | None = 0.90
    truncated: float | None = 0.50
    clip_ratio: float | None = 0.50
    least_entropy: float | None = 0.02
    length_growth: float | None = 3.0
    unknown: float | None = 0.30


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of one monitor.

    Args:
        monitor: its name in `MONITORS`.
        value: what it measures; None where there is too little to say.
        limit: from which on it stops the run; None where it only shows.
        is_beyond: whether it does.
        evidence: what was counted, in words.
    """

    monitor: str
    value: float | None
    limit: float | None
    is_beyond: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class MonitorRecord:
    """The readings of all monitors at one step of the training."""

    step: int
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class _View:
    """The data of monitors: the window, the run's first answers, the trainer's last logs."""

    samples: Sequence[Sample]
    first: Sequence[Sample]
    logs: Mapping[str, float]
    limits: MonitorLimits


_Seen = tuple[float | None, str, int | None]
"""A value, what was counted, and of how many answers it is a share; None where it is none."""

MONITORS: dict[str, tuple[str, Callable[[_View], _Seen]]] = {
    "cheats": (
        "{value} of the answers cheat{counted}, more than {limit}; read them in {file}, see which "
        "finding they share, and begin again from a checkpoint before that",
        lambda view: _share(view.samples, lambda each: each.is_cheat, _cheat_names),
    ),
    "flags": (
        "{value} of the correct answers are flagged{counted}, more than {limit}; read them in "
        "{file}: "
        "each is honest, or a hole that rewards must not pay for",
        lambda view: _share(_correct(view), lambda each: bool(each.flags), _flag_names),
    ),
    "near_floor": (
        "{value} of the correct answers take hardly longer than reading and writing their tensors"
        "{counted}, more than {limit}; read them in {file}, and run `passnet judge audit` here",
        lambda view: _share(
            [each for each in _correct(view) if each.floor_ratio is not None],
            lambda each: (each.floor_ratio or 0.0) < view.limits.floor_ratio,
        ),
    ),
    "held_out": (
        "{value} of the correct answers fail on held-out shapes{counted}, more than {limit}; "
        "train on "
        "more shapes of each task",
        lambda view: _share(
            [each for each in view.samples if each.is_correct or each.fails_held_out],
            lambda each: each.fails_held_out,
        ),
    ),
    "remeasured": (
        "the fastest answers keep {value} of their speedup when they are measured "
        "again{counted}, less "
        "than {limit}; rewards pay for luck: measure for longer, or on a quieter machine",
        lambda view: _remeasured(view.samples),
    ),
    "equal_groups": (
        "in {value} of the groups all answers earn the same{counted}, more than {limit}, and "
        "nothing "
        "is learned from these; choose tasks that are neither solved nor out of reach",
        lambda view: _equal_groups(view.samples),
    ),
    "truncated": (
        "{value} of the answers are cut off{counted}, more than {limit}; allow more tokens, or "
        "train "
        "on shorter answers first",
        lambda view: _truncated(view),
    ),
    "clip_ratio": (
        "{value} of the tokens are clipped, more than {limit}; lower the learning rate, or "
        "learn from "
        "answers that are less old",
        lambda view: _logged(view.logs, "clip_ratio/region_mean", "clip_ratio"),
    ),
    "least_entropy": (
        "the entropy of the next token is {value} nats, less than {limit}: the llm tries "
        "nothing new; "
        "raise the temperature, or go back to an earlier checkpoint with a lower learning rate",
        lambda view: _logged(view.logs, "entropy"),
    ),
    "length_growth": (
        "answers are {value} times as long as in the beginning{counted}, more than {limit} "
        "times; see "
        "in {file} what they are filled with",
        lambda view: _length_growth(view),
    ),
    "unknown": (
        "{value} of the answers could not be judged{counted}, more than {limit}; see in {file} "
        "why, and "
        "give the judge a quieter machine or longer limits",
        lambda view: _share(view.samples, lambda each: each.reward is None, _fault_names),
    ),
}
"""The monitors by the names of their limits: the sentence beyond the limit, and the measure."""

_LEAST = frozenset(("remeasured", "least_entropy"))
"""Monitors whose limit is the least that may be, and not the most."""

_PLAIN_NUMBERS = frozenset(("least_entropy", "length_growth"))
"""Monitors whose value is no share."""


def read_monitors(
    samples: Sequence[Sample], logs: Mapping[str, float], limits: MonitorLimits
) -> tuple[Reading, ...]:
    """Read every monitor.

    Args:
        samples: all answers of the run so far, in order.
        logs: the last value of each of the trainer's own numbers, as TRL names them.
        limits: when a run is stopped.
    """
    window = samples[-limits.window :]
    view = _View(window, samples[: limits.min_samples], logs, limits)
    readings = []
    for name, (_, measure) in MONITORS.items():
        value, evidence, num_counted = measure(view)
        limit: float | None = getattr(limits, name)
        is_beyond = False
        least = min(limits.min_counted, limits.min_samples)
        is_enough = num_counted is None or num_counted >= least
        is_enough = is_enough and len(window) >= limits.min_samples
        if value is not None and limit is not None and is_enough:
            is_beyond = value < limit if name in _LEAST else value > limit
        readings.append(Reading(name, value, limit, is_beyond, evidence))
    return tuple(readings)


def stop_if_beyond(record: MonitorRecord, where: str) -> None:
    """End a training whose monitors are beyond their limits.

    Args:
        record: the readings.
        where: file of the run's answers.

    Raises:
        TrainingStoppedError: one is; the text says what was seen, the limit, and what to do.
    """
    sentences = []
    for reading in record.readings:
        if reading.is_beyond and reading.value is not None and reading.limit is not None:
            value, limit = (_number(reading.monitor, n) for n in (reading.value, reading.limit))
            counted = f" ({reading.evidence})" if reading.evidence else ""
            text = MONITORS[reading.monitor][0]
            sentences.append(text.format(value=value, limit=limit, counted=counted, file=where))
    if sentences:
        raise TrainingStoppedError(f"stopped at step {record.step}: {'. Also: '.join(sentences)}")


def monitor_rows(record: MonitorRecord) -> list[tuple[str, str, str, str]]:
    """Return a table row for each reading: name, value, limit and evidence."""
    rows = []
    for reading in record.readings:
        name = reading.monitor
        value = "–" if reading.value is None else _number(name, reading.value)
        limit = "–" if reading.limit is None else _number(name, reading.limit)
        sign = "≥" if name in _LEAST else "≤"
        mark = " BEYOND" if reading.is_beyond else ""
        rows.append((name, value + mark, f"{sign} {limit}", reading.evidence))
    return rows


def to_measure_again(samples: Sequence[Sample], share: float = 0.01) -> list[Sample]:
    """Return the fastest correct answers, a share of those timed; at least one if any was."""
    timed = [each for each in samples if each.is_correct and each.speedup_low is not None]
    timed.sort(key=lambda each: each.speedup_low or 0.0, reverse=True)
    return timed[: max(1, round(share * len(timed)))]


def _correct(view: _View) -> list[Sample]:
    return [each for each in view.samples if each.is_correct]


def _share(
    samples: Sequence[Sample],
    holds: Callable[[Sample], bool],
    names: Callable[[Sample], Sequence[str]] = lambda _: (),
) -> _Seen:
    """Return the share of samples with a property, and their commonest names."""
    if not samples:
        return None, "", 0
    found = [each for each in samples if holds(each)]
    common = Counter(name for each in found for name in names(each)).most_common(3)
    listed = "".join(f", {count} {name}" for name, count in common)
    return len(found) / len(samples), f"{len(found)} of {len(samples)}{listed}", len(samples)


def _cheat_names(sample: Sample) -> Sequence[str]:
    return sample.cheats


def _flag_names(sample: Sample) -> Sequence[str]:
    return sample.flags


def _fault_names(sample: Sample) -> Sequence[str]:
    return ["fault" if sample.fault else "unstable"]


def _remeasured(samples: Sequence[Sample]) -> _Seen:
    ratios = [
        each.speedup_again / each.speedup_low
        for each in samples
        if each.speedup_again is not None and each.speedup_low
    ]
    if not ratios:
        return None, "", None
    return statistics.median(ratios), f"median of {len(ratios)}", None


def _equal_groups(samples: Sequence[Sample]) -> _Seen:
    groups: dict[tuple[int, str], list[float]] = defaultdict(list)
    for each in samples:
        if each.reward is not None:
            groups[each.step, each.group].append(each.reward)
    several = [rewards for rewards in groups.values() if len(rewards) > 1]
    if not several:
        return None, "", None
    equal = sum(max(rewards) - min(rewards) < 1e-9 for rewards in several)
    return equal / len(several), f"{equal} of {len(several)} groups", None


def _logged(logs: Mapping[str, float], *names: str) -> _Seen:
    value = next((logs[name] for name in names if name in logs), None)
    return value, "", None


def _truncated(view: _View) -> _Seen:
    if any(each.is_truncated for each in view.samples):
        return _share(view.samples, lambda each: each.is_truncated)
    return _logged(
        view.logs, "completions/clipped_ratio"
    )  # a trainer may know, and the answers not


def _length_growth(view: _View) -> _Seen:
    first = [each.num_tokens for each in view.first if each.num_tokens]
    last = [each.num_tokens for each in view.samples if each.num_tokens]
    if not first or not last:
        return None, "", None
    before, now = statistics.median(first), statistics.median(last)
    return now / before, f"{before:g} tokens, now {now:g}", None


def _number(monitor: str, value: float) -> str:
    return f"{value:.3g}" if monitor in _PLAIN_NUMBERS else f"{value:.0%}"
