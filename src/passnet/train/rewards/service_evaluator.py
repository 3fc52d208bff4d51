"""A session's judge that is a reward service: what an llm's tools ask is judged elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from passnet.errors import MeasureError
from passnet.judge.match_check import GraphMatches
from passnet.judge.protocol.messages import MissText
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import row_of_graph
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.passes.files import Files
from passnet.train.service.client import ServiceAddress, judge_all_now
from passnet.train.service.submission import Submission


class ServiceDesk:
    """Judges states of a pass folder by a service; an `agent.evaluator.StateJudge`.

    Args:
        address: of the service.
        settings: what a prompt says of how is judged; the service has its own.
        is_timed: whether states are measured, or only compared.
    """

    root = "/nowhere"
    """Messages of a service hold no folders."""

    def __init__(
        self, address: ServiceAddress, settings: RunSettings, is_timed: bool = True
    ) -> None:
        self.settings = settings
        self._address = address
        self._is_timed = is_timed

    def __enter__(self) -> ServiceDesk:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        """Nothing is to be ended here."""

    def prepare(self, task: Task) -> None:
        """Nothing is to be prepared here."""

    def judge(
        self, task: Task, files: Files, unseen: Sequence[TaskGraph] = (), is_timed: bool = True
    ) -> list[Trial]:
        """The trials of a state.

        Raises:
            MeasureError: the service failed, or gave no answer in time.
        """
        return self._judged(task, files, unseen, is_timed and self._is_timed)

    def check_matches(self, task: Task, files: Files) -> list[GraphMatches]:
        """Where the passes of a state match, found out by comparing them.

        Raises:
            MeasureError: the service failed, or gave no answer in time.
        """
        return [_matches(trial) for trial in self._judged(task, files, (), False)]

    def _judged(
        self, task: Task, files: Files, unseen: Sequence[TaskGraph], is_timed: bool
    ) -> list[Trial]:
        submission = Submission(
            task.name,
            files,
            graphs=tuple(map(row_of_graph, task.graphs)),
            unseen=tuple(map(row_of_graph, unseen)),
            is_timed=is_timed,
        )
        [report] = judge_all_now(self._address, [submission])
        if report.judged is None or report.judged.fault is not None:
            fault = "nothing" if report.judged is None else report.judged.fault
            raise MeasureError(f"the judge service: {fault}")
        return list(report.judged.trials)


def _matches(trial: Trial) -> GraphMatches:
    if not any(trial.matches.values()):
        return GraphMatches(trial.graph, error=trial.error or trial.status)
    passes = tuple(MissText(name, number) for name, number in trial.matches.items())
    return GraphMatches(trial.graph, passes)
