"""Findings on the conduct of a measured candidate, besides right and wrong."""

from collections.abc import Sequence

import numpy as np

from passnet.judge.inspection.rules import RulesName
from passnet.judge.processes.loaded_worker import LoadedWorker
from passnet.judge.protocol.messages import Observed
from passnet.judge.timing.estimate import Rounds, low_mean, speedup
from passnet.judge.timing.roofline import Roofline
from passnet.judge.verdict.findings import Finding, finding

MAX_NAMED_OPS = 8

EARLY_RATIO = 2.0
EARLY_MS = 0.01
EARLY_READS = 6
"""Least number of copies to a device that prove early work, and by how much even the fastest must
exceed the reference's median: this ratio, and ten microseconds more."""

LATE_RATIO = 1.25
LATE_MS = 0.005
LATE_SHARE = 0.1
"""The quantile of deliveries that proves late work: even the fastest tenth takes longer than this
many times the reference's median, and five microseconds more. On an H100 that tenth took honest
workers 0.81 to 0.92 of the median, in eight comparisons."""

OVERHEAD_MARGIN = 0.95
"""A time below this share of what the way of calling takes by itself is impossible. Of six honest
passes on a busy machine, compiled calls took 1.22 to 1.74 of it, guarded ones 3.5 to 10.8."""

LEAST_DISTURBED, DISTURBED_SHARE = 3, 0.1
"""Standstills in which a worker runs, and their share of all, that show purpose: on a virtual
machine one in a thousand standstills of honest workers lasted less than it should."""


def torch_findings(observed: Sequence[Observed], rules: RulesName) -> list[Finding]:
    """Return the findings on torch ops in observed calls, under some rules."""
    findings = []
    for observation in observed:
        if not observation.ops:
            continue
        used = ", ".join(observation.ops[:MAX_NAMED_OPS])
        if rules == "strict":
            text = f"the replacement of {observation.name} computes with {used}"
            findings.append(finding("torch_fallback", text))
        elif observation.same_as_pattern:
            text = f"the replacement of {observation.name} runs the ops of its pattern: {used}"
            findings.append(finding("null_rewrite", text))
    return findings


def counted_findings(loaded: LoadedWorker | None) -> list[Finding]:
    """Return a finding if torch computed in a strict worker beyond its graph's own ops."""
    excess = loaded.op_budget.excess() if loaded and loaded.op_budget else None
    return [finding("torch_fallback", excess)] if excess else []


def roofline_findings(
    roofline: Roofline | None, rounds: Rounds, reference: Rounds
) -> list[Finding]:
    """Return a finding if times are shorter than is physically possible."""
    if not rounds or roofline is None:
        return []
    candidate_ms, reference_ms = (
        float(low_mean(np.array(times).reshape(-1))) for times in (rounds, reference)
    )
    proof = roofline.proof(candidate_ms, reference_ms)
    return [proof] if proof else []


def overhead_findings(
    way: str, rounds: Rounds, overhead_ms: float, direct: Rounds = ()
) -> list[Finding]:
    """Return a finding if calls are faster than their way of calling is by itself.

    If the same passes were measured in direct calls, their time is due too. Slow calls have few
    rounds, so the whole interval of the ratio must be impossible.
    """
    if not rounds:
        return []
    measured = np.array(rounds)
    due = np.full(measured.shape, overhead_ms)
    if np.shape(direct) == measured.shape:
        due += np.array(direct)
    if speedup(due, measured).low <= 1 / OVERHEAD_MARGIN:
        return []
    measured_ms = float(low_mean(measured.reshape(-1)))
    direct_ms = float(low_mean(due.reshape(-1))) - overhead_ms
    text = (
        f"{measured_ms * 1e3:.1f} us a {way} call is impossible: one of a graph without ops takes "
        f"{overhead_ms * 1e3:.1f} us, and a direct call {direct_ms * 1e3:.1f} us "
        f"({OVERHEAD_MARGIN:.0%} of both is allowed)"
    )
    return [finding("physical_floor", text)]


def company_findings(loaded: LoadedWorker, usual_threads: int) -> list[Finding]:
    """Return findings on threads and processes beside a candidate's calls, and end its worker."""
    threads = loaded.worker.num_threads()
    loaded.worker.close(is_awaited=False)
    findings = []
    if threads > 2 * usual_threads - 1:
        text = f"{threads} threads at the end, the reference has {usual_threads}"
        findings.append(finding("background_thread", text))
    if num_beside := loaded.worker.num_ended or loaded.worker.num_left:
        text = f"{num_beside} processes left beside the worker"
        findings.append(finding("background_process", text))
    return findings


def disturbance(total_ns: Sequence[int]) -> list[Finding]:
    """Return a finding if a worker ran in many standstills, from its total time at each."""
    turns_ns = np.diff(total_ns, prepend=0)
    num_turns = int(np.count_nonzero(turns_ns))
    if num_turns < max(LEAST_DISTURBED, DISTURBED_SHARE * len(total_ns)):
        return []
    text = f"ran for {sum(turns_ns) / 1e3:.1f} us in {num_turns} of {len(total_ns)} standstills"
    return [finding("disturbs_others", text)]


def early_work(up_ms: Sequence[float], reference_ms: Sequence[float]) -> list[Finding]:
    """Return a finding if a worker does more before a burst than copy its arguments."""
    text = (
        "at least {:.1f} us to copy the arguments of a burst to the device, the reference most "
        "often takes {:.1f} us"
    )
    return _longer("early_work", text, up_ms, reference_ms, (0.0, EARLY_RATIO, EARLY_MS))


def late_work(delivery_ms: Sequence[float], reference_ms: Sequence[float]) -> list[Finding]:
    """Return a finding if a worker does more after a burst than deliver outputs."""
    text = (
        "most often more than {:.1f} us to deliver the outputs of calls, the reference takes "
        "{:.1f} us for the same bytes"
    )
    return _longer("late_work", text, delivery_ms, reference_ms, (LATE_SHARE, LATE_RATIO, LATE_MS))


def _longer(
    name: str,
    text: str,
    times_ms: Sequence[float],
    reference_ms: Sequence[float],
    limits: tuple[float, float, float],
) -> list[Finding]:
    """Return a finding if a quantile of a worker's times exceeds the reference's median by far."""
    share, ratio, slack_ms = limits
    if len(times_ms) < EARLY_READS or not reference_ms:
        return []
    quantile_ms, typical_ms = float(np.quantile(times_ms, share)), float(np.median(reference_ms))
    if quantile_ms <= ratio * typical_ms + slack_ms:
        return []
    return [finding(name, text.format(quantile_ms * 1e3, typical_ms * 1e3))]
