"""The study of a training: the rewards of its answers step by step, and its monitors."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from passnet.core.jobs.run_folder import last_records
from passnet.core.records.serialise import has_lines, read_lines
from passnet.errors import InputError
from passnet.pages.figures.study_page import Study, StudyFigure, StudyPage, write_study
from passnet.pages.figures.styles import line_style, new_figure
from passnet.pages.tables.cells import formatted, number
from passnet.pages.tables.tables import Table
from passnet.train.rewards.monitors import MONITORS, MONITORS_FILE, MonitorRecord, monitor_rows
from passnet.train.rewards.samples import SAMPLES_FILE, Sample

REWARDS_FIGURE = "rewards.svg"
MAX_ROWS = 40
"""Steps in a table of the page; more are thinned evenly, and the last is shown."""


def write_run_page(folder: Path) -> None:
    """Write the study of a training into its folder.

    Raises:
        InputError: the folder holds no answers, or cannot be written to.
    """
    write_study(folder, training_study(folder))


def training_study(folder: Path) -> Study:
    """Return the study of a training from its answers and its monitors.

    Args:
        folder: of the run, with `samples.jsonl` and, once the trainer has logged, `monitors.jsonl`.

    Raises:
        InputError: the folder holds no answers.
    """
    samples = list(
        last_records(folder / SAMPLES_FILE, Sample, lambda sample: sample.number).values()
    )
    if not samples:
        raise InputError(f"{folder / SAMPLES_FILE}: holds no answers; train for a step first")
    path = folder / MONITORS_FILE
    records = list(read_lines(path, MonitorRecord, skip_torn=True)) if has_lines(path) else []
    by_step: dict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_step[sample.step].append(sample)
    steps = {step: by_step[step] for step in sorted(by_step)}
    stopped: list[str] = []
    tables = [_steps_table(steps)]
    if records:
        stopped = [reading.monitor for reading in records[-1].readings if reading.is_beyond]
        tables += [monitors_table(records[-1]), _readings_table(records)]
    name = folder.resolve().name
    page = StudyPage(
        title=f"Training: {name}",
        finding=_finding(samples, stopped),
        paragraphs=_paragraphs(samples),
        tables=tuple(tables),
        figures=(StudyFigure(REWARDS_FIGURE, "Mean reward of a step, and shares of its answers."),),
    )
    return Study(name, page, {REWARDS_FIGURE: partial(_draw, steps)})


def monitors_table(record: MonitorRecord) -> Table:
    """Return the readings of the monitors at one step as a table."""
    heads = ("monitor", "seen", "limit", "counted")
    return Table(f"Monitors at step {record.step}", heads, [*monitor_rows(record)])


def _finding(samples: Sequence[Sample], stopped: Sequence[str]) -> str:
    cheats = sum(sample.is_cheat for sample in samples)
    correct = sum(sample.is_correct for sample in samples)
    share = correct / len(samples)
    text = f"{len(samples):,} answers, {share:.0%} of them correct, {cheats} cheats"
    return f"{text}; stopped by {', '.join(stopped)}." if stopped else f"{text}."


def _paragraphs(samples: Sequence[Sample]) -> tuple[str, ...]:
    names = Counter(name for sample in samples for name in sample.cheats).most_common()
    statuses = Counter(status for sample in samples for status in sample.statuses).most_common()
    unknown = sum(sample.reward is None for sample in samples)
    outcomes = ", ".join(f"{status} {count}" for status, count in statuses)
    lines = [f"Outcomes of the answers by graph: {outcomes or 'nothing was judged'}."]
    if names:
        counts = ", ".join(f"{name} {count}" for name, count in names)
        files = f"Their files are in {SAMPLES_FILE}."
        lines.append(f"Findings that rejected answers: {counts}. {files}")
    if right := sum(sample.is_right_where_run for sample in samples):
        share = right / len(samples)
        lines.append(f"Right where their loops were run, and not judged: {right:,} ({share:.0%}).")
    if unknown:
        lines.append(f"Not judged, and without effect on the LLM: {unknown}.")
    return tuple(lines)


def _steps_table(steps: Mapping[int, Sequence[Sample]]) -> Table:
    heads = ("step", "answers", "mean reward", "correct", "cheats", "flagged", "not judged")
    rows = [
        (
            str(step),
            str(len(answers)),
            number(_mean_reward(answers)),
            *(f"{_share(answers, name):.0%}" for name in ("is_correct", "is_cheat", "flags")),
            str(sum(sample.reward is None for sample in answers)),
        )
        for step, answers in steps.items()
    ]
    return Table("Answers by step", heads, _thinned([*rows]))


def _readings_table(records: Sequence[MonitorRecord]) -> Table:
    rows = []
    for record in records:
        values = {reading.monitor: reading.value for reading in record.readings}
        rows.append((str(record.step), *(formatted(values.get(x), ".3g") for x in MONITORS)))
    return Table("Monitors by step", ("step", *MONITORS), _thinned([*rows]))


def _thinned(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    step = -(-len(rows) // MAX_ROWS)
    return rows[:-1:step] + rows[-1:]


def _mean_reward(answers: Sequence[Sample]) -> float | None:
    rewards = [sample.reward for sample in answers if sample.reward is not None]
    return sum(rewards) / len(rewards) if rewards else None


def _share(answers: Sequence[Sample], field: str) -> float:
    return sum(bool(getattr(sample, field)) for sample in answers) / len(answers)


def _draw(steps: Mapping[int, Sequence[Sample]], path: Path) -> None:
    rewards = [(step, _mean_reward(answers)) for step, answers in steps.items()]
    points = [(step, reward) for step, reward in rewards if reward is not None]
    fields = [("is_correct", "correct"), ("is_cheat", "cheats"), ("flags", "flagged")]
    if any(sample.is_right_where_run for answers in steps.values() for sample in answers):
        fields.append(("is_right_where_run", "right where run, not judged"))
    with new_figure(path, (8, 3.6), ncols=2) as (_, (reward_axes, share_axes)):
        if points:
            line = {"color": line_style(0).colour, "marker": "o", "markersize": 3}
            reward_axes.plot(*zip(*points, strict=True), **line)
        reward_axes.set(xlabel="step", ylabel="mean reward")
        for index, (field, label) in enumerate(fields):
            style = line_style(index)
            shares = [100 * _share(answers, field) for answers in steps.values()]
            line = {"color": style.colour, "marker": style.marker, "markersize": 3}
            share_axes.plot(list(steps), shares, style.dashes, label=label, **line)
        share_axes.set(xlabel="step", ylabel="share of the answers, %", ylim=(-3, 103))
        share_axes.legend()
