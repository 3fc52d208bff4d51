"""A candidate judged against a reference, each in a file of its own."""

from dataclasses import dataclass, replace
from pathlib import Path

from passnet.bench.scores import is_near
from passnet.core.jobs.process import JobLimits, JobRunner
from passnet.core.records.serialise import make_folder, replace_file, write_json
from passnet.core.records.untrusted import read_untrusted
from passnet.errors import InputError
from passnet.judge.candidate import LOADER_FILE, Candidate
from passnet.judge.desk.candidates import CandidateEntry
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.score.es import Score
from passnet.judge.settings import RunSettings
from passnet.judge.task import task_of
from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import Finding
from passnet.passes.folder import MAX_FILE_BYTES
from passnet_exchange.pairs.binding import BINDING_FILE, CANDIDATE_FILE, LOADER, ModuleBinding
from passnet_exchange.pairs.problem import (
    REFERENCES,
    Problem,
    ProblemOrder,
    captured_problem,
)

WRONG_VALUES = "wrong_values"
"""The status of a candidate that ran and gave outputs that are not the reference's."""


@dataclass(frozen=True, slots=True)
class PairResult:
    """The judgement of a pair.

    `status` is `ok`, `wrong_values`, or another status of a trial. Only with `ok` there is a
    speedup, with its 95 % interval. `smallest_t` is the level at which all outputs agree.
    """

    status: str
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    findings: tuple[Finding, ...]
    error: str | None
    smallest_t: int | None
    reference_ms: float | None
    candidate_ms: float | None
    load_s: float | None
    first_call_s: float | None
    sandbox: str


def judge_pair(
    reference: Path,
    candidate: Path,
    settings: RunSettings,
    limits: JobLimits,
    is_evaluated: bool = False,
    level: int = -5,
) -> PairResult:
    """Judge a candidate's file against a reference's.

    The reference is trusted, and captured within `limits`: its graph gives the expected values, and
    its own call is timed. The candidate runs in the sandbox alone. Outputs are right if they agree
    at `level`, or, at some level, are as near to float64 as the reference's.

    Raises:
        InputError: a file is missing, or the reference gives no graph.
        MeasureError: the judge itself failed several times.
    """
    text = read_untrusted(candidate, MAX_FILE_BYTES, InputError)
    with JobRunner() as runner:
        problem = captured_problem(
            ProblemOrder(str(reference.resolve()), is_evaluated), runner, limits
        )
    if problem.error is not None:
        raise InputError(f"{reference} cannot be judged against: {problem.error}")
    return result_of(_trial(problem, reference.read_bytes(), text, settings), level)


def _trial(problem: Problem, own: bytes, text: bytes, settings: RunSettings) -> Trial:
    assert problem.binding is not None, "a problem without an error has one"
    task = task_of("pair", {"reference": problem.graph})
    with JudgeDesk(settings, None) as desk:
        entry = REFERENCES[problem.binding.entry]
        timed = _module(Path(desk.root, "reference"), own, replace(problem.binding, entry=entry))
        made = _module(Path(desk.root, "candidate"), text, problem.binding)
        [(_, [trial])] = desk.judge_entries(task, [CandidateEntry(made)], (), (), timed)
        error = trial.error and trial.error.replace(f"{made.passes}/", "")
    return replace(trial, error=error)


def _module(folder: Path, text: bytes, binding: ModuleBinding) -> Candidate:
    """Return the candidate of a file and its binding, written to a new folder."""
    make_folder(folder)
    replace_file(folder / CANDIDATE_FILE, text)
    write_json(folder / BINDING_FILE, binding)
    write_json(folder / LOADER_FILE, LOADER)
    return Candidate(folder.name, "module", str(folder), "direct", root=str(folder))


def result_of(trial: Trial, level: int) -> PairResult:
    """Return the result of a trial, right or wrong at a tolerance level."""
    status, error = str(trial.status), trial.error
    if status == "ok":
        score = Score("ok", trial.smallest_t, trial.speedup, is_near(trial))
        if score.is_correct(level) or score.against_float64().is_correct(level):
            error = None
        else:
            agree = "none" if trial.smallest_t is None else f"t = {trial.smallest_t}"
            status = WRONG_VALUES
            error = error or f"outputs agree with the reference's from {agree}, not at t = {level}"
    is_right = status == "ok"
    return PairResult(
        status,
        trial.speedup if is_right else None,
        trial.speedup_low if is_right else None,
        trial.speedup_high if is_right else None,
        trial.findings,
        error,
        trial.smallest_t,
        trial.reference_ms,
        trial.candidate_ms,
        trial.load_s,
        trial.first_call_s,
        trial.sandbox,
    )
