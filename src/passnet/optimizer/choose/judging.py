"""Passes for one range, written by a program or an LLM and judged on this machine."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from passnet.agent.attempts.session import Session
from passnet.agent.authors.programs import program_author
from passnet.agent.run import run_agent
from passnet.agent.settings import SEARCH_TURNS, AgentLimits, AgentSettings, LlmSettings
from passnet.bench.cluster import check_machine
from passnet.bench.environment import Environment
from passnet.errors import AuthorError, GraphError, InputError, MeasureError, PassnetError, boundary
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.suite.suite import make_suite
from passnet.judge.task import Task, task_of
from passnet.judge.trial import Trial
from passnet.passes.files import Files, unguarded
from passnet.passes.library.entries import SETTINGS_FILE, TRIAL_FILE, EntryStatus, PassEntry
from passnet.passes.library.store import PassOrder, PassOutcome, RangeKey

LEAST_EVALUATIONS, LEAST_S = 4, 10.0
"""The least evaluations of a search and seconds of an LLM that are worth an attempt."""


@dataclass(frozen=True, slots=True)
class JudgedPass:
    """A pass folder for a range and its trial; without a trial, `error` says why.

    An interrupted author is not `is_final`; one without an answer is not `is_answered`.
    """

    files: Files
    trial: Trial | None
    error: str | None = None
    evaluation_s: float | None = None
    is_final: bool = True
    is_answered: bool = True


def judging_settings(num_threads: int = 1) -> RunSettings:
    """Return settings with the best sandbox of this machine and all ops of torch allowed."""
    return RunSettings(JudgeSettings(), num_threads, find_sandbox("auto").name)


def judge_range(desk: JudgeDesk, key: RangeKey, files: Mapping[str, str]) -> JudgedPass:
    """Judge a pass folder on a range."""
    try:
        [trial] = desk.judge(range_task(key), dict(files))
        return JudgedPass(dict(files), trial)
    except (MeasureError, InputError) as cause:
        return JudgedPass(dict(files), None, str(cause))


def trial_status(trial: Trial) -> EntryStatus | None:
    """Return the status of a pass by its trial; None where the machine was too busy to tell."""
    if trial.status == "unstable":
        return None
    if trial.status != "ok":
        return "failed"
    if trial.smallest_t is None or trial.smallest_t > CORRECT_AT:
        return "wrong"
    return "wins" if trial.speedup_low is not None and trial.speedup_low > 1 else "slower"


def pass_outcome(judged: JudgedPass, settings: RunSettings) -> PassOutcome:
    """Return a library's record of a judged pass and of its judge's settings."""
    trial = judged.trial
    if trial is None:
        return PassOutcome(None if judged.files else "nothing", judged.error)
    return PassOutcome(
        trial_status(trial) if judged.files else "nothing",
        judged.error or trial.error,
        trial.speedup,
        trial.speedup_low,
        trial.speedup_high,
        trial.reference_ms,
        trial.candidate_ms,
        {TRIAL_FILE: trial, SETTINGS_FILE: settings},
    )


def outcome_on(desk: JudgeDesk, key: RangeKey, files: Files) -> PassOutcome:
    """Judge a pass folder on a range and return a library's record of it."""
    return pass_outcome(judge_range(desk, key, files), desk.settings)


@contextmanager
def pass_judge(
    settings: RunSettings, environment: Environment | None = None
) -> Iterator[Callable[[PassOrder], tuple[PassEntry, PassOutcome]]]:
    """Open a judge of a library's passes; raise InputError on a machine unlike `environment`."""
    if environment is not None:
        check_machine(environment, settings)
    with JudgeDesk(settings, "direct") as desk:
        yield lambda order: (order[0], outcome_on(desk, *order[1:]))


def let_author_write(
    evaluator: JudgeDesk, key: RangeKey, author: str, most_evaluations: int = SEARCH_TURNS
) -> JudgedPass:
    """Let an author, a program, write for a range, and judge the pass.

    The best of several states is judged once more, so that its time is not the luckiest one.
    """
    session = Session(range_task(key), evaluator, first_op=key.num_layouts, is_strided=True)
    program = program_author(author, most_evaluations)
    try:
        program(session, 0)
        error = None
    except (AuthorError, GraphError, MeasureError) as cause:
        error = str(cause)
    best = session.best
    if best is None:
        return JudgedPass({}, None, error or "nothing of it could be judged")
    evaluation = session.evaluations[best]
    judged = JudgedPass(evaluation.files, session.trials[best][0])
    if sum(state.files != evaluation.files for state in session.evaluations):
        judged = judge_range(evaluator, key, evaluation.files)
    return JudgedPass(judged.files, judged.trial, judged.error or error, evaluation.seconds)


def range_task(key: RangeKey) -> Task:
    """Return a range as a task of one graph."""
    name = f"range_{key.fingerprint[:12]}"
    return task_of(name, {name: key.graph})


def let_llm_write(
    evaluator: JudgeDesk, key: RangeKey, llm: LlmSettings, seconds: float, folder: Path
) -> JudgedPass:
    """Let an LLM write for a range, in `seconds`, and judge the pass.

    The attempt is recorded in a new run folder within `folder`. Where the LLM fails or has too
    little time, the result says so and is not final.
    """
    task = range_task(key)
    suite = make_suite(task.name, task.graphs)  # an attempt's record names a suite and its hash
    limits = AgentLimits(seconds=max(1, int(seconds)))
    fields = {"is_judged_anew": False, "num_layouts": key.num_layouts}
    settings = AgentSettings("llm", llm, evaluator.settings, "direct", limits, **fields)
    # an attempt that was interrupted left its folder as it is
    paths = (folder / (f"{task.name}-{n}" if n else task.name) for n in range(10_000))
    try:
        with boundary(AuthorError, f"llm {llm.name}"):
            [attempt] = run_agent(suite, settings, next(p for p in paths if not p.exists()))
    except PassnetError as cause:
        text = " ".join(str(cause).split())
        return JudgedPass({}, None, text, is_final=False, is_answered=False)
    is_answered = attempt.num_turns > 0
    if not attempt.files:
        error = attempt.error or f"llm {llm.name} ended without a pass: {attempt.ending}"
        if attempt.ending == "time":
            failure = "wrote no pass" if is_answered else "gave no answer"
            error = f"llm {llm.name} {failure} in {limits.seconds} s"
        is_final = attempt.ending not in ("error", "time")
        return JudgedPass({}, None, error, is_final=is_final, is_answered=is_answered)
    bare = unguarded(attempt.files)
    if bare:
        error = f"{bare} has no guards, so that it would match in the net where it was not judged"
        return JudgedPass({}, None, error)
    return judge_range(evaluator, key, attempt.files)
