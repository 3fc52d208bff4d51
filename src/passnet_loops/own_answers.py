"""An llm's own answers as training data: those that are right, to prompts that it has not learned.

Fine-tuning on them is expert iteration (Anthony et al., 2017, arXiv 1705.08439; for llms Singh et
al., 2023, arXiv 2312.06585): what the llm says now and then, and the judge accepts, it then says
more often. No teacher is asked.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from passnet.agent.trajectories.training_data import folder_text
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.jobs.run_plan import WHOLE, RunShard
from passnet.core.records.serialise import SCHEMA_VERSION, read_json
from passnet.core.terminal.progress import progress
from passnet.errors import GraphError, InputError
from passnet.judge.task import TaskGraph
from passnet_loops.build import (
    TrainingManifest,
    read_training,
    row_key,
    write_rows,
)
from passnet_loops.checkpoint import INFO_FILE, TrainInfo, llm_digest
from passnet_loops.examples import OWN_AUTHOR, JudgeVerdict, TrainingRow
from passnet_loops.language.expand import expand_answer
from passnet_loops.language.run_answer import eager_run, is_right_where_run
from passnet_loops.loops_reward import Subject, share_of_answer, subject_of
from passnet_loops.policy import TEMPERATURE, Policy, open_policy
from passnet_loops.row_judge import AnswerJudge
from passnet_loops.training_rows import first_structures, split_rows_to_watch

CHUNK = 128
"""So many prompts are answered before their answers are looked at."""


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """How an llm is asked.

    Args:
        num_drawn: answers that are drawn where the likeliest one is not right.
        judge_every: of the answers that are to be kept, one in so many is judged.
        max_words: of an answer.
        max_prompt_words: longer prompts are passed over.
        num_rows: so many rows are asked for at most.
        shard: the part of the rows that are asked for.
    """

    num_drawn: int = 4
    judge_every: int = 16
    max_words: int = 220
    max_prompt_words: int = 220
    num_rows: int | None = None
    shard: RunShard = WHOLE
    seed: int = 0


@dataclass(frozen=True, slots=True)
class AnsweringInfo:
    """What a run was begun with: the hashes of the llm and of the data, and the settings."""

    schema_version: int
    llm: str
    data: tuple[str, ...]
    settings: AnswerSettings


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """What came of one row, by its key.

    Args:
        answer: the right answer that replaces most of the graph, the likeliest one where that is
            right; nothing where none is.
        num_right: how many different answers a run of their loops showed to be right.
        num_different: how many different ones there were.
        replaced: the share of the graph's least time that the answer replaces.
        verdict: the judge's, where it was asked.
    """

    key: str
    answer: str
    num_right: int
    num_different: int
    replaced: float
    verdict: JudgeVerdict = "not judged"
    status: str = ""
    judge_s: float = 0.0


@dataclass(frozen=True, slots=True)
class AnsweringSummary:
    """How it went: rows that were asked for, those with a right answer by a run of its loops, those
    that were judged and found correct, and what was kept.
    """

    num_rows: int
    num_right: int
    num_judged: int
    num_correct: int
    num_kept: int


def answer_run(out: Path) -> RunFolder[AnsweringInfo, OwnAnswer, str]:
    """The folder of a run, by rows."""
    return RunFolder(
        out, "answering.json", AnsweringInfo, "answered.jsonl", OwnAnswer, attrgetter("key"),
        "answered prompts",
    )  # fmt: skip


def unlearned_rows(
    manifest: TrainingManifest, rows: Sequence[TrainingRow], info: TrainInfo
) -> list[TrainingRow]:
    """Rows of training data that an llm has neither learned nor been watched on."""
    learned, _ = split_rows_to_watch(rows)
    if not manifest.was_learned(info.data):
        return learned
    settings = info.settings
    known = {
        (row.structure, row.dtype)
        for row in first_structures(learned, settings.num_structures)
        if row.words <= settings.max_words
    }
    return [row for row in learned if (row.structure, row.dtype) not in known]


def answer_rows(
    folder: Path, llm: Path, out: Path, settings: AnswerSettings, resume: bool = False
) -> AnsweringSummary:
    """Have an llm answer the rows of training data that it has not learned, and write those with
    right answers to `out` as training data.

    Raises:
        InputError: there is no data or llm, it has learned all rows, or `out` holds another run.
    """
    manifest, rows = read_training(folder)
    policy = open_policy(llm)
    rows = asked_rows(manifest, rows, read_json(llm / INFO_FILE, TrainInfo), settings)
    if not rows:
        raise InputError(
            f"{folder}: the llm has learned all of its rows; give other data, or an llm that"
            " learned less of it (passnet train sft --structures)"
        )
    run = answer_run(out)
    info = AnsweringInfo(SCHEMA_VERSION, llm_digest(llm), manifest.file_hashes, settings)
    complaint = f"{out}: was begun with another llm, other data or settings; choose another --out"
    with run.begin(info, resume, unchanged(complaint)):
        done = run.records()
        left = [row for row in rows if row_key(row) not in done]
        with (
            run.recorder(len(done)) as record,
            AnswerJudge() as judge,
            progress("answering prompts", len(left)) as step,
        ):
            num_right = sum(bool(each.answer) for each in done.values())
            for own, subject in own_answers(policy, left, settings):
                if own.answer:
                    num_right += 1
                    if (num_right - 1) % settings.judge_every == 0:
                        own = _judged(judge, subject, own)
                done[own.key] = own
                record(own)
                step(f"{num_right} right")
        kept = [
            _own_row(row, own)
            for row in rows
            if (own := done[row_key(row)]).answer and own.verdict != "wrong"
        ]
        left_out = Counter(wrong=sum(each.verdict == "wrong" for each in done.values()))
        write_rows(out, kept, manifest.evaluation, left_out)
    verdicts = Counter(each.verdict for each in done.values())
    return AnsweringSummary(
        len(rows),
        sum(bool(each.answer) for each in done.values()),
        verdicts["correct"] + verdicts["wrong"],
        verdicts["correct"],
        len(kept),
    )


def asked_rows(
    manifest: TrainingManifest,
    rows: Sequence[TrainingRow],
    info: TrainInfo,
    settings: AnswerSettings,
) -> list[TrainingRow]:
    """The rows that an llm is asked for, short prompts first, so that those of one length are
    answered side by side.
    """
    unlearned = [
        row
        for row in unlearned_rows(manifest, rows, info)
        if len(row.prompt.split()) <= settings.max_prompt_words
    ]
    drawn = sorted(unlearned, key=lambda row: hashlib.sha256(row.full.encode()).digest())
    mine = [row for row in drawn[: settings.num_rows] if settings.shard.has(row.full)]
    return sorted(mine, key=lambda row: len(row.prompt.split()))


def own_answers(
    policy: Policy, rows: Sequence[TrainingRow], settings: AnswerSettings
) -> Iterator[tuple[OwnAnswer, Subject]]:
    """What an llm answers to rows, in their order, not judged yet."""
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        subjects = [subject_of(row.program, row.tensors, row.full) for row in chunk]
        prompts = [subject.prompt for subject in subjects]
        found = [
            _Right(subject, given)
            for subject, given in zip(
                subjects, policy.answers(prompts, max_words=settings.max_words), strict=True
            )
        ]
        wrong = [number for number, each in enumerate(found) if not each.right]
        drawn = policy.answers(
            [prompts[number] for number in wrong], settings.num_drawn, TEMPERATURE,
            settings.seed + start, settings.max_words,
        )  # fmt: skip
        for number, given in zip(wrong, drawn, strict=True):
            found[number].add(given)
        for row, each in zip(chunk, found, strict=True):
            answer, share = each.best()
            counts = len(each.right), len(each.different)
            yield OwnAnswer(row_key(row), answer, *counts, share), each.subject


class _Right:
    """The different answers to a prompt, and those of them that are right where they are run."""

    def __init__(self, subject: Subject, answers: Sequence[str]) -> None:
        self.subject = subject
        self.different: dict[str, None] = {}
        self.right: list[str] = []
        self.add(answers)

    def add(self, answers: Sequence[str]) -> None:
        """See which of some answers are right. What eager torch computes is not kept: the values of
        all prompts that are asked side by side may be more than fit into memory.
        """
        new = [answer for answer in dict.fromkeys(answers) if answer not in self.different]
        if not new:
            return
        try:
            eager = eager_run(self.subject.prompt)
        except GraphError:
            return
        for answer in new:
            self.different[answer] = None
            with suppress(InputError, GraphError, RecursionError):
                expand_answer(self.subject.prompt, answer)
                if is_right_where_run(eager, answer):
                    self.right.append(answer)

    def best(self) -> tuple[str, float]:
        """The right answer that replaces the largest share of the graph's least time, with that
        share; the first of equal ones.
        """
        shares = {
            answer: share_of_answer(self.subject.prompt, answer, self.subject.least_us)
            for answer in self.right
        }
        return max(shares.items(), key=lambda item: item[1], default=("", 0.0))


def _judged(judge: AnswerJudge, subject: Subject, own: OwnAnswer) -> OwnAnswer:
    judged = judge.judge_answer(
        TaskGraph("row", own.key, subject.graph), subject.prompt, own.answer
    )
    return replace(
        own, verdict=judged.verdict, status=judged.status, judge_s=round(judged.seconds, 3)
    )


def _own_row(row: TrainingRow, own: OwnAnswer) -> TrainingRow:
    """A row with an llm's answer in the place of its teacher's."""
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
