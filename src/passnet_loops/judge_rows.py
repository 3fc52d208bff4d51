"""Rows of training data judged one by one, a structure after another in a drawn order."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from passnet.core.jobs.actors import results_of
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.jobs.run_plan import WHOLE, RunShard
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.core.terminal.progress import progress
from passnet.errors import InputError
from passnet.graph.text.files import graph_from_row
from passnet.judge.task import TaskGraph
from passnet_loops.build import (
    VERDICTS_FILE,
    DataInfo,
    RowVerdict,
    TrainingManifest,
    data_run,
    read_training,
    row_key,
    verdict_run,
    with_verdicts,
    write_rows,
)
from passnet_loops.examples import TrainingRow
from passnet_loops.language.prompt import loops_prompt
from passnet_loops.row_judge import AnswerJudge

I = TypeVar("I")  # noqa: E741 (what a run is begun with)


@dataclass(frozen=True, slots=True)
class JudgingInfo:
    """What judging training data was begun with: the hashes of its files."""

    schema_version: int
    data: tuple[str, ...]


def deadline(minutes: float | None) -> Callable[[], bool]:
    """What says whether so many minutes have passed from now on; never without a number."""
    end = None if minutes is None else time.monotonic() + 60 * minutes
    return lambda: end is not None and time.monotonic() > end


def judge_rows(
    out: Path, info: DataInfo, is_over: Callable[[], bool], num_actors: int | None = None
) -> None:
    """Judge the rows of a run that have no verdict, until all have or `is_over`: one after another,
    or by so many actors of a Ray cluster.
    """
    made = data_run(out)
    complaint = f"{out}: was begun with other settings; choose another --out"
    with made.begin(info, True, unchanged(complaint)):
        run = verdict_run(out)
        rows = [row for each in made.records().values() for row in each.rows]
        _judge(run, rows, run.records(), is_over, num_actors)


def judging_run(out: Path) -> RunFolder[JudgingInfo, RowVerdict, str]:
    """The folder of a run that judges training data, by rows."""
    return RunFolder(
        out, "judging.json", JudgingInfo, VERDICTS_FILE, RowVerdict, attrgetter("key"),
        "judged rows",
    )  # fmt: skip


def judge_training(
    folder: Path,
    out: Path,
    resume: bool = False,
    shard: RunShard = WHOLE,
    taken: Sequence[Path] = (),
    is_over: Callable[[], bool] = lambda: False,
    num_actors: int | None = None,
) -> TrainingManifest:
    """Judge the rows of training data that have no verdict, and write the data anew to `out`: all
    rows with what is known of them then, but for wrong ones.

    Args:
        folder: the data.
        out: the folder of the run, and of the data to write.
        resume: go on with what `out` holds.
        shard: the part of the rows to judge.
        taken: folders of other parts of the same run, whose verdicts are taken over.
        is_over: says when to stop before all are judged.
        num_actors: so many actors of a Ray cluster judge; without it, this process does.

    Raises:
        InputError: there is no data; `out` or one of `taken` holds another run, or `out` the data;
            or the judge finds all rows wrong.
    """
    if out.resolve() == folder.resolve():
        raise InputError(f"{out}: holds the data to judge; choose another --out")
    manifest, rows = read_training(folder)
    info = JudgingInfo(SCHEMA_VERSION, manifest.file_hashes)
    run = judging_run(out)
    parts = [judging_run(other) for other in taken]
    if strangers := [part.out for part in parts if part.read_info() != info]:
        raise InputError(f"{strangers[0]}: judges other data; it is no part of this run")
    complaint = f"{out}: judges other data; choose another --out"
    with run.begin(info, resume, unchanged(complaint)):
        verdicts = run.records()
        others = [verdict for part in parts for verdict in part.records().values()]
        run.take(others, verdicts, lambda verdict: verdict.verdict != "not judged")
        mine = [row for row in rows if row.verdict == "not judged" and shard.has(row.full)]
        _judge(run, mine, verdicts, is_over, num_actors)
        known = with_verdicts(rows, run.records())
        kept = [row for row in known if row.verdict != "wrong"]
        if not kept:
            raise InputError(
                f"{folder}: the judge finds all {len(rows)} rows wrong; nothing is left"
            )
        judged_from = (*manifest.judged_from, *manifest.file_hashes)
        left_out = Counter(manifest.left_out) + Counter(wrong=len(known) - len(kept))
        return write_rows(out, kept, manifest.evaluation, left_out, judged_from)


def _judge(
    run: RunFolder[I, RowVerdict, str],
    rows: Sequence[TrainingRow],
    known: Mapping[str, RowVerdict],
    is_over: Callable[[], bool],
    num_actors: int | None,
) -> None:
    """Judge rows that no verdict is known of. Of each structure one row comes first, then the
    others.
    """
    left = [row for row in rows if row_key(row) not in known]
    if not left:  # no process is started for nothing
        return
    left.sort(key=_order(left))
    with (
        run.recorder(len(known)) as record,
        closing(results_of(left, _row_judge, num_actors)) as results,
        progress("judging rows", len(left)) as step,
    ):
        num_wrong = 0
        while not is_over() and (verdict := next(results, None)) is not None:
            record(verdict)
            num_wrong += verdict.verdict == "wrong"
            step(f"{num_wrong} wrong")


@contextmanager
def _row_judge() -> Iterator[Callable[[TrainingRow], RowVerdict]]:
    """What judges one row after another."""
    with AnswerJudge() as judge:
        yield partial(judged_row, judge)


def _order(rows: list[TrainingRow]) -> Callable[[TrainingRow], tuple[int, str]]:
    counts: dict[str, int] = {}
    ranks = {}
    for row in sorted(rows, key=lambda row: hashlib.sha256(row.full.encode()).digest()):
        ranks[row.full] = counts.get(row.structure, 0)
        counts[row.structure] = ranks[row.full] + 1
    return lambda row: (ranks[row.full], hashlib.sha256(row.structure.encode()).hexdigest())


def judged_row(judge: AnswerJudge, row: TrainingRow) -> RowVerdict:
    """What the judge says of a row's answer, expanded anew; one without a meaning is wrong."""
    graph = graph_from_row(row.program, row.tensors, row.full[:16])
    asked = TaskGraph("row", row.full[:16], graph)
    answer = judge.judge_answer(asked, loops_prompt(graph), row.loops)
    return RowVerdict(row_key(row), answer.verdict, answer.status, answer.seconds)
