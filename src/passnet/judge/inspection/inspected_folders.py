"""The inspected pass folders of a run, each inspected once, in a limited process of its own."""

import signal
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobRunner
from passnet.core.records.serialise import decode, encode, write_json
from passnet.errors import PassFolderError, WorkerError, boundary, is_exhausted
from passnet.judge.candidate import Candidate
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import RULES, RulesName
from passnet.judge.verdict.findings import Finding
from passnet.passes.folder import PassFolder, inspect_folder

MAX_FRAMES = 20_000
"""Python frames that the deepest allowed nesting needs."""


@dataclass(frozen=True, slots=True)
class InspectionLimits:
    """Limits of one inspection: memory and CPU seconds (four times as many of wall time)."""

    max_seconds: int = 60
    max_memory_mib: int = 2048


@dataclass(frozen=True, slots=True)
class Inspection:
    """The findings in a pass folder's text, or the reason why it could not be inspected."""

    findings: tuple[Finding, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class _Order:
    folder: str
    rules: RulesName
    limits: InspectionLimits
    is_module: bool


def inspect_limited(
    folder: Path,
    rules: RulesName,
    runner: JobRunner,
    limits: InspectionLimits = InspectionLimits(),
    is_module: bool = False,
) -> Inspection:
    """Inspect a pass folder, or the folder of a module, in a process of a runner."""
    order = encode(_Order(str(folder.resolve()), rules, limits, is_module)).decode()
    job_limits = JobLimits(4 * limits.max_seconds, limits.max_memory_mib)
    result = runner.run(Job(f"{__name__}:inspect_to", order, job_limits, f"{__name__}:ready"))
    if outcome := result.outcome(Inspection):
        return outcome.record
    end = result.end  # a process that ends before it used its own time was ended by others
    if end.signal == signal.SIGSEGV or end.timed_out or end.wall_s >= limits.max_seconds:
        return _too_much(folder, limits)
    raise WorkerError(f"the inspection of {folder} failed: {result.failure}")


def _too_much(folder: Path, limits: InspectionLimits) -> Inspection:
    return Inspection(
        failure=f"{folder}: its code takes more than {limits.max_seconds} s or "
        f"{limits.max_memory_mib} MiB to inspect; put less of it into the folder"
    )


def ready(_: str) -> None:
    """Do nothing: a process needs only this module's imports before it is forked."""


def inspect_to(payload: str, out: Path) -> None:
    """Inspect a folder in the process of a job, and write the `Inspection` to `out`."""
    import resource  # not on Windows, where nothing is judged

    order = decode(payload, _Order)
    sys.setrecursionlimit(MAX_FRAMES)
    most_seconds = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if most_seconds == resource.RLIM_INFINITY or most_seconds > order.limits.max_seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (order.limits.max_seconds,) * 2)
    folder, rules = Path(order.folder), RULES[order.rules]
    try:
        with boundary(PassFolderError, f"{folder}: cannot be inspected"):
            module = PassFolder(folder, (), (), "") if order.is_module else None
            findings = inspect_code(module or inspect_folder(folder), rules)
        inspection = Inspection(tuple(findings))
    except PassFolderError as error:
        if is_exhausted(error.__cause__):
            raise
        lacks_memory = isinstance(error.__cause__, MemoryError)
        inspection = _too_much(folder, order.limits) if lacks_memory else Inspection((), str(error))
    write_json(out / RECORD_FILE, inspection)


class InspectedFolders:
    """The inspections of pass folders under some rules, each made on first use.

    Without a `runner` each folder has an inspecting process of its own.
    """

    def __init__(self, rules: RulesName, runner: JobRunner | None = None) -> None:
        self._rules: RulesName = rules
        self._runner = runner
        self._inspections: dict[str, Inspection] = {}
        self._lock = threading.Lock()

    def findings(self, candidate: Candidate) -> tuple[Finding, ...]:
        """Return the findings in a candidate's pass folder; none for a broken one."""
        return self._inspection(candidate).findings

    def failure(self, candidate: Candidate) -> str | None:
        """Return why a candidate's pass folder could not be inspected, so that it must not run."""
        return self._inspection(candidate).failure

    def _inspection(self, candidate: Candidate) -> Inspection:
        if candidate.passes is None:
            return Inspection()
        with self._lock:
            if candidate.passes not in self._inspections:
                with ExitStack() as stack:
                    runner = self._runner or stack.enter_context(JobRunner())
                    folder, is_module = Path(candidate.passes), candidate.kind == "module"
                    inspection = inspect_limited(folder, self._rules, runner, is_module=is_module)
                self._inspections[candidate.passes] = inspection
            return self._inspections[candidate.passes]
