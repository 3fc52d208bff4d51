"""The judge of answers, by the strict rules."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from passnet.errors import InputError, MeasureError, PassFolderError
from passnet.judge.desk.desk import JudgeDesk, StateJudge
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.task import TaskGraph, task_of
from passnet.judge.trial import Trial
from passnet.passes.files import Files
from passnet_loops.data.examples import JudgeVerdict
from passnet_loops.language.expand import expand_answer
from passnet_loops.language.prompt import Prompt

MAX_ERROR_LENGTH = 300


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """The judge's result for a pass folder on one graph.

    `verdict` is "not judged" for an `unstable` trial, or where the judge's own machinery failed.
    """

    verdict: JudgeVerdict
    status: str
    seconds: float
    smallest_t: int | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    findings: tuple[str, ...] = ()
    """Exploits that reject it."""

    flags: tuple[str, ...] = ()
    """Findings for a person to read."""

    error: str | None = None


@dataclass(frozen=True)
class AnswerJudge:
    """Judge of answers, one after the other, at a desk that is open."""

    desk: StateJudge

    def judge_answer(self, graph: TaskGraph, prompt: Prompt, answer: str) -> JudgedAnswer:
        """Judge an answer on the graph of its prompt; one that cannot be expanded is wrong."""
        try:
            files = expand_answer(prompt, answer)
        except (InputError, RecursionError) as cause:
            error = str(cause)[:MAX_ERROR_LENGTH]
            return JudgedAnswer("wrong", "compile_error", 0.0, error=error)
        return self.judge_files(graph, files)

    def judge_files(self, graph: TaskGraph, files: Files) -> JudgedAnswer:
        """Judge a pass folder on a graph."""
        start = time.monotonic()
        try:
            [trial] = self.desk.judge(task_of(graph.task, {graph.name: graph.graph}), files)
        except PassFolderError as cause:
            seconds, error = time.monotonic() - start, str(cause)[:MAX_ERROR_LENGTH]
            return JudgedAnswer("wrong", "compile_error", seconds, error=error)
        except MeasureError as cause:
            error = str(cause)[:MAX_ERROR_LENGTH]
            return JudgedAnswer("not judged", "judge failed", 0.0, error=error)
        return judged_answer(trial, time.monotonic() - start)


@contextmanager
def open_judge(timing: TimingPlan | None = None) -> Iterator[AnswerJudge]:
    """Open a desk in the best sandbox of this machine, for answers by the strict rules."""
    settings = JudgeSettings(
        rules="strict", timing=timing, compile_timeout_s=60.0, call_timeout_s=10.0
    )
    with JudgeDesk(RunSettings(settings, sandbox=find_sandbox("auto").name), "direct") as desk:
        yield AnswerJudge(desk)


def judged_answer(trial: Trial, seconds: float) -> JudgedAnswer:
    """Return the result that a trial stands for."""
    rejected = tuple(f.name for f in trial.findings if f.weight == "reject")
    verdict: JudgeVerdict = "wrong"
    if trial.status in ("unstable", "reference_error"):
        verdict = "not judged"
    elif trial.status == "ok" and trial.smallest_t is not None and not rejected:
        verdict = "correct" if trial.smallest_t <= CORRECT_AT else "wrong"
    return JudgedAnswer(
        verdict,
        trial.status,
        seconds,
        trial.smallest_t,
        trial.speedup,
        trial.speedup_low,
        rejected,
        tuple(f.name for f in trial.findings if f.weight == "flag"),
        trial.error[:MAX_ERROR_LENGTH] if trial.error else None,
    )
