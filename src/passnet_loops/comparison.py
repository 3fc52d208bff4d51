"""Several systems on the same tasks: LLMs, the nearest neighbour and the teacher."""

import hashlib
import os.path
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from passnet.bench.environment import describe_environment
from passnet.core.hardware import version_of
from passnet.core.terminal.progress import progress
from passnet.data.dataset.splits import SuiteKeys
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints
from passnet.judge.settings import TimingPlan
from passnet.judge.suite.suite import Suite, suite_of_hash
from passnet.pages.tables.tables import Table
from passnet_loops.checkpoint import llm_digest, read_info
from passnet_loops.data.build import check_apart, read_training
from passnet_loops.data.row_judge import open_judge
from passnet_loops.data.training_rows import TextPair, pairs_of
from passnet_loops.evaluate import (
    NEAREST,
    TEACHER,
    Answerer,
    AnswerEvaluation,
    AnsweringSystem,
    AnswerRecord,
    EvaluationInfo,
    chosen_graphs,
    earlier_answers,
    evaluate_system,
    teacher_answers,
)
from passnet_loops.language.prompt import Prompt
from passnet_loops.language.run_answer import not_shown_wrong
from passnet_loops.policy import Sampling, open_policy
from passnet_loops.settings import EvaluationPlan
from passnet_loops.summaries import (
    PairedGain,
    SystemSummary,
    gain_table,
    paired_gain,
    summary,
    summary_table,
)


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """The figures of all systems, and of each beside those before it.

    LLMs that differ in their seed alone are also one system together.
    """

    suite: str
    systems: tuple[SystemSummary, ...]
    gains: tuple[PairedGain, ...]

    def tables(self) -> list[Table]:
        """Return the tables for the terminal."""
        return [summary_table(self.systems), gain_table(self.gains)]


def compare(
    suite: Suite, checkpoints: Sequence[Path], out: Path, plan: EvaluationPlan
) -> SystemComparison:
    """Judge systems on the tasks of a suite; go on with the evaluation in `out`.

    Raises:
        InputError: A checkpoint or the training data learned from a task of the suite, or was not
            checked against it; or the answers to judge again are those of other systems.
    """
    systems = systems_of(suite, checkpoints, plan)
    graphs = chosen_graphs(suite, plan.per_task, plan.num_tasks, plan.seed)
    names = tuple(graph.name for graph in graphs)
    info = EvaluationInfo(
        suite.name,
        suite.content_hash,
        names,
        plan.is_timed,
        plan.num_samples,
        plan.is_free,
        plan.num_drawn,
        plan.is_checked,
        plan.seed,
        describe_environment() if plan.is_timed else None,
    )
    earlier = earlier_answers(plan.answered, info)
    named = {(system.name, system.digest) for system in systems}
    if plan.answered and named.isdisjoint(key[:2] for key in earlier):
        raise InputError(
            f"{', '.join(map(str, plan.answered))}: holds no answer of these systems, by name and "
            "weights; leave --answers out"
        )
    records: dict[str, list[AnswerRecord]] = {}
    with (
        open_judge(TimingPlan() if plan.is_timed else None) as judge,
        progress("judging answers", len(systems) * len(graphs)) as step,
    ):
        evaluation = AnswerEvaluation(out, info, graphs, judge, step, earlier)
        for system in systems:
            records[system.name] = evaluate_system(system, evaluation)
    for name, members in seeds_together(checkpoints).items():
        records[name] = [record for member in members for record in records[member]]
    gains = tuple(
        paired_gain((name, records[name]), (second, records[second]), plan.is_timed)
        for number, name in enumerate(records)
        for second in list(records)[:number]
    )
    summaries = tuple(summary(name, part, plan.is_timed) for name, part in records.items())
    return SystemComparison(suite.name, summaries, gains)


def systems_of(
    suite: Suite, checkpoints: Sequence[Path], plan: EvaluationPlan
) -> list[AnsweringSystem]:
    """Return the systems that a plan compares.

    Raises:
        InputError: There is none, two have one name, or one learned from a task of the suite.
    """
    systems: list[AnsweringSystem] = []
    if plan.data is not None:
        manifest, rows = read_training(plan.data)
        check_apart(rows, _keys(suite))
        nearest = NearestNeighbour(pairs_of(rows, 1, 0, 10**6))
        digest = hashlib.sha256("\n".join(manifest.file_hashes).encode()).hexdigest()
        systems.append(AnsweringSystem(NEAREST, nearest.answers, digest))
    for folder in checkpoints:
        check_unseen(folder, suite)
        answerer = _answerer(folder, plan)
        systems.append(AnsweringSystem(folder.name, answerer, llm_digest(folder)))
    if plan.has_teacher:
        versions = " ".join(version_of(package) for package in ("passnet", "torch"))
        systems.append(AnsweringSystem(TEACHER, teacher_answers, versions))
    if not systems:
        raise InputError("there is nothing to evaluate: give checkpoints, --data or --teacher")
    [(name, count)] = Counter(system.name for system in systems).most_common(1)
    if count > 1:
        raise InputError(f"{count} systems are named {name!r}; rename their folders")
    return systems


def _answerer(folder: Path, plan: EvaluationPlan) -> Answerer:
    def answer(prompts: Sequence[Prompt]) -> list[list[str]]:
        count = max(plan.num_drawn, plan.num_samples)
        sampling = Sampling(seed=plan.seed, is_free=plan.is_free)
        ranked = open_policy(folder).ranked(prompts, count, sampling)
        if plan.is_checked:
            ranked = [not_shown_wrong(*pair) for pair in zip(prompts, ranked, strict=True)]
        return [answers[: plan.num_samples] for answers in ranked]

    return answer


def seeds_together(checkpoints: Sequence[Path]) -> dict[str, list[str]]:
    """Return groups of LLMs that differ in their seed alone, by a name for each group.

    LLMs that learned own answers differ in those too; they are a group if the names of their
    folders differ in a number at the end.
    """
    members: dict[str, list[str]] = {}
    for folder in checkpoints:
        info = read_info(folder)
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
            name = f"{common}, {len(folders)} seeds"
            names[f"{name}: {', '.join(folders)}" if name in names else name] = folders
    return names


def check_unseen(folder: Path, suite: Suite) -> None:
    """Check that the training data was kept apart from a suite, by content and not by name.

    Data that was kept apart from an earlier version is so from a later one that adds no structure.
    """
    info = read_info(folder)
    if suite.content_hash in info.evaluation.values():
        return
    earlier = [suite_of_hash(*named) for named in info.evaluation.items()]
    if not any(version and _is_within(suite, version) for version in earlier):
        names = ", ".join(info.evaluation) or "none"
        raise InputError(
            f"{folder}: was trained on data that was kept apart from {names}, not from this "
            f"{suite.name}; make the data with --eval {suite.name}"
        )


def _keys(suite: Suite) -> SuiteKeys:
    """Return the op sequences and the structures that training data is kept apart from."""
    name = suite.name
    sequences = dict.fromkeys((task.ops for task in suite.tasks), name)
    structures = {fingerprints(graph.graph).structure: name for graph in suite.graphs}
    return SuiteKeys({name: suite.content_hash}, sequences, structures)


def _is_within(suite: Suite, version: Suite) -> bool:
    keys, known = _keys(suite), _keys(version)
    return (
        keys.sequences.keys() <= known.sequences.keys()
        and keys.structures.keys() <= known.structures.keys()
    )


WordPairs = Counter[tuple[str, str]]


class NearestNeighbour:
    """The answers of training prompts, by similarity."""

    def __init__(self, pairs: Iterable[TextPair]) -> None:
        self._known = [
            (counts, counts.total(), pair.answer)
            for pair in pairs
            if (counts := _word_pairs(pair.prompt))
        ]

    def answers(self, prompts: Sequence[Prompt]) -> list[list[str]]:
        """Return one answer to each prompt."""
        return [[self.answer(prompt.text)] for prompt in prompts]

    def answer(self, prompt: str) -> str:
        """Return the answer of the most similar prompt; of several, the first.

        Similarity is the Jaccard index of pairs of neighbouring words.
        """
        prompt_pairs = _word_pairs(prompt)
        total = prompt_pairs.total()

        def likeness(example: tuple[WordPairs, int, str]) -> float:
            counts, known_total, _ = example
            shared = sum(min(count, counts.get(pair, 0)) for pair, count in prompt_pairs.items())
            return shared / (total + known_total - shared)

        return max(self._known, key=likeness)[2]


def _word_pairs(text: str) -> WordPairs:
    words = text.split()
    return Counter(zip(words, words[1:], strict=False))
