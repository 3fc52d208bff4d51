"""Answers of LLMs and baselines, judged on unseen tasks."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from passnet.bench.environment import Environment
from passnet.bench.run_record import environment_difference
from passnet.core.jobs.run_folder import RunFolder
from passnet.errors import InputError, PassnetError
from passnet.judge.suite.suite import Suite
from passnet.judge.task import TaskGraph
from passnet_loops.data.examples import time_limit, whole_or_ranges
from passnet_loops.data.row_judge import AnswerJudge, JudgedAnswer
from passnet_loops.language.answer_text import print_answer
from passnet_loops.language.prompt import Prompt, prompt_or_none

TEACHER, NEAREST = "teacher", "nearest neighbour"

Answerer = Callable[[Sequence[Prompt]], list[list[str]]]
"""A system: it returns the answers to each prompt, best first."""


@dataclass(frozen=True, slots=True)
class EvaluationInfo:
    """The beginning of an evaluation."""

    suite: str
    suite_hash: str
    graphs: tuple[str, ...]
    is_timed: bool
    num_samples: int = 1
    is_free: bool = False
    num_drawn: int = 1
    is_checked: bool = False
    seed: int = 0
    """The seed of samples; `graphs` holds what else it draws."""

    environment: Environment | None = None
    """The machine of a timed evaluation."""


AnswerKey: TypeAlias = tuple[str, str, str]
"""The name and the digest of a system, and a graph."""


@dataclass(frozen=True)
class AnsweringSystem:
    """An LLM, the nearest neighbour or the teacher."""

    name: str
    answer: Answerer
    digest: str = ""
    """A digest of an LLM's weights or of the nearest neighbour's data; the teacher's versions."""


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """A system's best answer to a graph out of `num_samples`: the first correct one."""

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
    """Exploits for which it is rejected."""

    error: str | None
    """The judge's error, or the reason why there was nothing to judge."""

    seconds: float
    flags: tuple[str, ...] = ()
    """Findings for a person to read."""

    digest: str = ""
    """The digest of the system (see `AnsweringSystem`)."""

    @property
    def key(self) -> AnswerKey:
        """Return system, digest and graph, which name the record."""
        return self.system, self.digest, self.graph

    @property
    def is_correct(self) -> bool:
        """True if the judge found it correct."""
        return self.verdict == "correct"


@dataclass(frozen=True)
class AnswerEvaluation:
    """An evaluation in the folder `out`, and the judge of its answers."""

    out: Path
    info: EvaluationInfo
    graphs: Sequence[TaskGraph]
    judge: AnswerJudge
    step: Callable[[str], None]
    """Reports the verdict on each graph."""

    earlier: Mapping[AnswerKey, str] = field(default_factory=dict)
    """Answers to judge again: their systems are not asked for them."""


def chosen_graphs(
    suite: Suite, per_task: int, num_tasks: int | None, seed: int = 0
) -> list[TaskGraph]:
    """Return `per_task` graphs of each of `num_tasks` tasks, drawn by the seed."""
    draw = random.Random(seed)  # noqa: S311 (no secret)
    tasks = list(suite.tasks)
    draw.shuffle(tasks)
    graphs = []
    for task in tasks[:num_tasks]:
        members = list(task.graphs)
        draw.shuffle(members)
        graphs += members[:per_task]
    return graphs


def evaluation_run(out: Path) -> RunFolder[EvaluationInfo, AnswerRecord, AnswerKey]:
    """Return the folder of an evaluation: a record for each system and graph."""
    files = ("evaluation.json", EvaluationInfo, "answers.jsonl", AnswerRecord)
    return RunFolder(out, *files, attrgetter("key"), "judged answers")


def earlier_answers(folders: Sequence[Path], info: EvaluationInfo) -> dict[AnswerKey, str]:
    """Return the answers of earlier evaluations.

    Raises:
        InputError: A folder is no evaluation, or one with another suite or settings; or several
            answers to a graph are to be judged, and evaluations store one.
    """
    if folders and info.num_samples > 1:
        raise InputError("--answers is for one judged answer to a graph; leave --samples out")
    answers: dict[AnswerKey, str] = {}
    for folder in folders:
        run = evaluation_run(folder)
        before = run.read_info()
        names = ("graphs", "is_timed", "suite", "environment")
        if replace(before, **{name: getattr(info, name) for name in names}) != info:
            raise InputError(
                f"{folder}: holds answers to another suite, or answers given with other --draw, "
                "--check, --samples, --free or --seed; give the same"
            )
        answers |= {key: record.answer for key, record in run.records().items()}
    return answers


def teacher_answers(prompts: Sequence[Prompt]) -> list[list[str]]:
    """Return the answers of the author `compiler`; empty ones where it writes nothing."""
    answers = []
    for prompt in prompts:
        try:
            with time_limit(60.0):
                answers.append([print_answer(whole_or_ranges(prompt, "graph"))])
        except PassnetError:
            answers.append([""])
    return answers


def evaluate_system(system: AnsweringSystem, evaluation: AnswerEvaluation) -> list[AnswerRecord]:
    """Return the records of a system on the graphs of an evaluation; make missing ones.

    Without timing, equal answers of several systems are judged once. Undecided answers are judged
    again.
    """
    run = evaluation_run(evaluation.out)
    keys = {graph.name: (system.name, system.digest, graph.name) for graph in evaluation.graphs}

    def continued(begun: EvaluationInfo, info: EvaluationInfo) -> EvaluationInfo:
        if not _can_go_on(begun, info):
            raise InputError(
                f"{evaluation.out}: holds another evaluation, or was timed on another machine or "
                "torch; choose another --out"
            )
        return begun

    with run.begin(evaluation.info, True, continued):
        records = {key: r for key, r in run.records().items() if r.verdict != "not judged"}
        judged_before = {}
        if not evaluation.info.is_timed:
            judged_before = {(r.graph, r.answer): r for r in records.values()}
        missing = [graph for graph in evaluation.graphs if keys[graph.name] not in records]
        prompts = {graph.name: prompt_or_none(graph.graph) for graph in missing}
        to_ask = {
            name: prompt
            for name, prompt in prompts.items()
            if prompt is not None and keys[name] not in evaluation.earlier
        }
        replies = system.answer(list(to_ask.values())) if to_ask else ()
        answers = dict(zip(to_ask, replies, strict=True))
        with run.recorder(len(records)) as record_answer:
            for graph in missing:
                key, prompt = keys[graph.name], prompts[graph.name]
                texts = answers.get(graph.name) or [evaluation.earlier.get(key, "")]
                best = _best_record(system, graph, prompt, texts, evaluation.judge, judged_before)
                record_answer(best)
                records[key] = best
                evaluation.step(f"{system.name}: {best.verdict}")
    return [records[key] for key in keys.values()]


def _can_go_on(begun: EvaluationInfo, info: EvaluationInfo) -> bool:
    before, now = begun.environment, info.environment
    if replace(begun, environment=now) != info:
        return False
    if before is None or now is None:
        return before is now
    return environment_difference(before, now) is None


def _best_record(
    system: AnsweringSystem,
    graph: TaskGraph,
    prompt: Prompt | None,
    texts: Sequence[str],
    judge: AnswerJudge,
    judged_before: Mapping[tuple[str, str], AnswerRecord],
) -> AnswerRecord:
    """Return the record of the first correct answer, or else of the first."""
    first: AnswerRecord | None = None
    for text in dict.fromkeys(texts):
        same = judged_before.get((graph.name, text)) if text else None
        if same is not None:
            record = replace(same, system=system.name, digest=system.digest, num_samples=len(texts))
        else:
            judged = asdict(_judged(graph, prompt, text, judge))
            about = (system.name, graph.task, graph.name, text, len(texts))
            record = AnswerRecord(*about, **judged, digest=system.digest)
        if record.is_correct:
            return record
        first = first or record
    assert first is not None, "there is one answer at least"
    return first


def _judged(graph: TaskGraph, prompt: Prompt | None, text: str, judge: AnswerJudge) -> JudgedAnswer:
    if prompt is not None and text:
        return judge.judge_answer(graph, prompt, text)
    missing = "the graph has no prompt" if prompt is None else "there is no answer"
    return JudgedAnswer("wrong", "compile_error", 0.0, error=missing)
