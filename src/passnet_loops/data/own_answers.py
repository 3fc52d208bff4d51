"""An LLM's own correct answers as training data, for prompts that it has not learned.

Fine-tuning on them is expert iteration (Anthony et al., 2017, arXiv 1705.08439; for LLMs Singh et
al., 2023, arXiv 2312.06585): the LLM learns to give an accepted answer more often. No teacher takes
part.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from operator import attrgetter
from pathlib import Path

from passnet.agent.graph_text import op_times_us
from passnet.agent.trajectories.training_data import folder_text
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.core.terminal.progress import progress
from passnet.errors import GraphError, InputError
from passnet.graph.spec import Graph
from passnet.graph.text.files import graph_from_row
from passnet.judge.task import TaskGraph
from passnet_loops.checkpoint import TrainInfo, llm_digest, read_info
from passnet_loops.data.build import TrainingManifest, read_training, row_key, write_rows
from passnet_loops.data.examples import OWN_AUTHOR, JudgeVerdict, TrainingRow
from passnet_loops.data.row_judge import AnswerJudge, open_judge
from passnet_loops.data.training_rows import first_structures, split_rows_to_watch
from passnet_loops.language.answer_text import parse_answer
from passnet_loops.language.expand import expand_answer, span_of
from passnet_loops.language.prompt import Prompt, loops_prompt
from passnet_loops.language.run_answer import eager_run, is_right_where_run
from passnet_loops.policy import TEMPERATURE, AnswerPolicy, Sampling, open_policy
from passnet_loops.settings import AnswerSettings

CHUNK = 128
"""Prompts that are answered before their answers are run."""


@dataclass(frozen=True, slots=True)
class AnsweringInfo:
    """The beginning of a run: the hashes of LLM and data, and the settings."""

    schema_version: int
    llm: str
    data: tuple[str, ...]
    settings: AnswerSettings


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """The result for one row, by its key."""

    key: str

    answer: str
    """The greedy answer if correct, else the correct one that replaces most; empty without any."""

    num_right: int
    """Distinct answers that passed a run of their loops."""

    num_different: int
    """Distinct answers."""

    replaced: float
    """Share of the graph's least time that the answer replaces."""

    verdict: JudgeVerdict = "not judged"
    status: str = ""
    judge_s: float = 0.0


@dataclass(frozen=True, slots=True)
class AnsweringSummary:
    """Counts of rows: asked for, correct by a run of the loops, judged, found correct, kept."""

    num_rows: int
    num_right: int
    num_judged: int
    num_correct: int
    num_kept: int


@dataclass(frozen=True)
class AskedLlm:
    """The LLM that answers, with its training and the digest of its weights."""

    load: Callable[[], AnswerPolicy]
    info: TrainInfo
    digest: str


def open_asked(folder: Path) -> AskedLlm:
    """Return the LLM in the folder of a run, which is loaded later.

    Raises:
        InputError: There is none.
    """
    info = read_info(folder)
    return AskedLlm(partial(open_policy, folder), info, llm_digest(folder))


def answer_run(out: Path) -> RunFolder[AnsweringInfo, OwnAnswer, str]:
    """Return the folder of a run, by rows."""
    key = attrgetter("key")
    files = ("answering.json", AnsweringInfo, "answered.jsonl", OwnAnswer)
    return RunFolder(out, *files, key, "answered prompts")


def unlearned_rows(
    manifest: TrainingManifest, rows: Sequence[TrainingRow], info: TrainInfo
) -> list[TrainingRow]:
    """Return the rows that an LLM has neither learned nor been watched on."""
    learned, _ = split_rows_to_watch(rows)
    if not manifest.was_learned(info.data):
        return learned
    settings = info.settings
    trained_on = {
        (row.structure, row.dtype)
        for row in first_structures(learned, settings.num_structures)
        if row.words <= settings.max_words
    }
    return [row for row in learned if (row.structure, row.dtype) not in trained_on]


def answer_rows(
    folder: Path,
    llm: AskedLlm,
    out: Path,
    settings: AnswerSettings,
    resume: bool = False,
    judging: Callable[[], AbstractContextManager[AnswerJudge]] = open_judge,
) -> AnsweringSummary:
    """Have an LLM answer the rows that it has not learned; write correct answers as training data.

    `out` is the folder of the run and of the new data; `judging` opens the judge of some answers.

    Raises:
        InputError: There is no data, the LLM has learned all rows, or `out` holds another run.
    """
    manifest, rows = read_training(folder)
    rows = asked_rows(manifest, rows, llm.info, settings)
    if not rows:
        raise InputError(
            f"{folder}: the llm has learned all of its rows; give other data, or an llm that"
            " learned less of it (passnet train sft --structures)"
        )
    run = answer_run(out)
    info = AnsweringInfo(SCHEMA_VERSION, llm.digest, manifest.file_hashes, settings)
    complaint = f"{out}: was begun with another llm, other data or settings; choose another --out"
    with run.begin(info, resume, unchanged(complaint)):
        answered = run.records()
        missing = [row for row in rows if row_key(row) not in answered]
        with (
            run.recorder(len(answered)) as record,
            judging() as judge,
            progress("answering prompts", len(missing)) as step,
        ):
            num_right = sum(bool(own.answer) for own in answered.values())
            for own, subject in own_answers(llm.load(), missing, settings):
                if own.answer:
                    num_right += 1
                    if (num_right - 1) % settings.judge_every == 0:
                        own = _judged(judge, subject, own)
                answered[own.key] = own
                record(own)
                step(f"{num_right} right")
        kept_rows = [
            _own_row(row, own)
            for row in rows
            if (own := answered[row_key(row)]).answer and own.verdict != "wrong"
        ]
        verdicts = Counter(own.verdict for own in answered.values())
        write_rows(out, kept_rows, manifest.evaluation, Counter(wrong=verdicts["wrong"]))
    return AnsweringSummary(
        len(rows),
        sum(bool(own.answer) for own in answered.values()),
        verdicts["correct"] + verdicts["wrong"],
        verdicts["correct"],
        len(kept_rows),
    )


def asked_rows(
    manifest: TrainingManifest,
    rows: Sequence[TrainingRow],
    info: TrainInfo,
    settings: AnswerSettings,
) -> list[TrainingRow]:
    """Return the rows to ask for, short prompts first, so that equal lengths are batched."""
    unlearned = [
        row
        for row in unlearned_rows(manifest, rows, info)
        if len(row.prompt.split()) <= settings.max_prompt_words
    ]
    shuffled = sorted(unlearned, key=lambda row: hashlib.sha256(row.full.encode()).digest())
    part = [row for row in shuffled[: settings.num_rows] if settings.shard.has(row.full)]
    return sorted(part, key=lambda row: len(row.prompt.split()))


@dataclass(frozen=True)
class Subject:
    """A subgraph that answers are asked for."""

    graph: Graph

    @cached_property
    def prompt(self) -> Prompt:
        """Return its prompt.

        Raises:
            GraphError, InputError: It has none.
        """
        return loops_prompt(self.graph)

    @cached_property
    def least_us(self) -> list[float]:
        """Return the least time of each op of the prompt, in microseconds.

        Raises:
            GraphError: Shapes cannot be inferred.
        """
        return op_times_us(self.prompt.graph)


@lru_cache(512)
def subject_of(program: str, tensors: str, full: str) -> Subject:
    """Return the subgraph of a row of training data, from the columns that hold it."""
    return Subject(graph_from_row(program, tensors, full[:16]))


def share_of_answer(prompt: Prompt, text: str, least_us: Sequence[float]) -> float:
    """Return the share of the least time of a graph's ops, `least_us`, that an answer replaces.

    Raises:
        InputError: The text is no answer to the prompt.
    """
    replaced = {op for fused in parse_answer(text) for op in range(*span_of(prompt, fused))}
    total = sum(least_us)
    return sum(least_us[op] for op in replaced) / total if total else 0.0


def own_answers(
    policy: AnswerPolicy, rows: Sequence[TrainingRow], settings: AnswerSettings
) -> Iterator[tuple[OwnAnswer, Subject]]:
    """Yield an LLM's answers to rows, in their order, before they are judged."""
    greedy = Sampling(max_words=settings.max_words)
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        subjects = [subject_of(row.program, row.tensors, row.full) for row in chunk]
        prompts = [subject.prompt for subject in subjects]
        answers = policy.answers(prompts, greedy)
        results = [_RunAnswers(*pair) for pair in zip(subjects, answers, strict=True)]
        wrong = [number for number, result in enumerate(results) if not result.right]
        sampling = replace(
            greedy,
            num_samples=settings.num_drawn,
            temperature=TEMPERATURE,
            seed=settings.seed + start,
        )
        samples = policy.answers([prompts[number] for number in wrong], sampling)
        for number, answers_of_row in zip(wrong, samples, strict=True):
            results[number].add(answers_of_row)
        for row, result in zip(chunk, results, strict=True):
            answer, share = result.best()
            counts = len(result.right), len(result.distinct)
            yield OwnAnswer(row_key(row), answer, *counts, share), result.subject


class _RunAnswers:
    """The distinct answers to a prompt; `right` ones passed a run of their loops."""

    def __init__(self, subject: Subject, answers: Sequence[str]) -> None:
        self.subject = subject
        self.distinct: dict[str, None] = {}
        self.right: list[str] = []
        self.add(answers)

    def add(self, answers: Sequence[str]) -> None:
        """Run more answers; eager values are dropped at the end, to save memory."""
        new = [answer for answer in dict.fromkeys(answers) if answer not in self.distinct]
        if not new:
            return
        try:
            eager = eager_run(self.subject.prompt)
        except GraphError:
            return
        for answer in new:
            self.distinct[answer] = None
            with suppress(InputError, GraphError, RecursionError):
                expand_answer(self.subject.prompt, answer)
                if is_right_where_run(eager, answer):
                    self.right.append(answer)

    def best(self) -> tuple[str, float]:
        """Return the correct answer that replaces most of the graph's least time, and its share."""
        shares = {
            answer: share_of_answer(self.subject.prompt, answer, self.subject.least_us)
            for answer in self.right
        }
        return max(shares.items(), key=lambda pair: pair[1], default=("", 0.0))


def _judged(judge: AnswerJudge, subject: Subject, own: OwnAnswer) -> OwnAnswer:
    graph = TaskGraph("row", own.key, subject.graph)
    judged = judge.judge_answer(graph, subject.prompt, own.answer)
    seconds = round(judged.seconds, 3)
    return replace(own, verdict=judged.verdict, status=judged.status, judge_s=seconds)


def _own_row(row: TrainingRow, own: OwnAnswer) -> TrainingRow:
    """Replace the teacher's answer in a row."""
    prompt = subject_of(row.program, row.tensors, row.full).prompt
    return replace(
        row,
        author=OWN_AUTHOR,
        loops=own.answer,
        folder=folder_text(expand_answer(prompt, own.answer)),
        words=len(row.prompt.split()) + len(own.answer.split()),
        verdict=own.verdict,
        status=own.status,
        judge_s=own.judge_s,
    )
