"""A corpus audited: each case with each choice of backends in a process of its own."""

import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobOutcome, JobResult, JobRunner
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION, decode, encode, write_json
from passnet.core.records.untrusted import untrusted_digest
from passnet.errors import InputError, no_such
from passnet.optimizer.settings import OptimizeSettings
from passnet_audit.nets.case import CaseFile
from passnet_audit.nets.outcome import DEFAULT, CaseOutcome

RUN_FILE = "audit.json"
RECORDS_FILE = "outcomes.jsonl"

EACH = "each"
"""The name of the default choice and every backend alone."""

Work: TypeAlias = Callable[[JobRunner, str], JobOutcome[CaseOutcome]]

MAX_LOG = 200
"""Most letters of the log of a process in a reason."""


@dataclass(frozen=True, slots=True)
class AuditInfo:
    """The settings of an audit; only one with the same settings can resume it."""

    schema_version: int
    settings: OptimizeSettings
    limits: JobLimits


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """The order to a process: a case, a choice of backends, and settings."""

    path: str
    kind: str
    asked: str
    settings: OptimizeSettings
    file_hash: str

    @property
    def name(self) -> str:
        """The name of the request within a run."""
        return _name(self.path, self.asked)


def _name(path: str, asked: str) -> str:
    return f"{path} by {asked}"


def choices(names: Sequence[str]) -> tuple[str, ...]:
    """Return the choices of backends of some names, of which `each` means several.

    Raises:
        InputError: there is no such backend.
    """
    from passnet.optimizer.backends.registry import BACKENDS  # with torch, which takes a second

    own = [n for n, b in BACKENDS.items() if b.when != "authors" and not b.missing]
    each = (DEFAULT, *(name for name in own if name != "eager"))
    for name in names:
        if name not in (EACH, DEFAULT, *BACKENDS):
            raise InputError(no_such("backend", name, (DEFAULT, EACH, *BACKENDS)))
    chosen = [choice for name in names for choice in (each if name == EACH else (name,))]
    return tuple(dict.fromkeys(chosen))


def run_audit(
    cases: Sequence[CaseFile],
    asked: Sequence[str],
    settings: OptimizeSettings,
    limits: JobLimits,
    out: Path | None = None,
    plan: RunPlan = DEFAULT_PLAN,
) -> list[CaseOutcome]:
    """Audit cases by each choice of backends; with `out`, keep each outcome there at once.

    Cases whose packages are missing are left out. With `plan.retry`, those that were not right are
    audited again.

    Raises:
        InputError: `out` holds an audit and `plan.resume` is off, or one with other settings; or it
            cannot be written to.
    """
    requests = [
        AuditRequest(str(case.path), case.kind, choice, settings, untrusted_digest(case.path).hex())
        for choice in asked
        for case in cases
        if case.missing is None
    ]
    by_name = {request.name: request for request in requests}
    work = partial(audit_isolated, requests=by_name, limits=limits)
    done: dict[str, CaseOutcome] = {}
    info = AuditInfo(SCHEMA_VERSION, settings, limits)
    for outcome in _outcomes(by_name, work, info, out, plan):
        done[_name(outcome.case, outcome.asked)] = outcome
        plan.progress(outcome)
    return [done[name] for name in by_name]


def _outcomes(
    requests: dict[str, AuditRequest],
    work: Work,
    info: AuditInfo,
    out: Path | None,
    plan: RunPlan,
) -> Iterator[CaseOutcome]:
    """Yield the outcomes of an earlier run, and of this one as soon as they are there."""
    names = list(requests)
    if out is None:
        for outcome in plan.executor(names, work, plan.num_workers):
            yield outcome.record
        return
    run = audit_folder(out)
    complaint = f"{out}: was audited with other settings; choose another --out, or give those"
    with run.begin(info, plan.resume, unchanged(complaint)):
        kept = run.records()
        same = [n for n in names if n in kept and kept[n].file_hash == requests[n].file_hash]
        done = [name for name in same if kept[name].is_right or not plan.retry]
        yield from (kept[name] for name in done)
        missing = [name for name in names if name not in done]
        yield from run.keep(plan.executor(missing, work, plan.num_workers), len(kept))


def audit_folder(out: Path) -> RunFolder[AuditInfo, CaseOutcome, str]:
    """Return the folder of an audit."""

    def key(outcome: CaseOutcome) -> str:
        return _name(outcome.case, outcome.asked)

    return RunFolder(out, RUN_FILE, AuditInfo, RECORDS_FILE, CaseOutcome, key, "outcomes")


def audit_isolated(
    runner: JobRunner, name: str, requests: dict[str, AuditRequest], limits: JobLimits
) -> JobOutcome[CaseOutcome]:
    """Audit a case in a process of its own; its crash or hang is in the outcome.

    Raises:
        WorkerError: our own machinery failed.
    """
    request = requests[name]
    job = Job(
        "passnet_audit.nets.run:audit_to",
        encode(request).decode(),
        limits,
        "passnet_audit.nets.run:prepare",
    )
    result = runner.run(job)
    outcome = result.outcome(CaseOutcome)
    if outcome is not None:
        return JobOutcome(replace(outcome.record, file_hash=request.file_hash))
    record = CaseOutcome(request.path, request.kind, request.asked, "crashed", _why(result))
    seconds = round(result.end.wall_s, 3)
    return JobOutcome(replace(record, seconds=seconds, file_hash=request.file_hash))


def _why(result: JobResult) -> str:
    """Return the reason why a process left no outcome: its end, and the end of its log."""
    end = result.end
    if end.timed_out:
        return result.failure
    ending = f"status {end.status}" if end.signal is None else signal.Signals(end.signal).name
    log = " ".join(result.log.split())
    tail = f": …{log[-MAX_LOG:]}" if len(log) > MAX_LOG else f": {log}" if log else ""
    return f"its process ended with {ending}{tail}"


def prepare(_: str) -> None:
    """Import the modules of the processes once in their parent."""
    from passnet_audit.nets.audit import use_dynamo_once

    use_dynamo_once()


def audit_to(payload: str, folder: Path) -> None:
    """Write the outcome of a case into a folder; runs in the case's process."""
    import torch

    from passnet_audit.nets.audit import audit_case
    from passnet_audit.nets.case import read_case

    request = decode(payload, AuditRequest)
    torch.set_num_threads(request.settings.threads or torch.get_num_threads())
    outcome = audit_case(read_case(Path(request.path)), request.asked, request.settings)
    write_json(folder / RECORD_FILE, outcome)
