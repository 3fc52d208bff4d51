"""Trials by groups of graphs, to see the wins and losses of a candidate."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import TypeAlias

from passnet.bench.scores import Row, measured
from passnet.data.dataset.store import main_dtype
from passnet.errors import InputError
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.suite.suite import Suite
from passnet.judge.task import TaskGraph

BY_TIME = "time"
"""Grouped by what a call takes in eager torch; the only grouping that needs no suite."""

MARGIN = 0.05
"""How far from 1 the whole interval of a speedup must be for a trial to be faster or slower. Eight
tenths of the demo's graphs are within it when eager torch is measured against itself; the interval
alone says how well one measurement repeats, not how two equal processes differ."""

_TIMES_MS = (0.05, 0.2, 1.0, 5.0)
_LENGTHS = (3, 4, 9, 19)

_OfGraph: TypeAlias = Callable[[TaskGraph], str]


@dataclass(frozen=True, slots=True)
class Group:
    """The results of one candidate on the graphs of one group.

    `geomean_speedup` is over correct trials (t = -5), None when there is none. `faster` and
    `slower` are the shares of trials that are correct with the whole 95 % interval of the speedup
    beyond `MARGIN`, `failed` that of those that are not correct; the rest is as fast as eager, as
    far as was measured. `failed_nearer` is the share of all trials that are not correct although
    their values are no further from float64 than eager torch's: a compiler that rounds less often
    than eager torch differs from it. Unstable trials are in none.
    """

    name: str
    candidate: str
    num_trials: int
    geomean_speedup: float | None
    faster: float
    slower: float
    failed: float
    failed_nearer: float


def group_rows(rows: Sequence[Row], by: str, suite: Suite | None = None) -> list[Group]:
    """Group trials, each group with every candidate; short before long, else large first.

    Args:
        rows: the trials.
        by: a name of `GROUPINGS`.
        suite: what they were measured on; not needed for "time".

    Raises:
        InputError: a suite is needed, or lacks a graph.
    """
    names = _times(rows) if by == BY_TIME else _names(rows, _OF_GRAPH[by], by, suite)
    by_name: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.status != "unstable":
            by_name[names[row.graph]][row.candidate].append(row)

    def rank(name: str) -> tuple[int, int, str]:
        return _RANK.get(name, len(_RANK)), -max(map(len, by_name[name].values())), name

    return [
        _group(name, candidate, grouped)
        for name in sorted(by_name, key=rank)
        for candidate, grouped in by_name[name].items()
    ]


def _group(name: str, candidate: str, rows: Sequence[Row]) -> Group:
    correct = []
    nearer = 0
    for row in rows:
        trial = measured(row)
        if trial.score.is_correct(CORRECT_AT):
            correct.append(trial)
        else:
            nearer += trial.score.against_float64().is_correct(CORRECT_AT)
    speedups = [trial.score.speedup for trial in correct if trial.score.speedup is not None]
    faster = sum(trial.low is not None and trial.low > 1 + MARGIN for trial in correct)
    slower = sum(trial.high is not None and trial.high < 1 / (1 + MARGIN) for trial in correct)
    return Group(
        name,
        candidate,
        len(rows),
        geometric_mean(speedups) if speedups else None,
        faster / len(rows),
        slower / len(rows),
        1 - len(correct) / len(rows),
        nearer / len(rows),
    )


def _times(rows: Iterable[Row]) -> dict[str, str]:
    """Return the group of every graph by its least eager time in any trial."""
    least: dict[str, float] = {}
    for row in rows:
        if row.reference_ms is not None:
            least[row.graph] = min(row.reference_ms, least.get(row.graph, row.reference_ms))
    names = {graph: _range(time_ms, _TIMES_MS, " ms") for graph, time_ms in least.items()}
    return {row.graph: names.get(row.graph, "not timed") for row in rows}


def _names(rows: Iterable[Row], of_graph: _OfGraph, by: str, suite: Suite | None) -> dict[str, str]:
    if suite is None:
        raise InputError(f"to group by {by}, name the suite that was measured with --suite")
    graphs = {graph.name: graph for task in suite.tasks for graph in task.graphs}
    names = {}
    for row in rows:
        if row.graph not in graphs:
            raise InputError(
                f"suite {suite.name} has no graph {row.graph}; name the suite that was measured "
                "with --suite"
            )
        names[row.graph] = of_graph(graphs[row.graph])
    return names


def graph_groups(suite: Suite, by: str) -> dict[str, str]:
    """The group of every graph of a suite by a name of `GROUPINGS`; "time", which trials tell, is
    none of them.
    """
    return {graph.name: _OF_GRAPH[by](graph) for graph in suite.graphs}


def group_order(names: Iterable[str]) -> list[str]:
    """Sort names of groups: ranges by their bounds, others by the alphabet."""
    return sorted(set(names), key=lambda name: (_RANK.get(name, len(_RANK)), name))


def _range(value: float, bounds: Sequence[float], unit: str) -> str:
    """Return the range of a value in words."""
    return _ranges(bounds, unit)[bisect_right(bounds, value)]


def _ranges(bounds: Sequence[float], unit: str) -> list[str]:
    between = [f"{low:g} to {high:g}{unit}" for low, high in zip(bounds, bounds[1:], strict=False)]
    return [f"below {bounds[0]:g}{unit}", *between, f"from {bounds[-1]:g}{unit}"]


_OF_GRAPH: dict[str, _OfGraph] = {
    "ops": lambda graph: _range(len(graph.graph.program.ops), _LENGTHS, " ops"),
    "dtype": lambda graph: main_dtype(graph.graph.tensors),
    "domain": lambda graph: (graph.source.domain if graph.source else "") or "unknown",
    "library": lambda graph: graph.source.library if graph.source else "unknown",
}
GROUPINGS = (BY_TIME, *_OF_GRAPH)
"""Properties that graphs can be grouped by."""

_RANK = {
    name: rank
    for names in (_ranges(_TIMES_MS, " ms"), _ranges(_LENGTHS, " ops"))
    for rank, name in enumerate(names)
}
