"""The inspection of a pass folder in a process of its own, which may use so much and no more."""

import resource
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobRunner
from passnet.core.records.serialise import decode, encode, write_json
from passnet.errors import PassFolderError, WorkerError
from passnet.judge.findings import Finding
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import RULES, RulesName
from passnet.passes.folder import inspect_folder

MAX_SECONDS = 60
"""Of processor time; four times as much may pass."""

MAX_MEMORY_MIB = 2048
MAX_FRAMES = 20_000
"""Of Python, which what may be nested needs."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What the text of a pass folder gives away, or why it cannot be told."""

    findings: tuple[Finding, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class _Order:
    folder: str
    rules: RulesName
    max_seconds: int


def inspect_limited(folder: Path, rules: RulesName, runner: JobRunner) -> Inspection:
    """Inspect a pass folder in a process of a runner.

    Raises:
        WorkerError: our own machinery failed.
    """
    order = encode(_Order(str(folder.resolve()), rules, MAX_SECONDS)).decode()
    limits = JobLimits(4 * MAX_SECONDS, MAX_MEMORY_MIB)
    result = runner.run(Job(f"{__name__}:inspect_to", order, limits, f"{__name__}:ready"))
    if outcome := result.outcome(Inspection):
        return outcome.record
    if result.end.signal in (signal.SIGXCPU, signal.SIGKILL, signal.SIGSEGV):
        return _too_much(folder)
    raise WorkerError(f"the inspection of {folder} failed: {result.failure}")


def _too_much(folder: Path) -> Inspection:
    return Inspection(
        failure=f"{folder}: its code takes more than {MAX_SECONDS} s or {MAX_MEMORY_MIB} MiB to "
        "inspect; put less of it into the folder"
    )


def ready(_: str) -> None:
    """Nothing but this module has to be imported before a process is forked."""


def inspect_to(payload: str, out: Path) -> None:
    """What runs in the process: inspect a folder, and leave what comes of it in another."""
    order = decode(payload, _Order)
    sys.setrecursionlimit(MAX_FRAMES)
    resource.setrlimit(resource.RLIMIT_CPU, (order.max_seconds, order.max_seconds))
    folder = Path(order.folder)
    try:
        findings = inspect_code(inspect_folder(folder), RULES[order.rules])
        inspection = Inspection(tuple(findings))
    except PassFolderError as cause:
        inspection = Inspection(failure=str(cause))
    except MemoryError:
        inspection = _too_much(folder)
    write_json(out / RECORD_FILE, inspection)
