"""The page of a training: what its answers earned step by step, and what its monitors saw.

It is a study in the folder of the run, which `passnet report` shows with all others.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from passnet.core.jobs.run_folder import last_records
from passnet.core.records.serialise import read_lines
from passnet.errors import InputError, naming
from passnet.pages.figures.study_page import StudyFigure, StudyPage, write_study_page
from passnet.pages.figures.styles import line_style
from passnet.pages.tables.tables import Table
from passnet.train.rewards.monitors import MONITORS, MONITORS_FILE, MonitorRecord, monitors_table
from passnet.train.rewards.samples import SAMPLES_FILE, Sample

REWARDS_FIGURE = "rewards.svg"
MAX_ROWS = 40
"""Steps in a table of the page; of more, every so many-th is shown, and the last."""


def write_run_page(folder: Path) -> StudyPage:
    """Write the page of a training from its answers and its monitors.

    Args:
        folder: of the run, with `samples.jsonl` and, once the trainer has logged, `monitors.jsonl`.

    Raises:
        InputError: no answers are in it, or it cannot be written.
    """
    samples = list(last_records(folder / SAMPLES_FILE, Sample, lambda each: each.number).values())
    if not samples:
        raise InputError(f"{folder / SAMPLES_FILE}: holds no answers; train for a step first")
    path = folder / MONITORS_FILE
    records = list(read_lines(path, MonitorRecord, skip_torn=True)) if path.exists() else []
    by_step: dict[int, list[Sample]] = defaultdict(list)
    for each in samples:
        by_step[each.step].append(each)
    steps = {step: by_step[step] for step in sorted(by_step)}
    with naming(folder / REWARDS_FIGURE):
        _draw(steps, folder / REWARDS_FIGURE)
    stopped = [reading.monitor for reading in records[-1].readings if reading.is_beyond] \
        if records else []  # fmt: skip
    tables = [_steps_table(steps)]
    if records:
        tables += [monitors_table(records[-1]), _readings_table(records)]
    study = StudyPage(
        title=f"Training: {folder.resolve().name}",
        finding=_finding(samples, stopped),
        paragraphs=_paragraphs(samples),
        tables=tuple(tables),
        figures=(StudyFigure(REWARDS_FIGURE, "Mean reward of a step, and shares of its answers."),),
    )
    write_study_page(folder, study)
    return study


def _finding(samples: Sequence[Sample], stopped: Sequence[str]) -> str:
    cheats = sum(each.is_cheat for each in samples)
    correct = sum(each.is_correct for each in samples)
    text = (
        f"{len(samples):,} answers, {correct / len(samples):.0%} of them correct, {cheats} cheats"
    )
    return f"{text}; stopped by {', '.join(stopped)}." if stopped else f"{text}."


def _paragraphs(samples: Sequence[Sample]) -> tuple[str, ...]:
    names = Counter(name for each in samples for name in each.cheats).most_common()
    statuses = Counter(status for each in samples for status in each.statuses).most_common()
    unknown = sum(each.reward is None for each in samples)
    listed = ", ".join(f"{status} {count}" for status, count in statuses)
    lines = [f"What became of the answers on each graph: {listed or 'nothing was judged'}."]
    if names:
        found = ", ".join(f"{name} {count}" for name, count in names)
        lines.append(f"Findings that rejected answers: {found}. Their files are in {SAMPLES_FILE}.")
    if right := sum(each.is_right_where_run for each in samples):
        share = right / len(samples)
        lines.append(f"Right where their loops were run, and not judged: {right:,} ({share:.0%}).")
    if unknown:
        lines.append(f"Not judged, and without effect on the llm: {unknown}.")
    return tuple(lines)


def _steps_table(steps: Mapping[int, Sequence[Sample]]) -> Table:
    heads = ("step", "answers", "mean reward", "correct", "cheats", "flagged", "not judged")
    rows: list[tuple[str, ...]] = [
        (
            str(step),
            str(len(answers)),
            "–" if (reward := _mean_reward(answers)) is None else f"{reward:.3f}",
            f"{_share(answers, 'is_correct'):.0%}",
            f"{_share(answers, 'is_cheat'):.0%}",
            f"{_share(answers, 'flags'):.0%}",
            str(sum(each.reward is None for each in answers)),
        )
        for step, answers in steps.items()
    ]
    return Table("Answers by step", heads, _thinned(rows))


def _readings_table(records: Sequence[MonitorRecord]) -> Table:
    rows: list[tuple[str, ...]] = [
        (
            str(record.step),
            *("–" if seen.value is None else f"{seen.value:.3g}" for seen in record.readings),
        )
        for record in records
    ]
    return Table("Monitors by step", ("step", *MONITORS), _thinned(rows))


def _thinned(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    each = -(-len(rows) // MAX_ROWS)
    return rows[:-1:each] + rows[-1:]


def _mean_reward(answers: Sequence[Sample]) -> float | None:
    rewards = [each.reward for each in answers if each.reward is not None]
    return sum(rewards) / len(rewards) if rewards else None


def _share(answers: Sequence[Sample], field: str) -> float:
    return sum(bool(getattr(each, field)) for each in answers) / len(answers)


def _draw(steps: Mapping[int, Sequence[Sample]], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    rewards = [(step, _mean_reward(answers)) for step, answers in steps.items()]
    known = [(step, reward) for step, reward in rewards if reward is not None]
    if known:
        left.plot(*zip(*known, strict=True), color=line_style(0).colour, marker="o", markersize=3)
    left.set(xlabel="step", ylabel="mean reward")
    fields = [("is_correct", "correct"), ("is_cheat", "cheats"), ("flags", "flagged")]
    if any(each.is_right_where_run for answers in steps.values() for each in answers):
        fields.append(("is_right_where_run", "right where run, not judged"))
    for number, (field, label) in enumerate(fields):
        style = line_style(number)
        shares = [100 * _share(answers, field) for answers in steps.values()]
        right.plot(list(steps), shares, style.dashes, color=style.colour, marker=style.marker,
                   markersize=3, label=label)  # fmt: skip
    right.set(xlabel="step", ylabel="share of the answers, %", ylim=(-3, 103))
    right.legend()
    figure.savefig(file)
