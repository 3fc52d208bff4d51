"""Findings on held-out shapes of a task, unseen by the author of a pass."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from passnet.judge.candidate import Candidate
from passnet.judge.inspection.inspected_folders import InspectedFolders
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.score.status import Status
from passnet.judge.settings import JudgeSettings
from passnet.judge.task import TaskGraph
from passnet.judge.verdict.findings import Finding, finding

WRONG: tuple[Status, ...] = ("wrong_shape", "wrong_dtype", "crash", "timeout")
"""Statuses that are wrong on any shape: a pass may fail to match, or say that it cannot run."""
LEVEL = 0
"""The tolerance level from which an output counts as wrong and not as less accurate."""


def held_out_findings(
    parents: ParentPool,
    graphs: Sequence[TaskGraph],
    candidates: Sequence[Candidate],
    settings: JudgeSettings,
    inspected: InspectedFolders | None = None,
) -> dict[str, tuple[Finding, ...]]:
    """Return the findings on held-out graphs of a task, by candidate; nothing is timed."""
    untimed = replace(settings, timing=None)
    findings: dict[str, tuple[Finding, ...]] = defaultdict(tuple)
    for graph in graphs:
        for trial in judge_graph(parents, graph, candidates, untimed, inspected):
            text = f"on the held-out {graph.name}: "
            level = trial.smallest_t
            is_ok = trial.status == "ok"
            if is_ok and (level is None or level >= LEVEL) or trial.status in WRONG:
                name, text = "hard_coded_shape", text + (trial.error or trial.status)
            elif not is_ok:
                name, text = "held_out_shape", text + trial.status
            else:
                continue
            findings[trial.candidate] += (finding(name, text),)
    return findings
