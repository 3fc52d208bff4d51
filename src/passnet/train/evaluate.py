"""Answers of llms and baselines judged on tasks that none has seen, and compared task by task."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from statistics import geometric_mean

from passnet.agent.files import Files
from passnet.errors import GraphError, InputError, MeasureError, PassnetError
from passnet.jobs.run_folder import RunFolder, unchanged
from passnet.report.tables import Table
from passnet.score.es import Score, aggregate, es_by_t
from passnet.suite.suite import Suite, SuiteGraph
from passnet.train.examples import time_limit, whole_or_ranges
from passnet.train.judging import AnswerJudge, JudgedAnswer
from passnet.train.loops.expand import expand_answer
from passnet.train.loops.language import print_answer
from passnet.train.loops.prompt import Prompt, loops_prompt

NUM_RESAMPLES = 2000
TEACHER, NEAREST, EAGER = "teacher", "nearest neighbour", "eager"

Answerer = Callable[[Sequence[Prompt]], list[list[str]]]
"""Gives answers to each of some prompts, the first the one to be judged first."""


@dataclass(frozen=True, slots=True)
class EvaluationInfo:
    """What an evaluation was begun with."""

    suite: str
    suite_hash: str
    graphs: tuple[str, ...]
    is_timed: bool
    num_samples: int = 1
    is_free: bool = False


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """How a system did on a graph: its best answer of `num_samples`, the first that is correct.

    `error` says why nothing could be judged, or what the judge said.
    """

    system: str
    task: str
    graph: str
    answer: str
    num_samples: int
    verdict: str
    status: str
    smallest_t: int | None
    speedup: float | None
    speedup_low: float | None
    findings: tuple[str, ...]
    error: str | None
    seconds: float

    @property
    def key(self) -> tuple[str, str]:
        """What makes it one record."""
        return self.system, self.graph

    @property
    def is_correct(self) -> bool:
        """Whether the judge found it correct."""
        return self.verdict == "correct"

    @property
    def log_score(self) -> float:
        """The logarithm of its AS as a task of one graph."""
        from math import log

        score = Score(self.status, self.smallest_t, self.speedup)  # type: ignore[arg-type]
        return log(aggregate(es_by_t([score])))


def chosen_graphs(
    suite: Suite, per_task: int, num_tasks: int | None, seed: int = 0
) -> list[SuiteGraph]:
    """So many graphs of each task, of as many different dtypes as there are, that have a prompt."""
    draw = random.Random(seed)  # noqa: S311 (no secret)
    tasks = list(suite.tasks)
    draw.shuffle(tasks)
    graphs = []
    for task in tasks[:num_tasks]:
        members = list(task.graphs)
        draw.shuffle(members)
        graphs += members[:per_task]
    return graphs


def evaluation_run(out: Path) -> RunFolder[EvaluationInfo, AnswerRecord, tuple[str, str]]:
    """The folder of an evaluation: a record for each system and graph."""
    return RunFolder(
        out, "evaluation.json", EvaluationInfo, "answers.jsonl", AnswerRecord, attrgetter("key"),
        "judged answers",
    )  # fmt: skip


def prompt_of(graph: SuiteGraph) -> Prompt | None:
    """The prompt of a graph; None where it has none."""
    try:
        return loops_prompt(graph.graph)
    except (GraphError, InputError):
        return None


def teacher_answers(prompts: Sequence[Prompt]) -> list[list[str]]:
    """What the compiler author answers; nothing where it writes nothing."""
    answers = []
    for prompt in prompts:
        try:
            with time_limit(60.0):
                answers.append([print_answer(whole_or_ranges(prompt, "graph"))])
        except PassnetError:
            answers.append([""])
    return answers


def evaluate_system(
    name: str,
    answerer: Answerer,
    graphs: Sequence[SuiteGraph],
    out: Path,
    info: EvaluationInfo,
    judge: AnswerJudge,
    step: Callable[[str], None],
) -> list[AnswerRecord]:
    """The records of a system on some graphs, made or found in `out`.

    Where nothing is timed, an answer that another system gave to the same graph is not judged
    again.
    """
    run = evaluation_run(out)
    complaint = f"{out}: holds another evaluation; choose another --out"
    with run.begin(info, True, unchanged(complaint)):
        records = run.records()
        known = {} if info.is_timed else {(r.graph, r.answer): r for r in records.values()}
        missing = [graph for graph in graphs if (name, graph.name) not in records]
        prompts = [(graph, prompt_of(graph)) for graph in missing]
        asked = [prompt for _, prompt in prompts if prompt is not None]
        answers = iter(answerer(asked))
        with run.recorder(len(records)) as record:
            for graph, prompt in prompts:
                texts = next(answers) if prompt is not None else [""]
                made = _judged(name, graph, prompt, texts, judge, known)
                record(made)
                records[made.key] = made
                step(f"{name}: {made.verdict}")
    return [records[name, graph.name] for graph in graphs]


def _judged(
    name: str,
    graph: SuiteGraph,
    prompt: Prompt | None,
    texts: Sequence[str],
    judge: AnswerJudge,
    known: Mapping[tuple[str, str], AnswerRecord],
) -> AnswerRecord:
    """The record of the first answer that is correct, or else of the first; of answers that are
    `known`, with what is known of them.
    """
    first: AnswerRecord | None = None
    for text in dict.fromkeys(texts):
        same = known.get((graph.name, text)) if text else None
        if same is not None:
            record = replace(same, system=name, num_samples=len(texts))
            if record.is_correct:
                return record
            first = first or record
            continue
        judged: JudgedAnswer | None = None
        error: str | None = "the graph has no prompt" if prompt is None else "there is no answer"
        if prompt is not None and text:
            try:
                files: Files = expand_answer(prompt, text)
                judged = judge.judge_graphs([graph], files)[0]
                error = judged.error
            except (InputError, MeasureError, RecursionError) as cause:
                error = str(cause)[:200]
        record = AnswerRecord(
            name,
            graph.task,
            graph.name,
            text,
            len(texts),
            judged.verdict if judged else "wrong",
            judged.status if judged else "compile_error",
            judged.smallest_t if judged else None,
            judged.speedup if judged else None,
            judged.speedup_low if judged else None,
            judged.findings if judged else (),
            error,
            judged.seconds if judged else 0.0,
        )
        if record.is_correct:
            return record
        first = first or record
    assert first is not None, "there is one answer at least"
    return first


@dataclass(frozen=True, slots=True)
class SystemSummary:
    """How a system did: shares with their 95 % intervals over tasks, and AS where it was timed."""

    system: str
    num_graphs: int
    num_tasks: int
    correct: float
    correct_low: float
    correct_high: float
    faster: float | None
    score: float | None
    findings: int


def summary(name: str, records: Sequence[AnswerRecord], seed: int = 0) -> SystemSummary:
    """The figures of a system."""
    low, high = bootstrap(records, lambda part: _mean([r.is_correct for r in part]), seed)
    timed = [record for record in records if record.speedup is not None]
    return SystemSummary(
        name,
        len(records),
        len({record.task for record in records}),
        _mean([record.is_correct for record in records]),
        low,
        high,
        _mean([r.is_correct and (r.speedup_low or 0) > 1 for r in records]) if timed else None,
        geometric_mean(_task_scores(records)) if timed else None,
        sum(bool(record.findings) for record in records),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _task_scores(records: Sequence[AnswerRecord]) -> list[float]:
    by_task: dict[str, list[Score]] = {}
    for record in records:
        score = Score(record.status, record.smallest_t, record.speedup)  # type: ignore[arg-type]
        by_task.setdefault(record.task, []).append(score)
    return [aggregate(es_by_t(scores)) for scores in by_task.values()]


def bootstrap(
    records: Sequence[AnswerRecord],
    figure: Callable[[Sequence[AnswerRecord]], float],
    seed: int = 0,
) -> tuple[float, float]:
    """The 95 % interval of a figure over the choice of tasks."""
    draw = random.Random(seed)  # noqa: S311 (no secret)
    by_task: dict[str, list[AnswerRecord]] = {}
    for record in records:
        by_task.setdefault(record.task, []).append(record)
    tasks = list(by_task.values())
    figures = sorted(
        figure([record for part in draw.choices(tasks, k=len(tasks)) for record in part])
        for _ in range(NUM_RESAMPLES)
    )
    return figures[int(0.025 * NUM_RESAMPLES)], figures[int(0.975 * NUM_RESAMPLES) - 1]


def paired_difference(
    one: Sequence[AnswerRecord], other: Sequence[AnswerRecord], seed: int = 0
) -> tuple[float, float, float]:
    """How much more often the first is correct than the other on the same graphs, with its 95 %
    interval over tasks.

    Raises:
        InputError: they have no graph in common.
    """
    theirs = {record.graph: record for record in other}
    pairs = [(record, theirs[record.graph]) for record in one if record.graph in theirs]
    if not pairs:
        raise InputError("the two systems have no graph in common")
    gains = {a.graph: float(a.is_correct) - float(b.is_correct) for a, b in pairs}

    def figure(part: Sequence[AnswerRecord]) -> float:
        return _mean([gains[record.graph] for record in part])

    records = [record for record, _ in pairs]
    return figure(records), *bootstrap(records, figure, seed)


def evaluation_table(summaries: Sequence[SystemSummary]) -> Table:
    """One row a system."""
    table = Table(
        "Tasks of evaluation, never learned from",
        ("system", "graphs", "correct %", "95 % interval", "faster %", "AS", "cheats"),
        note="correct: by the strict rules, at t = -5. The interval is over tasks.",
    )
    for each in summaries:
        table.rows.append((
            each.system,
            str(each.num_graphs),
            f"{100 * each.correct:.1f}",
            f"{100 * each.correct_low:.1f} – {100 * each.correct_high:.1f}",
            "–" if each.faster is None else f"{100 * each.faster:.1f}",
            "–" if each.score is None else f"{each.score:.3f}",
            str(each.findings),
        ))  # fmt: skip
    return table
