"""Answers of llms and baselines judged on tasks that none has seen, and compared task by task."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType

from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.errors import GraphError, InputError, PassnetError
from passnet.judge.suite.suite import Suite
from passnet.judge.task import TaskGraph
from passnet_loops.examples import time_limit, whole_or_ranges
from passnet_loops.language.answer_text import print_answer
from passnet_loops.language.prompt import Prompt, loops_prompt
from passnet_loops.row_judge import AnswerJudge, JudgedAnswer

TEACHER, NEAREST = "teacher", "nearest neighbour"

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
    num_drawn: int = 1
    is_checked: bool = False


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """How a system did on a graph: its best answer of `num_samples`, the first that is correct.

    `findings` name the cheats that it is rejected for, `flags` what a person should read; `error`
    says why nothing could be judged, or what the judge said.
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
    flags: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What makes it one record."""
        return self.system, self.graph

    @property
    def is_correct(self) -> bool:
        """Whether the judge found it correct."""
        return self.verdict == "correct"


def chosen_graphs(
    suite: Suite, per_task: int, num_tasks: int | None, seed: int = 0
) -> list[TaskGraph]:
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


def earlier_answers(folders: Sequence[Path], info: EvaluationInfo) -> dict[tuple[str, str], str]:
    """The answers in the folders of evaluations that asked as `info` does, by system and graph.

    Raises:
        InputError: one is no evaluation, or asked in another way, or of another suite; or several
            answers to a graph may be judged, of which an evaluation keeps one.
    """
    if folders and info.num_samples > 1:
        raise InputError("--answers is for one judged answer to a graph; leave --samples out")
    answers: dict[tuple[str, str], str] = {}
    for folder in folders:
        run = evaluation_run(folder)
        found = run.read_info()
        if replace(found, graphs=info.graphs, is_timed=info.is_timed, suite=info.suite) != info:
            raise InputError(
                f"{folder}: holds answers to another suite, or such that were given with other "
                "--draw, --check, --samples or --free; give the same"
            )
        answers |= {key: record.answer for key, record in run.records().items()}
    return answers


def prompt_of(graph: TaskGraph) -> Prompt | None:
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
    graphs: Sequence[TaskGraph],
    out: Path,
    info: EvaluationInfo,
    judge: AnswerJudge,
    step: Callable[[str], None],
    earlier: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> list[AnswerRecord]:
    """The records of a system on some graphs, made or found in `out`.

    Where nothing is timed, an answer that another system gave to the same graph is not judged
    again. What the judge could not say is asked again. The answerer is not asked for graphs to
    which it has an `earlier` answer, found by the names of system and graph.
    """
    run = evaluation_run(out)
    complaint = f"{out}: holds another evaluation; choose another --out"
    with run.begin(info, True, unchanged(complaint)):
        records = {key: each for key, each in run.records().items() if each.verdict != "not judged"}
        known = {} if info.is_timed else {(r.graph, r.answer): r for r in records.values()}
        missing = [graph for graph in graphs if (name, graph.name) not in records]
        prompts = [(graph, prompt_of(graph)) for graph in missing]
        asked = {g.name: p for g, p in prompts if p is not None and (name, g.name) not in earlier}
        made = answerer(list(asked.values())) if asked else ()
        answers = dict(zip(asked, made, strict=True))
        with run.recorder(len(records)) as record:
            for graph, prompt in prompts:
                texts = answers.get(graph.name) or [earlier.get((name, graph.name), "")]
                judged = _judged(name, graph, prompt, texts, judge, known)
                record(judged)
                records[judged.key] = judged
                step(f"{name}: {judged.verdict}")
    return [records[name, graph.name] for graph in graphs]


def _judged(
    name: str,
    graph: TaskGraph,
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
        if prompt is not None and text:
            judged = judge.judge_answer(graph, prompt, text)
        else:
            missing = "the graph has no prompt" if prompt is None else "there is no answer"
            judged = JudgedAnswer("wrong", "compile_error", 0.0, error=missing)
        record = AnswerRecord(
            name,
            graph.task,
            graph.name,
            text,
            len(texts),
            judged.verdict,
            judged.status,
            judged.smallest_t,
            judged.speedup,
            judged.speedup_low,
            judged.findings,
            judged.error,
            judged.seconds,
            judged.flags,
        )
        if record.is_correct:
            return record
        first = first or record
    assert first is not None, "there is one answer at least"
    return first
