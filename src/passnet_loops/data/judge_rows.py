"""Rows of training data judged one by one, a structure after another."""

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
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.core.terminal.progress import progress
from passnet.errors import InputError
from passnet.graph.text.files import graph_from_row
from passnet.judge.task import TaskGraph
from passnet_loops.data.build import (
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
from passnet_loops.data.examples import TrainingRow
from passnet_loops.data.row_judge import AnswerJudge, open_judge
from passnet_loops.language.prompt import loops_prompt

I = TypeVar("I")  # noqa: E741 (the beginning of a run)


@dataclass(frozen=True, slots=True)
class JudgingInfo:
    """The beginning of a run: the hashes of the data's files."""

    schema_version: int
    data: tuple[str, ...]


def deadline(seconds: float | None) -> Callable[[], bool]:
    """Return a function that returns True once the seconds have passed; None never pass."""
    end = None if seconds is None else time.monotonic() + seconds
    return lambda: end is not None and time.monotonic() > end


def judge_rows(
    out: Path, info: DataInfo, is_over: Callable[[], bool], plan: RunPlan = DEFAULT_PLAN
) -> None:
    """Judge the rows of a run that have no verdict, until `is_over`."""
    mined = data_run(out)
    complaint = f"{out}: was begun with other settings; choose another --out"
    with mined.begin(info, True, unchanged(complaint)):
        run = verdict_run(out)
        rows = [row for batch in mined.records().values() for row in batch.rows]
        _judge(run, rows, run.records(), is_over, plan)


def judging_run(out: Path) -> RunFolder[JudgingInfo, RowVerdict, str]:
    """Return the folder of a run that judges training data, by rows."""
    key = attrgetter("key")
    files = ("judging.json", JudgingInfo, VERDICTS_FILE, RowVerdict)
    return RunFolder(out, *files, key, "judged rows")


def judge_training(
    folder: Path,
    out: Path,
    plan: RunPlan = DEFAULT_PLAN,
    is_over: Callable[[], bool] = lambda: False,
) -> TrainingManifest:
    """Judge the rows of training data that have no verdict, and write the data anew to `out`.

    Rows that are wrong are left out. `is_over` says when to stop before all rows are judged.

    Raises:
        InputError: There is no data; `out` or a part of the plan holds another run, or `out` the
            data; or the judge finds all rows wrong.
    """
    if out.resolve() == folder.resolve():
        raise InputError(f"{out}: holds the data to judge; choose another --out")
    manifest, rows = read_training(folder)
    info = JudgingInfo(SCHEMA_VERSION, manifest.file_hashes)
    run = judging_run(out)
    parts = [judging_run(part) for part in plan.parts]
    if strangers := [part.out for part in parts if part.read_info() != info]:
        raise InputError(f"{strangers[0]}: judges other data; it is no part of this run")
    complaint = f"{out}: judges other data; choose another --out"
    with run.begin(info, plan.resume, unchanged(complaint)):
        verdicts = run.records()
        of_parts = [verdict for part in parts for verdict in part.records().values()]
        run.take(of_parts, verdicts, lambda verdict: verdict.verdict != "not judged")
        unjudged = [r for r in rows if r.verdict == "not judged" and plan.shard.has(r.full)]
        _judge(run, unjudged, verdicts, is_over, plan)
        judged = with_verdicts(rows, run.records())
        right = [row for row in judged if row.verdict != "wrong"]
        if not right:
            raise InputError(
                f"{folder}: the judge finds all {len(rows)} rows wrong; nothing is left"
            )
        judged_from = (*manifest.judged_from, *manifest.file_hashes)
        left_out = Counter(manifest.left_out) + Counter(wrong=len(judged) - len(right))
        return write_rows(out, right, manifest.evaluation, left_out, judged_from)


def _judge(
    run: RunFolder[I, RowVerdict, str],
    rows: Sequence[TrainingRow],
    verdicts: Mapping[str, RowVerdict],
    is_over: Callable[[], bool],
    plan: RunPlan,
) -> None:
    """Judge the rows without a verdict: one row of each structure first, then the others."""
    missing = [row for row in rows if row_key(row) not in verdicts]
    if not missing:  # no process is started for nothing
        return
    missing.sort(key=_order(missing))
    with (
        run.recorder(len(verdicts)) as record,
        closing(results_of(missing, _row_judge, plan.num_actors)) as results,
        progress("judging rows", len(missing)) as step,
    ):
        num_wrong = 0
        while not is_over() and (verdict := next(results, None)) is not None:
            record(verdict)
            num_wrong += verdict.verdict == "wrong"
            step(f"{num_wrong} wrong")


@contextmanager
def _row_judge() -> Iterator[Callable[[TrainingRow], RowVerdict]]:
    with open_judge() as judge:
        yield partial(judged_row, judge)


def _order(rows: list[TrainingRow]) -> Callable[[TrainingRow], tuple[int, str]]:
    counts: dict[str, int] = {}
    ranks = {}
    for row in sorted(rows, key=lambda row: hashlib.sha256(row.full.encode()).digest()):
        ranks[row.full] = counts.get(row.structure, 0)
        counts[row.structure] = ranks[row.full] + 1
    return lambda row: (ranks[row.full], hashlib.sha256(row.structure.encode()).hexdigest())


def judged_row(judge: AnswerJudge, row: TrainingRow) -> RowVerdict:
    """Judge a row's answer, expanded anew."""
    graph = graph_from_row(row.program, row.tensors, row.full[:16])
    task_graph = TaskGraph("row", row.full[:16], graph)
    judged = judge.judge_answer(task_graph, loops_prompt(graph), row.loops)
    return RowVerdict(row_key(row), judged.verdict, judged.status, judged.seconds)
