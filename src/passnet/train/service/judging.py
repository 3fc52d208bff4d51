"""What judges items one after another, wherever it runs: here, in a process, or in an actor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from passnet.agent.attempts.observations import plain
from passnet.errors import InputError, PassFolderError, PassnetError
from passnet.judge.desk.desk import NAME, JudgeDesk
from passnet.judge.score.status import Status
from passnet.judge.suite.suite import graph_of_row, make_suite
from passnet.judge.verdict import Evidence, decide
from passnet.train.service.settings import ServiceSettings
from passnet.train.service.submission import Judged, JudgeItem


@contextmanager
def open_judging(settings: ServiceSettings) -> Iterator[Callable[[JudgeItem], Judged]]:
    """What judges items as long as the block runs, in processes of its own."""
    with JudgeDesk(settings.run, settings.call) as evaluator:
        yield lambda item: judge_one(evaluator, item)


def judge_one(evaluator: JudgeDesk, item: JudgeItem) -> Judged:
    """What a judge makes of an item; a pass folder that cannot be used at all does not compile."""
    graphs = [graph_of_row(row, row.name) for row in item.graphs]
    unseen = [graph_of_row(row, row.name) for row in item.unseen]
    task = make_suite("submitted", graphs).tasks[0]
    try:
        trials = evaluator.judge(task, item.files, unseen, item.is_timed)
    except PassFolderError as cause:
        failure: tuple[Status, str] = ("compile_error", plain(str(cause), evaluator.root))
        judge = evaluator.settings.judge
        return Judged(
            tuple(
                decide(Evidence(task.name, graph.name, NAME, failure=failure), judge)
                for graph in graphs
            )
        )
    except InputError as cause:
        return Judged(fault=f"the judge cannot take it: {cause}")
    except PassnetError as cause:
        return Judged(fault=str(cause))
    return Judged(tuple(trials))
