"""The scores of a board: of all its graphs, and of those of a dtype, size, domain, or several."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from passnet.bench.groups import graph_groups, group_order
from passnet.bench.leaderboard.entry import scores_of
from passnet.bench.scores import CandidateScore
from passnet.pages.site.boards import Board, Line

DIMENSIONS = ("dtype", "ops", "domain")
"""What graphs are filtered by."""

Choice: TypeAlias = tuple[str | None, ...]
"""A name or None, which is all, for each of `DIMENSIONS`."""


@dataclass(frozen=True)
class BoardScores:
    """The score of every line for every choice of graphs that has any; None where nothing of it
    could be timed. `names` has what can be chosen.
    """

    names: dict[str, list[str]]
    scores: dict[Choice, dict[str, CandidateScore | None]]

    @property
    def whole(self) -> dict[str, CandidateScore | None]:
        """The scores on all graphs."""
        return self.scores[(None,) * len(DIMENSIONS)]


def board_scores(board: Board) -> BoardScores:
    """Return the scores of a board."""
    groups = {by: graph_groups(board.suite, by) if board.suite else {} for by in DIMENSIONS}
    graphs = {trial.graph for line in board.lines for trial in line.trials}
    names = {
        by: group_order(groups[by][graph] for graph in graphs if graph in groups[by])
        for by in DIMENSIONS
    }
    scores: dict[Choice, dict[str, CandidateScore | None]] = {}
    known: dict[frozenset[str], dict[str, CandidateScore | None]] = {}
    for choice, chosen in _choices(graphs, groups, names):
        if chosen not in known:
            known[chosen] = {line.name: _score(line, chosen) for line in board.lines}
        scores[choice] = known[chosen]
    return BoardScores(names, scores)


def _choices(
    graphs: set[str], groups: Mapping[str, Mapping[str, str]], names: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Choice, frozenset[str]]]:
    """Yield every choice that some graphs fit, with these graphs."""
    for choice in product(*([None, *names[by]] for by in DIMENSIONS)):
        wanted = [(by, name) for by, name in zip(DIMENSIONS, choice, strict=True) if name]
        chosen = frozenset(
            graph for graph in graphs if all(groups[by].get(graph) == name for by, name in wanted)
        )
        if chosen:
            yield choice, chosen


def _score(line: Line, graphs: frozenset[str]) -> CandidateScore | None:
    chosen = [trial for trial in line.trials if trial.graph in graphs]
    return scores_of(chosen).get(line.candidate)
