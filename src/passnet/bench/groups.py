"""Wins and losses of a candidate by groups of graphs."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import geometric_mean
from typing import TypeAlias

from passnet.bench.scores import Row, measured
from passnet.data.dataset.store import main_dtype
from passnet.errors import InputError
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.suite.suite import Suite
from passnet.judge.task import TaskGraph

BY_TIME = "time"
"""Grouping by the time of a call of eager torch; the only one that needs no suite."""

MARGIN = 0.05
"""Distance of the whole interval of a speedup from 1 for a faster or slower trial. Eight tenths of
the demo's graphs are within it when eager torch is measured against itself."""

_TIMES_MS = (0.05, 0.2, 1.0, 5.0)
_LENGTHS = (3, 4, 9, 19)

_OfGraph: TypeAlias = Callable[[TaskGraph], str]


@dataclass(frozen=True, slots=True)
class Group:
    """The results of one candidate on the graphs of one group, without unstable trials."""

    name: str
    candidate: str
    num_trials: int
    geomean_speedup: float | None
    """Mean over correct trials (t = -5); None without any."""

    faster: float
    """Share of correct trials whose whole speedup interval is above 1 by `MARGIN`."""

    slower: float
    """Share of correct trials whose whole speedup interval is below 1 by `MARGIN`."""

    failed: float
    """Share of incorrect trials."""

    failed_nearer: float
    """Share of incorrect trials that are no further from float64 than eager torch, as those of a
    compiler that rounds less often."""


def group_rows(rows: Sequence[Row], by: str, suite: Suite | None = None) -> list[Group]:
    """Group trials by a name of `GROUPINGS`; short graphs before long, else large groups first.

    `suite` is that of the run, and not needed for "time".

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
    least_ms: dict[str, float] = {}
    for row in rows:
        if row.reference_ms is not None:
            least_ms[row.graph] = min(row.reference_ms, least_ms.get(row.graph, row.reference_ms))
    names = {graph: range_of(time_ms, _TIMES_MS, " ms") for graph, time_ms in least_ms.items()}
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
    """Return the group of every graph of a suite by a name of `GROUPINGS` but "time"."""
    return {graph.name: _OF_GRAPH[by](graph) for graph in suite.graphs}


def group_order(names: Iterable[str]) -> list[str]:
    """Sort names of groups: ranges by their bounds, others by the alphabet."""
    return sorted(set(names), key=lambda name: (_RANK.get(name, len(_RANK)), name))


def range_names(bounds: Sequence[float], unit: str, joint: str = "to") -> list[str]:
    """Return the ranges between bounds, in words.

    Examples:
        >>> range_names((1, 5), " ops", "to below")
        ['below 1 ops', '1 to below 5 ops', 'from 5 ops']
    """
    between = [f"{low:g} {joint} {high:g}{unit}" for low, high in pairwise(bounds)]
    return [f"below {bounds[0]:g}{unit}", *between, f"from {bounds[-1]:g}{unit}"]


def range_of(value: float, bounds: Sequence[float], unit: str, joint: str = "to") -> str:
    """Return the range of a value, in words."""
    return range_names(bounds, unit, joint)[bisect_right(bounds, value)]


def range_ranks(ranges: Iterable[tuple[Sequence[float], str]], joint: str = "to") -> dict[str, int]:
    """Return the rank of each range, by its name, within its bounds."""
    return {
        name: rank
        for bounds, unit in ranges
        for rank, name in enumerate(range_names(bounds, unit, joint))
    }


_OF_GRAPH: dict[str, _OfGraph] = {
    "ops": lambda graph: range_of(len(graph.graph.program.ops), _LENGTHS, " ops"),
    "dtype": lambda graph: main_dtype(graph.graph.tensors),
    "domain": lambda graph: (graph.source.domain if graph.source else "") or "unknown",
    "library": lambda graph: graph.source.library if graph.source else "unknown",
}
GROUPINGS = (BY_TIME, *_OF_GRAPH)
"""Properties that graphs can be grouped by."""

_RANK = range_ranks(((_TIMES_MS, " ms"), (_LENGTHS, " ops")))
