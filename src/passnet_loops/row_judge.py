"""The judge over rows of training data and answers of llms: correct or not, by the strict rules.

Without timing, a row costs the start of two processes, one call of the C++ compiler and the
comparison on all kinds of inputs.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from passnet.errors import InputError, MeasureError, PassFolderError
from passnet.graph.spec import Graph
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.passes.files import Files
from passnet_loops.examples import JudgeVerdict, now_s
from passnet_loops.language.expand import expand_answer
from passnet_loops.language.prompt import Prompt

QUICK_TIMING = TimingPlan(seconds=0.3, max_rounds=30)
"""A short measurement, for rewards; scores are measured as a benchmark does."""


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """What the judge said of a pass folder on one graph.

    `verdict` is "not judged" where it was `unstable`, or the judge's own machinery failed.
    `findings` name the cheats that it is rejected for, `flags` what a person should read.
    """

    verdict: JudgeVerdict
    status: str
    seconds: float
    smallest_t: int | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    findings: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    error: str | None = None
    trial: Trial | None = None


@dataclass
class AnswerJudge:
    """Judges pass folders one after the other, in processes that stay."""

    timing: TimingPlan | None = None
    sandbox: str = "auto"
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "AnswerJudge":
        judge = JudgeSettings(
            rules="strict", timing=self.timing, compile_timeout_s=60.0, call_timeout_s=10.0
        )
        settings = RunSettings(judge, sandbox=self.sandbox)  # type: ignore[arg-type]
        self._evaluator = self._stack.enter_context(JudgeDesk(settings, "direct"))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def judge(self, graph: Graph, files: Files, name: str = "graph") -> JudgedAnswer:
        """What comes of a folder on a graph."""
        return self.judge_graphs([TaskGraph("task", name, graph)], files)[0]

    def judge_answer(self, graph: TaskGraph, prompt: Prompt, answer: str) -> JudgedAnswer:
        """What comes of an answer to a prompt on its graph; wrong if it has no meaning."""
        start = now_s()
        try:
            return self.judge_graphs([graph], expand_answer(prompt, answer))[0]
        except (InputError, RecursionError) as cause:
            seconds, error = now_s() - start, str(cause)[:300]
            return JudgedAnswer("wrong", "compile_error", seconds, error=error)
        except MeasureError as cause:
            return JudgedAnswer("not judged", "judge failed", 0.0, error=str(cause)[:300])

    def judge_graphs(self, graphs: Sequence[TaskGraph], files: Files) -> list[JudgedAnswer]:
        """What comes of a folder on the graphs of a task."""
        start = now_s()
        task = Task(graphs[0].task, tuple(graphs))
        try:
            trials = self._evaluator.judge(task, files)
        except PassFolderError as cause:
            failed = JudgedAnswer("wrong", "compile_error", now_s() - start, error=str(cause)[:300])
            return [failed] * len(graphs)
        return [judged_answer(trial, (now_s() - start) / len(trials)) for trial in trials]


def judged_answer(trial: Trial, seconds: float) -> JudgedAnswer:
    """What a trial says of an answer."""
    rejected = tuple(f.name for f in trial.findings if f.weight == "reject")
    flags = tuple(f.name for f in trial.findings if f.weight == "flag")
    is_right = trial.status == "ok" and trial.smallest_t is not None
    is_right = is_right and (trial.smallest_t or 0) <= CORRECT_AT and not rejected
    verdict: JudgeVerdict = "correct" if is_right else "wrong"
    if trial.status in ("unstable", "reference_error"):
        verdict = "not judged"
    return JudgedAnswer(
        verdict,
        trial.status,
        seconds,
        trial.smallest_t,
        trial.speedup,
        trial.speedup_low,
        rejected,
        flags,
        trial.error[:300] if trial.error else None,
        trial,
    )
