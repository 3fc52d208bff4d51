"""Rows of training data judged one by one, a structure after another in a drawn order."""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path

from passnet.errors import MeasureError
from passnet.graph.files import graph_from_row
from passnet.jobs.run_folder import unchanged
from passnet.report.progress import progress
from passnet.train.build import DataInfo, RowVerdict, data_run, row_key, verdict_run
from passnet.train.examples import TrainingRow
from passnet.train.judging import AnswerJudge
from passnet.train.loops.expand import expand_answer
from passnet.train.loops.prompt import loops_prompt


def deadline(minutes: float | None) -> Callable[[], bool]:
    """What says whether so many minutes have passed from now on; never without a number."""
    end = None if minutes is None else time.monotonic() + 60 * minutes
    return lambda: end is not None and time.monotonic() > end


def judge_rows(out: Path, info: DataInfo, is_over: Callable[[], bool]) -> int:
    """Judge the rows of a run that have no verdict, until all have or `is_over`; how many have.

    Of each structure one row comes first, then the others.
    """
    made = data_run(out)
    run = verdict_run(out)
    complaint = f"{out}: was begun with other settings; choose another --out"
    with made.begin(info, True, unchanged(complaint)):
        known = run.records()
        rows = [row for each in made.records().values() for row in each.rows]
        rows = [row for row in rows if row_key(row) not in known]
        rows.sort(key=_order(rows))
        with (
            run.recorder(len(known)) as record,
            AnswerJudge() as judge,
            progress("judging rows", len(rows)) as step,
        ):
            num_judged = len(known)
            for row in rows:
                if is_over():
                    break
                record(judged_row(judge, row))
                num_judged += 1
                step()
    return num_judged


def _order(rows: list[TrainingRow]) -> Callable[[TrainingRow], tuple[int, str]]:
    counts: dict[str, int] = {}
    ranks = {}
    for row in sorted(rows, key=lambda row: hashlib.sha256(row.full.encode()).digest()):
        ranks[row.full] = counts.get(row.structure, 0)
        counts[row.structure] = ranks[row.full] + 1
    return lambda row: (ranks[row.full], hashlib.sha256(row.structure.encode()).hexdigest())


def judged_row(judge: AnswerJudge, row: TrainingRow) -> RowVerdict:
    """What the judge says of a row's answer, expanded anew."""
    graph = graph_from_row(row.program, row.tensors, row.full[:16])
    try:
        answer = judge.judge(graph, expand_answer(loops_prompt(graph), row.loops))
    except MeasureError:
        return RowVerdict(row_key(row), "not judged", "judge failed", 0.0)
    return RowVerdict(row_key(row), answer.verdict, answer.status, answer.seconds)
