"""The requests and answers of the reward service, as records."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.errors import ActionError
from passnet.judge.candidate import CallMode
from passnet.judge.score.status import MACHINES_FAULT
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import (
    SuiteRow,
)
from passnet.judge.trial import Trial
from passnet.passes.files import Files, created

SubmissionState: TypeAlias = Literal["waiting", "judging", "done"]
Purpose: TypeAlias = Literal["evaluation", "reward"]
"""The use of a judgement: an author chooses by evaluations, so rewards are measured anew."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A pass folder to judge on a task."""

    task: str
    files: Files
    suite: str | None = None
    """A suite of the service that has the task; None where `graphs` are the task."""

    graphs: tuple[SuiteRow, ...] = ()
    """The graphs of a task that the service does not know."""

    unseen: tuple[SuiteRow, ...] = ()
    """Other shapes, on which passes must not be wrong; the service adds its held-out graphs."""

    is_timed: bool = True
    repeat: int = 0
    """A new number asks for another judgement."""

    purpose: Purpose = "evaluation"
    """A reward is never answered with the measurement of an evaluation."""

    is_unchanged: bool = False
    """Judge the graphs as they are, called as passes are; `files` do not count."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of a job: trials, or a fault of ours in a sentence."""

    trials: tuple[Trial, ...] = ()
    fault: str | None = None

    @property
    def is_final(self) -> bool:
        """True without faults of ours or the machine: another judgement would say no more."""
        return self.fault is None and all(
            trial.status not in MACHINES_FAULT for trial in self.trials
        )

    @property
    def has_cheat(self) -> bool:
        """True if a trial is a cheat."""
        return any(trial.status == "cheat" for trial in self.trials)


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """The state of a submission."""

    id: str
    """Hash of its content."""

    state: SubmissionState
    judged: Judged | None = None
    """The result, once the state is "done"."""

    is_cached: bool = False
    """True if an earlier submission was answered so."""

    num_losses: int = 0
    """Judges lost over it."""

    waited_s: float | None = None
    judged_s: float | None = None
    judge: str | None = None


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Numbers of submissions by state."""

    waiting: int
    judging: int
    done: int


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """A service's settings, and its submissions, those before a restart included."""

    run: RunSettings
    call: CallMode
    queue: QueueCounts


@dataclass(frozen=True, slots=True)
class AnswerCount:
    """The place of an answer among the rewarded answers of a training."""

    num_before: int
    """Answers counted before it, also before a restart of the service or of the trainer."""


def judgeable(files: Files) -> Files:
    """Return files that a pass folder can have; for others none at all, which are judged wrong."""
    folder: Files = {}
    try:
        for name in sorted(files):
            folder = created(folder, name, files[name])
    except ActionError:
        return {}
    return folder
