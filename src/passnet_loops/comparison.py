"""Several systems on the same tasks: llms, the nearest neighbour and the teacher, side by side."""

import os.path
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from passnet.core.records.serialise import read_json
from passnet.core.terminal.progress import progress
from passnet.errors import InputError
from passnet.judge.settings import TimingPlan
from passnet.judge.suite.suite import Suite
from passnet.judge.suite.suite_keys import read_suite_keys
from passnet.pages.tables.tables import Table
from passnet_loops.build import check_apart, read_training
from passnet_loops.checkpoint import INFO_FILE, TrainInfo
from passnet_loops.evaluate import (
    NEAREST,
    TEACHER,
    Answerer,
    AnswerRecord,
    EvaluationInfo,
    chosen_graphs,
    earlier_answers,
    evaluate_system,
    teacher_answers,
)
from passnet_loops.language.prompt import Prompt
from passnet_loops.language.run_answer import not_shown_wrong
from passnet_loops.nearest import NearestNeighbour
from passnet_loops.policy import open_policy
from passnet_loops.row_judge import AnswerJudge
from passnet_loops.summaries import (
    PairedGain,
    SystemSummary,
    gain_table,
    paired_gain,
    summary,
    summary_table,
)
from passnet_loops.training_rows import pairs_of


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """What is evaluated: so many tasks and graphs of each. Of `num_drawn` answers to each the
    `num_samples` likeliest are judged; with `is_checked` the likeliest of those that a run of their
    loops does not show to be wrong.

    Their words are those that the grammar allows, unless `is_free`.
    """

    num_tasks: int | None = None
    per_task: int = 1
    num_samples: int = 1
    is_timed: bool = False
    seed: int = 0
    is_free: bool = False
    num_drawn: int = 1
    is_checked: bool = False


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """The figures of all systems, and of each beside those before it. Llms that differ in their
    seed alone, and in the answers of their own that they learned, are a system together as well.
    """

    suite: str
    systems: tuple[SystemSummary, ...]
    gains: tuple[PairedGain, ...]

    def tables(self) -> list[Table]:
        """As tables for the terminal."""
        return [summary_table(self.systems), gain_table(self.gains)]


def compare(
    suite: Suite,
    checkpoints: Sequence[Path],
    out: Path,
    plan: EvaluationPlan,
    data: Path | None = None,
    has_teacher: bool = False,
    answered: Sequence[Path] = (),
) -> SystemComparison:
    """Judge systems on the tasks of a suite; what `out` holds is not judged again. What a system
    answered in the evaluations `answered` is judged, and it is asked for nothing else.

    Raises:
        InputError: a checkpoint or the training data learned from a task of the suite, or was not
            checked against it.
    """
    systems: dict[str, Answerer] = {}
    if data is not None:
        manifest, rows = read_training(data)
        check_apart(rows, read_suite_keys([suite.name]))
        nearest = NearestNeighbour(pairs_of(rows, 1, 0, 10**6))
        systems[NEAREST] = lambda prompts: [[nearest.answer(each.text)] for each in prompts]
    for folder in checkpoints:
        _check_unseen(folder, suite)
        systems[folder.name] = _answerer(folder, plan)
    if has_teacher:
        systems[TEACHER] = teacher_answers
    if not systems:
        raise InputError("there is nothing to evaluate: give checkpoints, --data or --teacher")
    graphs = chosen_graphs(suite, plan.per_task, plan.num_tasks, plan.seed)
    names = tuple(graph.name for graph in graphs)
    info = EvaluationInfo(
        suite.name, suite.content_hash, names, plan.is_timed, plan.num_samples, plan.is_free,
        plan.num_drawn, plan.is_checked,
    )  # fmt: skip
    earlier = earlier_answers(answered, info)
    records: dict[str, list[AnswerRecord]] = {}
    timing = TimingPlan() if plan.is_timed else None
    with (
        AnswerJudge(timing) as judge,
        progress("judging answers", len(systems) * len(graphs)) as step,
    ):
        for name, answerer in systems.items():
            records[name] = evaluate_system(name, answerer, graphs, out, info, judge, step, earlier)
    for name, members in seeds_together(checkpoints).items():
        records[name] = [record for member in members for record in records[member]]
    ordered = list(records)
    pairs_of_systems = [(a, b) for n, a in enumerate(ordered) for b in ordered[:n]]
    gains = tuple(
        paired_gain(a, records[a], b, records[b], plan.is_timed) for a, b in pairs_of_systems
    )
    summaries = tuple(summary(name, part, plan.is_timed) for name, part in records.items())
    return SystemComparison(suite.name, summaries, gains)


def _answerer(folder: Path, plan: EvaluationPlan) -> Answerer:
    def answer(prompts: Sequence[Prompt]) -> list[list[str]]:
        count = max(plan.num_drawn, plan.num_samples)
        ranked = open_policy(folder).ranked(prompts, count, plan.seed, is_free=plan.is_free)
        if plan.is_checked:
            ranked = [not_shown_wrong(*each) for each in zip(prompts, ranked, strict=True)]
        return [answers[: plan.num_samples] for answers in ranked]

    return answer


def seeds_together(checkpoints: Sequence[Path]) -> dict[str, list[str]]:
    """The names of llms that differ in their seed alone, under a name for all of them; nothing of
    one that stands alone. Those that learned answers of their own, of which each has others, differ
    in no more if the names of their folders differ in a number at the end.
    """
    members: dict[str, list[str]] = {}
    for folder in checkpoints:
        info = read_json(folder / INFO_FILE, TrainInfo)
        alike = replace(info.settings, seed=0, is_bfloat16=False)
        has_own = info.num_own_rows > 0
        stem = folder.name.rstrip("0123456789")
        learned = (info.data[:1], stem) if has_own else (info.data, info.num_structures)
        key = repr((info.stage, has_own, learned, alike))
        members.setdefault(key, []).append(folder.name)
    names: dict[str, list[str]] = {}
    for folders in members.values():
        if len(folders) > 1:
            common = os.path.commonprefix(folders).rstrip("-_. ") or folders[0]
            names[f"{common}, {len(folders)} seeds"] = folders
    return names


def _check_unseen(folder: Path, suite: Suite) -> None:
    """By content: a suite that was renamed since is the same suite."""
    info = read_json(folder / INFO_FILE, TrainInfo)
    if suite.content_hash not in info.evaluation.values():
        names = ", ".join(info.evaluation) or "none"
        raise InputError(
            f"{folder}: was trained on data that was kept apart from {names}, not from this "
            f"{suite.name}; make the data with --eval {suite.name}"
        )
