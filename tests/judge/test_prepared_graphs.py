"""Problems are kept while there is room."""

from passnet.graph.values.inputs import make_inputs
from passnet.judge.processes.loaded_worker import PreparedGraph, PreparedGraphs, prepare_graph
from tests.judge.folders import small_graph

GRAPHS = [small_graph().graph for _ in range(3)]


def made(problems: PreparedGraphs, *asked: tuple[int, int]) -> list[tuple[int, int]]:
    """What had to be made of the problems that were asked for: (graph, seed)."""
    new = []

    def make(number: int, seed: int) -> PreparedGraph:
        new.append((number, seed))
        return prepare_graph(GRAPHS[number], [make_inputs(GRAPHS[number], "fresh", seed)])

    for number, seed in asked:
        problems.get(GRAPHS[number], "cpu", seed, lambda at=(number, seed): make(*at))
    return new


def test_a_problem_is_made_once_for_a_graph_and_a_seed() -> None:
    asked = ((0, 0), (1, 0), (0, 0), (0, 1), (1, 0))
    assert made(PreparedGraphs(1 << 30), *asked) == [(0, 0), (1, 0), (0, 1)]


def test_without_room_none_is_kept() -> None:
    assert made(PreparedGraphs(), (0, 0), (0, 0)) == [(0, 0), (0, 0)]


def test_the_first_ones_are_kept() -> None:
    num_bytes = prepare_graph(GRAPHS[0], [make_inputs(GRAPHS[0], "fresh", 0)]).content.nbytes
    room = PreparedGraphs(5 * num_bytes)  # for two
    asked = ((0, 0), (1, 0), (2, 0), (0, 0), (1, 0), (2, 0))
    assert made(room, *asked) == [(0, 0), (1, 0), (2, 0), (2, 0)]
