"""What the measurement of a candidate shows of its conduct: findings beside right and wrong."""

from collections.abc import Sequence

import numpy as np

from passnet.judge.findings import Finding, finding
from passnet.judge.inspection.rules import RulesName
from passnet.judge.processes.loaded_worker import LoadedWorker
from passnet.judge.protocol.messages import Observed
from passnet.judge.timing.clock import Rounds
from passnet.judge.timing.estimate import low_mean
from passnet.judge.timing.roofline import Roofline

MAX_NAMED_OPS = 8


def torch_findings(observed: Sequence[Observed], rules: RulesName) -> list[Finding]:
    """What the torch ops that replacements used in observed calls mean under some rules."""
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


def roofline_findings(roofline: Roofline, rounds: Rounds, reference: Rounds) -> list[Finding]:
    """Whether times are shorter than is physically possible."""
    if not rounds:
        return []
    candidate_ms, reference_ms = (
        float(low_mean(np.array(times).reshape(-1))) for times in (rounds, reference)
    )
    proof = roofline.proof(candidate_ms, reference_ms)
    return [proof] if proof else []


def company_findings(loaded: LoadedWorker, usual_threads: int) -> list[Finding]:
    """What runs beside a candidate's calls; its worker is ended. A kernel may have as many threads
    of its own as the reference's worker has, the usual ones.
    """
    threads = loaded.worker.num_threads()
    loaded.worker.close(is_awaited=False)
    findings = []
    if threads > 2 * usual_threads - 1:
        text = f"{threads} threads at the end, the reference has {usual_threads}"
        findings.append(finding("background_thread", text))
    if loaded.worker.num_left:
        text = f"{loaded.worker.num_left} processes left beside the worker at the end"
        findings.append(finding("background_process", text))
    return findings
