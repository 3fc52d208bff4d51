"""The fenced run of a candidate: an access beyond its tensors ends the worker, and is named.

It has a worker of its own after comparison and timing. Arguments, and all that torch allocates, lie
between pages without access; the graph is called directly, with torch for ops that passes leave.
The place of the fault is the worker's own account, and only ever a description.
"""

import signal
from dataclasses import replace

from passnet.judge.candidate import Candidate
from passnet.judge.processes.loaded_worker import LoadedWorker, PreparedGraph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.settings import JudgeSettings
from passnet.judge.verdict.check import Expected
from passnet.judge.verdict.findings import finding
from passnet.judge.verdict.verdict import Evidence

_FAULTS = (signal.SIGSEGV, signal.SIGBUS)


def is_worth_fencing(evidence: Evidence) -> bool:
    """Return whether a candidate was correct before it was timed, or crashed its worker."""
    if evidence.failure is not None:
        return evidence.failure[0] == "crash"
    return evidence.check is not None and evidence.check.comparison.t is not None


def fenced(
    parents: ParentPool,
    prepared: PreparedGraph,
    expected: Expected,
    candidate: Candidate,
    settings: JudgeSettings,
    evidence: Evidence,
) -> Evidence:
    """Return the evidence with findings of a fenced run, unchanged without `ParentPool.fence`."""
    library = parents.fence
    if library is None:
        return evidence
    called = replace(candidate, call="direct", residual="eager")
    try:
        with LoadedWorker(parents.of(candidate), prepared, called, settings, library) as worker:
            comparison, _ = expected.compare(worker, settings.strides)
            has_match = any(report.num_matches for report in worker.matches)
            if candidate.kind == "passes" and not has_match:
                return _with(evidence, "not_fenced", "no pass matched when it was called directly")
    except WorkerFailureError as failure:
        if failure.signal_number not in _FAULTS:
            return _with(evidence, "not_fenced", str(failure))
        named = _with(evidence, "out_of_bounds", failure.text)
        return replace(named, failure=("crash", f"out_of_bounds: {failure.text}"))
    if evidence.check is None or comparison.status != "ok" or comparison.t is not None:
        return evidence
    named = _with(evidence, "uninitialised_read", comparison.text or "outputs differ")
    return replace(named, check=replace(evidence.check, comparison=comparison))


def _with(evidence: Evidence, name: str, text: str) -> Evidence:
    return replace(evidence, findings=(*evidence.findings, finding(name, text)))
