"""One attempt as it goes on: the pass folder, what was evaluated, and the answer to each action."""

from __future__ import annotations

import time
from collections.abc import Sequence

from passnet.agent.attempt import Evaluation, ToolTime
from passnet.agent.evaluator import Workbench
from passnet.agent.files import Files, created, deleted, replaced, view
from passnet.agent.observations import evaluation_text, match_text, plain, variant_result
from passnet.agent.task_view import graph_text
from passnet.agent.tools import (
    Action,
    CheckMatch,
    Create,
    Delete,
    Evaluate,
    Replace,
    ShowGraph,
    View,
    parse_action,
    tool_name,
)
from passnet.bench.scores import Row, score_rows
from passnet.errors import ActionError, InputError, PassFolderError
from passnet.judge.trial import Trial
from passnet.records.serialise import decode, encode
from passnet.suite.suite import SuiteGraph, Task

CANDIDATE_PHASES = ("reference", "compile", "compare", "timing", "waiting")
"""Phases of a trial that are not our own work: candidate and reference run, or others do."""

LEAST_GAIN = 1.0
"""A guarded author submits only what scores above leaving the graph alone."""


class Session:
    """The state of one attempt at a task.

    Args:
        task: what is to be solved.
        bench: where states are judged.
        unseen: graphs of the task in other shapes, on which a pass must not be wrong.
        guarded: submit nothing that scores no better than leaving the graph alone.
    """

    def __init__(
        self,
        task: Task,
        bench: Workbench,
        unseen: Sequence[SuiteGraph] = (),
        guarded: bool = False,
    ) -> None:
        self.task = task
        self.files: Files = {}
        self.evaluations: list[Evaluation] = []
        self.tool_times: list[ToolTime] = []
        self.num_bad_actions = 0
        self.turn = 1
        self.is_submitted = False
        self._bench = bench
        self.unseen = tuple(unseen)
        self._guarded = guarded

    @property
    def best(self) -> int | None:
        """The number of the evaluation that would be submitted now."""
        scored = [number for number, item in enumerate(self.evaluations) if item.score is not None]
        if not scored:
            return None
        best = max(scored, key=lambda number: (self._score(number), -number))
        if self._guarded and not (
            self._score(best) > LEAST_GAIN and self.evaluations[best].is_passing
        ):
            return None
        return best

    def _score(self, number: int) -> float:
        score = self.evaluations[number].score
        assert score is not None, "only what was measured is compared"
        return score

    def call(self, tool: str, arguments: str | bytes) -> str:
        """The answer to a call of a tool; a call that is wrong is answered with one line.

        Raises:
            MeasureError: our own machinery fails again and again.
        """
        try:
            return self.act(parse_action(tool, arguments))
        except ActionError as cause:
            self.num_bad_actions += 1
            return f"error: {cause}"

    def act(self, action: Action) -> str:
        """The answer to an action.

        Raises:
            ActionError: it cannot be done; the text says why, and nothing has changed.
            MeasureError: our own machinery fails again and again.
        """
        start = time.perf_counter()
        foreign_s = 0.0
        try:
            if self.is_submitted:
                raise ActionError("the attempt has ended; nothing can be changed any more")
            if isinstance(action, View):
                return view(self.files, action.name, action.first, action.last)
            if isinstance(action, Create):
                self.files = created(self.files, action.name, action.text)
                return f"{action.name} is written: {len(action.text.splitlines())} lines"
            if isinstance(action, Replace):
                self.files = replaced(self.files, action.name, action.old, action.new)
                return f"{action.name} is changed"
            if isinstance(action, Delete):
                self.files = deleted(self.files, action.name)
                return f"{action.name} is deleted"
            if isinstance(action, ShowGraph):
                return self._show(action.graph)
            if isinstance(action, CheckMatch):
                text = self._check()
                foreign_s = time.perf_counter() - start  # loading and tracing are the candidate's
                return text
            if isinstance(action, Evaluate):
                text, foreign_s = self._evaluate(start)
                return text
            self.is_submitted = True
            return self._submitted()
        finally:
            seconds = time.perf_counter() - start
            times = ToolTime(self.turn, tool_name(action), seconds, seconds - foreign_s)
            self.tool_times.append(times)

    def _show(self, number: int) -> str:
        graphs = self.task.graphs
        if not 0 <= number < len(graphs):
            raise ActionError(f"there is no graph {number}; there are 0 to {len(graphs) - 1}")
        return graph_text(graphs[number], number, len(graphs))

    def _check(self) -> str:
        try:
            found = self._bench.check_matches(self.task, self.files)
        except PassFolderError as cause:
            raise ActionError(plain(str(cause), self._bench.root)) from cause
        return match_text(found, self.task, self._bench.root)

    def _evaluate(self, start: float) -> tuple[str, float]:
        try:
            trials = self._bench.judge(self.task, self.files, self.unseen)
        except PassFolderError as cause:
            raise ActionError(plain(str(cause), self._bench.root)) from cause
        seconds = time.perf_counter() - start
        foreign_s = sum(_foreign_s(item) for item in trials)
        variants = tuple(variant_result(item, self._bench.root) for item in trials)
        evaluation = Evaluation(
            self.turn,
            dict(self.files),
            variants,
            task_score(trials),
            round(seconds, 4),
            round(max(seconds - foreign_s, 0.0), 4),
        )
        self.evaluations.append(evaluation)
        number = len(self.evaluations) - 1
        return evaluation_text(evaluation, number, self.best, self.task), foreign_s

    def _submitted(self) -> str:
        if self.best is None:
            return "submitted: nothing; no state was evaluated, or none won"
        score = self.evaluations[self.best].score
        return f"submitted: the state of evaluation {self.best}, with score {score:.3f}"


def _foreign_s(trial: Trial) -> float:
    """The seconds of a trial that candidate and reference took, or others who measured."""
    phases = sum(trial.phases_s.get(name, 0.0) for name in CANDIDATE_PHASES)
    return phases + (trial.load_s or 0.0)


def task_score(trials: Sequence[Trial]) -> float | None:
    """The AS of one task from its trials; None where nothing could be measured."""
    try:
        (scores,) = score_rows([decode(encode(item), Row) for item in trials])
    except InputError:
        return None
    return scores.suite.score
