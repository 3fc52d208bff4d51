"""An attempt in progress: the pass folder, its evaluations, and the answer to each action."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from passnet.agent.attempts import attempt, observations, tools
from passnet.agent.graph_text import graph_text
from passnet.agent.settings import AgentSettings
from passnet.core.terminal.visible_text import source_lines
from passnet.errors import ActionError, PassFolderError, PassnetError
from passnet.judge.desk.desk import JudgeDesk, StateJudge
from passnet.judge.suite.suite import Suite, held_out_graphs
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.passes.files import Files, created, deleted, read_files, replaced, view

MAX_ERROR_CHARACTERS = 600
"""Most characters of the error that ended an attempt."""

CANDIDATE_PHASES = ("reference", "compile", "compare", "timing", "profile", "waiting")
"""Phases of a trial that are not our own work: candidate and reference run, or others measure."""


@dataclass
class Session:
    """The state of one attempt at a task.

    `unseen` are graphs of the task in other shapes, on which a pass must not be wrong. A guarded
    attempt submits nothing that scores no better than leaving the graph alone. Ops before
    `first_op` only give arguments the strides that they have in a net; `is_strided` applies passes
    only with these. `trials` are those of each evaluation; `compared` evaluations have no times.
    The other fields go into the record; see `attempt.Attempt`.
    """

    task: Task
    evaluator: StateJudge
    unseen: Sequence[TaskGraph] = ()
    is_guarded: bool = False
    known_tools: Mapping[str, type[Any]] = field(default_factory=lambda: tools.TOOLS)
    first_op: int = 0
    is_strided: bool = False
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    files: Files = field(default_factory=dict)
    messages: Sequence[attempt.Message] = ()
    evaluations: list[attempt.Evaluation] = field(default_factory=list)
    trials: list[list[Trial]] = field(default_factory=list)
    compared: set[int] = field(default_factory=set)
    tool_times: list[attempt.ToolTime] = field(default_factory=list)
    num_bad_actions: int = 0
    turn: int = 1
    num_turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    is_submitted: bool = False
    ending: attempt.Ending | None = None
    error: str | None = None

    @property
    def best(self) -> int | None:
        """Return the number of the evaluation that would be submitted now; see
        `attempt.best_state`.

        A state that was only compared does not count, nor in a guarded session one that lost.
        """
        states = []
        for number, evaluation in enumerate(self.evaluations):
            score, is_right = evaluation.score, evaluation.is_passing
            has_lost = score is not None and (score <= attempt.UNCHANGED_SCORE or not is_right)
            is_out = number in self.compared or (self.is_guarded and has_lost)
            states.append(({}, False) if is_out else (evaluation.results, is_right))
        return attempt.best_state(states)

    def call(self, tool: str, arguments: str | bytes) -> str:
        """Answer a call of a tool; a wrong call is answered with one line."""
        try:
            return self.act(tools.parse_action(tool, arguments, self.known_tools))
        except ActionError as cause:
            self.num_bad_actions += 1
            return f"error: {cause}"

    def fail(self, cause: PassnetError) -> None:
        """Note that the attempt ended in an error."""
        self.ending, self.error = "error", " ".join(str(cause).split())[:MAX_ERROR_CHARACTERS]

    def act(self, action: tools.Action) -> str:
        """Answer an action; if it cannot be done, ActionError says why, and nothing has changed."""
        start = time.perf_counter()
        foreign_s = 0.0
        try:
            if self.is_submitted:
                raise ActionError("the attempt has ended; nothing can be changed any more")
            match action:
                case tools.View(name, first, last):
                    return view(self.files, name, first, last)
                case tools.Create(name, text):
                    self.files = created(self.files, name, text)
                    return f"{name} is written: {len(source_lines(text))} lines"
                case tools.Replace(name, old, new):
                    self.files = replaced(self.files, name, old, new)
                    return f"{name} is changed"
                case tools.Delete(name):
                    self.files = deleted(self.files, name)
                    return f"{name} is deleted"
                case tools.JudgeSource(name, first, last):
                    return observations.show_source(name, first, last)
                case tools.ShowGraph(number):
                    return self._show(number)
                case tools.CheckMatch():
                    answer = self._check()
                    foreign_s = time.perf_counter() - start  # the candidate is loaded and traced
                    return answer
                case tools.Evaluate() | tools.Compare():
                    is_timed = isinstance(action, tools.Evaluate)
                    answer, foreign_s = self._evaluate(start, is_timed)
                    return answer
            self.is_submitted = True
            return self._submitted()
        finally:
            seconds = time.perf_counter() - start
            times = (seconds, seconds - foreign_s)
            self.tool_times.append(attempt.ToolTime(self.turn, tools.tool_name(action), *times))

    def _show(self, number: int) -> str:
        graphs = self.task.graphs
        if not 0 <= number < len(graphs):
            raise ActionError(f"there is no graph {number}; there are 0 to {len(graphs) - 1}")
        return graph_text(graphs[number], number, len(graphs))

    def _check(self) -> str:
        try:
            matches = self.evaluator.check_matches(self.task, self.files)
        except PassFolderError as cause:
            raise ActionError(observations.plain(str(cause), self.evaluator.root)) from cause
        return observations.match_text(matches, self.task, self.evaluator.root)

    def _evaluate(self, start: float, is_timed: bool) -> tuple[str, float]:
        """Answer an evaluation begun at `start`; return also its seconds that were not our own."""
        try:
            trials = self.evaluator.judge(self.task, self.files, self.unseen, is_timed)
        except PassFolderError as cause:
            raise ActionError(observations.plain(str(cause), self.evaluator.root)) from cause
        seconds, root = time.perf_counter() - start, self.evaluator.root
        phases = [trial.phases_s.get(name, 0.0) for trial in trials for name in CANDIDATE_PHASES]
        foreign_s = sum(phases) + sum(trial.load_s or 0.0 for trial in trials)
        evaluation = attempt.Evaluation(
            turn=self.turn,
            files=dict(self.files),
            variants=tuple(observations.variant_result(trial, root) for trial in trials),
            score=observations.task_score(trials),
            seconds=round(seconds, 4),
            overhead_s=round(max(seconds - foreign_s, 0.0), 4),
        )
        self.evaluations.append(evaluation)
        self.trials.append(trials)
        number = len(self.evaluations) - 1
        if not is_timed:
            self.compared.add(number)
        return observations.evaluation_text(evaluation, number, self.best, self.task), foreign_s

    def _submitted(self) -> str:
        if self.best is None:
            return "submitted: nothing; no state was evaluated, or none won"
        score = self.evaluations[self.best].score
        how = "which is correct but was not timed" if score is None else f"with score {score:.3f}"
        return f"submitted: the state of evaluation {self.best}, {how}"


def new_session(
    task: Task, settings: AgentSettings, held_out: Suite | None, evaluator: StateJudge | None = None
) -> Session:
    """Return the session of a new attempt, judged by `evaluator`, or by one still to enter."""
    evaluator = evaluator or JudgeDesk(settings.run, settings.call)
    unseen = held_out_graphs(held_out, task.name)
    session = Session(task, evaluator, unseen, settings.is_guarded)
    if settings.kernels is not None:
        session.known_tools = tools.ATTACK_TOOLS
        session.files = read_files(Path(settings.kernels) / task.name)
    return session
