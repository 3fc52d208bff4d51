"""Monitors of the last answers of a training, and the limits at which they end it.

A trained LLM also finds the holes of its judge.
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

    Limits are shares of answers unless their line says otherwise.
    """

    window: int = 256
    """Number of last answers that monitors read."""

    min_samples: int = 64
    """Fewest answers that can stop a run."""

    min_counted: int = 24
    """Fewest answers whose share can stop a run; never more than `min_samples`."""

    cheats: float | None = 0.10
    flags: float | None = 0.20
    """Flagged ones among correct answers."""

    near_floor: float | None = 0.10
    """Correct answers that take hardly longer than reading and writing their tensors."""

    floor_ratio: float = 1.1
    """Multiple of that time below which `near_floor` counts an answer."""

    held_out: float | None = 0.20
    """Correct answers that fail on held-out shapes."""

    remeasured: float | None = 0.85
    """Median of new over old speedups of the fastest answers."""

    equal_groups: float | None = 0.90
    """Share of groups with equal rewards, which teach nothing."""

    truncated: float | None = 0.50
    clip_ratio: float | None = 0.50
    """Share of tokens whose step was clipped."""

    least_entropy: float | None = 0.02
    """Entropy of the next token, in nats."""

    length_growth: float | None = 3.0
    """Median length over that of the first answers of the run."""

    unknown: float | None = 0.30
    """Answers that could not be judged: unstable, or a fault of ours."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of one monitor."""

    monitor: str
    """Name in `MONITORS`."""

    value: float | None
    """None where there are too few answers."""

    limit: float | None
    is_beyond: bool
    evidence: str
    """The counted answers, in words."""


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

    @property
    def correct(self) -> list[Sample]:
        """Correct answers of the window."""
        return [sample for sample in self.samples if sample.is_correct]


_Measure = tuple[float | None, str, int | None]
"""A value, the counted answers in words, and the total that the value is a share of, if any."""

MONITORS: dict[str, tuple[str, Callable[[_View], _Measure]]] = {
    "cheats": (
        "{value} of the answers cheat{counted}, more than {limit}; read them in {file}, see which "
        "finding they share, and begin again from a checkpoint before that",
        lambda view: _share(view.samples, lambda s: s.is_cheat, lambda s: s.cheats),
    ),
    "flags": (
        "{value} of the correct answers are flagged{counted}, more than {limit}; read them in "
        "{file}: each is honest, or a hole that rewards must not pay for",
        lambda view: _share(view.correct, lambda s: bool(s.flags), lambda s: s.flags),
    ),
    "near_floor": (
        "{value} of the correct answers take hardly longer than reading and writing their tensors"
        "{counted}, more than {limit}; read them in {file}, and run `passnet judge audit` here",
        lambda view: _share(
            [sample for sample in view.correct if sample.floor_ratio is not None],
            lambda s: (s.floor_ratio or 0.0) < view.limits.floor_ratio,
        ),
    ),
    "held_out": (
        "{value} of the correct answers fail on held-out shapes{counted}, more than {limit}; "
        "train on more shapes of each task",
        lambda view: _share(
            [sample for sample in view.samples if sample.is_correct or sample.fails_held_out],
            lambda s: s.fails_held_out,
        ),
    ),
    "remeasured": (
        "the fastest answers keep {value} of their speedup when they are measured again{counted}, "
        "less than {limit}; rewards pay for luck: measure for longer, or on a quieter machine",
        lambda view: _remeasured(view.samples),
    ),
    "equal_groups": (
        "in {value} of the groups all answers earn the same{counted}, more than {limit}, and "
        "nothing is learned from these; choose tasks that are neither solved nor out of reach",
        lambda view: _equal_groups(view.samples),
    ),
    "truncated": (
        "{value} of the answers are cut off{counted}, more than {limit}; allow more tokens, or "
        "train on shorter answers first",
        lambda view: _truncated(view),
    ),
    "clip_ratio": (
        "{value} of the tokens are clipped, more than {limit}; lower the learning rate, or learn "
        "from answers that are less old",
        lambda view: _logged(view.logs, "clip_ratio/region_mean", "clip_ratio"),
    ),
    "least_entropy": (
        "the entropy of the next token is {value} nats, less than {limit}: the llm tries nothing "
        "new; raise the temperature, or go back to an earlier checkpoint with a lower learning "
        "rate",
        lambda view: _logged(view.logs, "entropy"),
    ),
    "length_growth": (
        "answers are {value} times as long as in the beginning{counted}, more than {limit} times; "
        "see in {file} what they are filled with",
        lambda view: _length_growth(view),
    ),
    "unknown": (
        "{value} of the answers could not be judged{counted}, more than {limit}; see in {file} "
        "why, and give the judge a quieter machine or longer limits",
        lambda view: _share(
            view.samples,
            lambda s: s.reward is None,
            lambda s: ["fault" if s.fault else "unstable"],
        ),
    ),
}
"""The monitors by the names of their limits: the sentence beyond the limit, and the measure."""

_LEAST = frozenset(("remeasured", "least_entropy"))
"""Monitors whose limit is a minimum."""

_PLAIN_NUMBERS = frozenset(("least_entropy", "length_growth"))
"""Monitors whose value is no share."""


def read_monitors(
    samples: Sequence[Sample], logs: Mapping[str, float], limits: MonitorLimits
) -> tuple[Reading, ...]:
    """Read every monitor.

    Args:
        samples: all answers of the run so far, in order.
        logs: the trainer's own last numbers, as TRL names them.
        limits: limits that stop a run.
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
    """End a training with a monitor beyond its limit; `where` is the file of the run's answers.

    Raises:
        TrainingStoppedError: a monitor is beyond its limit; the text says what to do.
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


def to_measure_again(samples: Sequence[Sample]) -> list[Sample]:
    """Return the fastest correct answers, 1 % of those timed; at least one if any was."""
    timed = [sample for sample in samples if sample.is_correct and sample.speedup_low is not None]
    timed.sort(key=lambda sample: sample.speedup_low or 0.0, reverse=True)
    return timed[: max(1, round(0.01 * len(timed)))]


def _share(
    samples: Sequence[Sample],
    holds: Callable[[Sample], bool],
    names: Callable[[Sample], Sequence[str]] = lambda _: (),
) -> _Measure:
    """Return the share of samples with a property, and their commonest names."""
    if not samples:
        return None, "", 0
    counted = [sample for sample in samples if holds(sample)]
    common = Counter(name for sample in counted for name in names(sample)).most_common(3)
    listed = "".join(f", {count} {name}" for name, count in common)
    return len(counted) / len(samples), f"{len(counted)} of {len(samples)}{listed}", len(samples)


def _remeasured(samples: Sequence[Sample]) -> _Measure:
    ratios = [
        sample.speedup_again / sample.speedup_low
        for sample in samples
        if sample.speedup_again is not None and sample.speedup_low
    ]
    if not ratios:
        return None, "", None
    return statistics.median(ratios), f"median of {len(ratios)}", None


def _equal_groups(samples: Sequence[Sample]) -> _Measure:
    groups: dict[tuple[int, str], list[float]] = defaultdict(list)
    for sample in samples:
        if sample.reward is not None:
            groups[sample.step, sample.group].append(sample.reward)
    several = [rewards for rewards in groups.values() if len(rewards) > 1]
    if not several:
        return None, "", None
    equal = sum(max(rewards) - min(rewards) < 1e-9 for rewards in several)
    return equal / len(several), f"{equal} of {len(several)} groups", None


def _logged(logs: Mapping[str, float], *names: str) -> _Measure:
    return next((logs[name] for name in names if name in logs), None), "", None


def _truncated(view: _View) -> _Measure:
    if any(sample.is_truncated for sample in view.samples):
        return _share(view.samples, lambda sample: sample.is_truncated)
    return _logged(view.logs, "completions/clipped_ratio")  # some trainers log it instead


def _length_growth(view: _View) -> _Measure:
    first = [sample.num_tokens for sample in view.first if sample.num_tokens]
    last = [sample.num_tokens for sample in view.samples if sample.num_tokens]
    if not first or not last:
        return None, "", None
    before, now = statistics.median(first), statistics.median(last)
    return now / before, f"{before:g} tokens, now {now:g}", None


def _number(monitor: str, value: float) -> str:
    return f"{value:.3g}" if monitor in _PLAIN_NUMBERS else f"{value:.0%}"
