"""The records of an attempt: its messages, the result of each state, and its submission."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeAlias, cast

from passnet.bench.environment import Environment
from passnet.core.jobs.run_folder import last_records
from passnet.core.records.serialise import SCHEMA_VERSION, encode
from passnet.errors import InputError
from passnet.judge.score.es import Score, aggregate, es_by_t
from passnet.judge.score.status import Status
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.settings import RunSettings
from passnet.judge.trial import Trial
from passnet.passes.files import Files

ATTEMPTS_FILE = "attempts.jsonl"

UNCHANGED_SCORE = 1.0
"""The AS of leaving the graphs of a task alone."""
Ending: TypeAlias = Literal[
    "submitted", "turns", "tokens", "time", "cost", "messages", "stalled", "error"
]
"""The reason for an attempt's end. stalled: no more tool calls. error: see `Attempt.error`."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """An author's call of a tool; `arguments` is a JSON object as text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the chat, as the OpenAI format has it."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class VariantResult:
    """The result of a state on one graph of the task; see `judge.trial.Trial`."""

    graph: str
    status: str
    smallest_t: int | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    error: str | None
    matches: dict[str, int]
    findings: tuple[str, ...]
    us: float | None = None
    """Microseconds of a call."""
    eager_us: float | None = None
    """Microseconds of a call of eager torch in the same rounds."""
    own_us: float | None = None
    """Microseconds of the same passes in the same rounds, without what the way of calling takes."""

    @property
    def is_correct(self) -> bool:
        """Return whether it ran, and its outputs are correct at t = -5, timed or not."""
        return is_correct(self)

    @property
    def is_untimed(self) -> bool:
        """Return whether it ran on a machine too busy to time it, so that no score counts it."""
        return self.status == "unstable"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A state of the pass folder and its results.

    `score` is the AS of the graphs that could be timed, or failed. `turn` counts the author's
    messages from 1. `overhead_s` is without loading, compiling, running and timing the candidate
    and its reference.
    """

    turn: int
    files: Files
    variants: tuple[VariantResult, ...]
    score: float | None
    seconds: float
    overhead_s: float
    has_files: bool = True
    """False if `files` was left out, since the record of the attempt was too long with it."""

    @property
    def is_passing(self) -> bool:
        """Return whether every graph is correct at t = -5, timed or not."""
        return all(variant.is_correct for variant in self.variants) and bool(self.variants)

    @property
    def results(self) -> dict[str, Score]:
        """Return its results by graph, as `best_state` compares them."""
        return {} if self.score is None else compared_results(self.variants)

    @property
    def exploits(self) -> tuple[str, ...]:
        """Return the names of the rejected exploits, each once."""
        return tuple(sorted({name for variant in self.variants for name in variant.findings}))


@dataclass(frozen=True, slots=True)
class ToolTime:
    """Seconds of a tool in a turn; `own_s` is without candidate code and reference."""

    turn: int
    tool: str
    seconds: float
    own_s: float


@dataclass(frozen=True)
class Attempt:
    """One attempt at a task.

    `best` is the number of the submitted evaluation (see `best_state`), and `score` its AS.
    `judged` are its trials measured anew at the end, with held-out shapes, and `final_score` their
    AS. A score is None if nothing is submitted, or the machine was too busy to time it.
    """

    schema_version: int
    task: str
    suite: str
    suite_hash: str
    author: str
    llm: str | None
    seed: int
    number: int
    messages: tuple[Message, ...]
    evaluations: tuple[Evaluation, ...]
    best: int | None
    score: float | None
    final_score: float | None
    ending: Ending
    settings: RunSettings
    environment: Environment
    versions: dict[str, str]
    started: str
    seconds: float
    num_turns: int
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    num_bad_actions: int = 0
    tool_times: tuple[ToolTime, ...] = ()
    judged: tuple[Trial, ...] = ()
    error: str | None = None
    details: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, int]:
        """Return its identity: task, author and number."""
        return self.task, self.author, self.number

    @property
    def last_score(self) -> float | None:
        """Return the last measured AS of the submission; None if never timed, 0 without one."""
        if self.best is None:
            return 0.0
        return self.score if self.final_score is None else self.final_score

    @property
    def last_results(self) -> dict[str, Score]:
        """Return the last measured results of the submission by graph."""
        if self.final_score is not None and self.judged:
            return compared_results(self.judged)
        return {} if self.best is None else self.evaluations[self.best].results

    @property
    def is_right(self) -> bool:
        """Return whether the submission was correct on every graph when it was evaluated."""
        return self.best is not None and self.evaluations[self.best].is_passing

    @property
    def untimed(self) -> str | None:
        """Return a sentence on a submission that could not be timed at the end, if so."""
        if self.best is None or self.final_score is not None:
            return None
        submission = f"evaluation {self.best} is kept"
        if self.score is None:
            return f"{submission}; it is correct, but was not timed: the machine was too busy"
        if self.judged:
            return (
                f"{submission} with its AS of {self.score:.3f}; it was not timed again at the end: "
                "the machine was too busy"
            )
        return None

    @property
    def files(self) -> Files:
        """Return the submitted pass folder, empty without one."""
        return self.evaluations[self.best].files if self.best is not None else {}

    @property
    def exploits(self) -> tuple[str, ...]:
        """Return the names of rejected exploits, at any turn or at the end, each once."""
        names = {name for evaluation in self.evaluations for name in evaluation.exploits}
        findings = [finding for trial in self.judged for finding in trial.findings]
        names |= {finding.name for finding in findings if finding.weight == "reject"}
        return tuple(sorted(names))


def is_correct(result: VariantResult | Trial) -> bool:
    """Return whether it ran, and its outputs are correct at t = -5, timed or not."""
    ran = result.status in ("ok", "unstable")
    return ran and result.smallest_t is not None and result.smallest_t <= CORRECT_AT


def compared_results(results: Iterable[VariantResult | Trial]) -> dict[str, Score]:
    """Return the results of a state by graph, as `best_state` compares them.

    A graph that could not be timed is left out, or counts as wrong if it is: that is no accident.
    """
    timed, wrong = {}, {}
    for each in results:
        if each.status != "unstable":
            timed[each.graph] = Score(cast(Status, each.status), each.smallest_t, each.speedup)
        elif not is_correct(each):
            wrong[each.graph] = Score("ok")
    return timed | wrong if timed else {}


def best_state(states: Sequence[tuple[Mapping[str, Score], bool]]) -> int | None:
    """Return the number of the best state, by the results of each (see `compared_results`) and
    whether all its graphs are correct; None without any.

    The highest AS wins, of equals the first. Two states are compared on the graphs that have
    results in both, and where the best has none, on those of the best before it: a graph that one
    of them could not time decides nothing. A state that is correct but was not timed comes before
    one that is wrong somewhere and scores less than leaving the graphs alone; of several, the last.

    Examples:
        >>> slow, fast, failed = Score("ok", -5, 1.2), Score("ok", -5, 2.0), Score("crash")
        >>> best_state([({"a": slow}, True), ({"a": fast}, True)]), best_state([({}, False)])
        (1, None)
        >>> best_state([({"a": failed}, False), ({}, True)]), best_state([({"a": slow}, True)])
        (1, 0)
        >>> best_state([({"a": fast, "b": slow}, True), ({"a": fast}, True)])  # "b" was not timed
        0
    """
    best: int | None = None
    known: dict[str, Score] = {}
    for number, (results, _) in enumerate(states):
        shared = sorted(known.keys() & results.keys())
        if shared:
            is_better = _as_of(results[each] for each in shared) > _as_of(
                known[each] for each in shared
            )
        else:
            is_better = len(results) > len(known)
        if is_better:
            best, known = number, {**known, **results}
    untimed = [
        number for number, (results, is_right) in enumerate(states) if not results and is_right
    ]
    is_poor = best is None or (
        _as_of(states[best][0].values()) < UNCHANGED_SCORE and not states[best][1]
    )
    return untimed[-1] if untimed and is_poor else best


def _as_of(results: Iterable[Score]) -> float:
    return aggregate(es_by_t(list(results)))


def num_flips(evaluations: tuple[Evaluation, ...]) -> int:
    """Return how often an attempt that passed failed and passed again."""
    states = [evaluation.is_passing for evaluation in evaluations]
    regained = sum(after and not before for before, after in pairwise(states))
    return regained - (any(states) and not states[0])


def read_attempts(paths: Sequence[Path]) -> list[Attempt]:
    """Return the attempts of runs, in the order of the paths and of their lines.

    A path is a run folder, or a file of attempts. One that is given twice counts once, and so does
    an attempt that a run took over from a part. The last record of an attempt counts; a torn last
    line is skipped. Raises InputError for a path without attempts, a line that is none, or another
    schema version.
    """
    if not paths:
        raise InputError("give a run folder with attempts")
    files: dict[Path, None] = {}
    for path in paths:
        file = path / ATTEMPTS_FILE if path.is_dir() else path
        if not file.is_file():
            missing = f"holds no {ATTEMPTS_FILE}" if path.is_dir() else "no such file"
            raise InputError(f"{path}: {missing}; give the folder of a run of an author")
        files[file.resolve()] = None
    attempts = {_digest(attempt): attempt for file in files for attempt in _read_file(file)}
    return list(attempts.values())


def _digest(attempt: Attempt) -> bytes:
    return hashlib.sha256(encode(attempt)).digest()


def _read_file(path: Path) -> list[Attempt]:
    attempts = list(last_records(path, Attempt, lambda attempt: attempt.key).values())
    if not attempts:
        raise InputError(f"{path}: holds no attempt")
    for attempt in attempts:
        if attempt.schema_version != SCHEMA_VERSION:
            raise InputError(
                f"{path}: an attempt has version {attempt.schema_version}, this passnet reads "
                f"version {SCHEMA_VERSION}; install the passnet that wrote it"
            )
        scores = (attempt.score, attempt.final_score, *(each.score for each in attempt.evaluations))
        if any(score is not None and score <= 0 for score in scores):
            raise InputError(f"{path}: an attempt has a score of 0 or less; scores are above 0")
    return attempts
