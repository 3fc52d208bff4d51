"""Passes on shapes of their task that their author has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from passnet.judge.candidate import Candidate
from passnet.judge.findings import Finding
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.trial import JudgeSettings, Trial
from passnet.score.status import Status
from passnet.suite.suite import SuiteGraph

WRONG: tuple[Status, ...] = ("wrong_shape", "wrong_dtype", "crash", "timeout")
"""Statuses that are wrong on any shape. A pass that does not match, or that says by an exception
that it cannot, is not."""

LEVEL = 0
"""From this level of tolerance on an output is taken for wrong and not for less accurate."""


def held_out_findings(
    parents: ParentPool,
    graphs: Sequence[SuiteGraph],
    candidates: Sequence[Candidate],
    settings: JudgeSettings,
) -> dict[str, tuple[Finding, ...]]:
    """What candidates do on graphs of their task that were held out: findings by candidate.

    Raises:
        WorkerError: our own machinery failed.
    """
    found: dict[str, list[Finding]] = {item.name: [] for item in candidates}
    for graph in graphs:
        for trial in judge_graph(parents, graph, candidates, replace(settings, timing=None)):
            if _is_wrong(trial):
                text = f"on the held-out {graph.name}: {trial.error or trial.status}"
                found[trial.candidate].append(Finding("reject", "hard_coded_shape", text))
            elif trial.status != "ok":
                text = f"on the held-out {graph.name}: {trial.status}"
                found[trial.candidate].append(Finding("note", "held_out_shape", text))
    return {name: tuple(items) for name, items in found.items()}


def _is_wrong(trial: Trial) -> bool:
    if trial.status == "ok":
        return trial.smallest_t is None or trial.smallest_t >= LEVEL
    return trial.status in WRONG
