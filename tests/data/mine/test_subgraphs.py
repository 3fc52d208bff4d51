"""The subgraphs of a graph, by kind; what cannot be cut is said, and the rest goes on."""

import pytest

from passnet.data.mine.subgraphs import LONE_ELEMENT, RangeRefusal, Subgraph, subgraphs
from passnet.errors import GraphError
from passnet.graph.canonical import op_sequence
from tests.data.mine.test_fusion import graph

NET = graph(
    "a = torch.matmul(x, w)\nb = a * y\nc = torch.tanh(b)\nd = torch.matmul(c, w)\nreturn (d,)",
    x=(8, 16),
    w=(16, 16),
    y=(8, 16),
)


def by_range(target, **options):
    pieces = list(subgraphs(target, **options))
    return {(piece.kind, piece.start, piece.stop): piece for piece in pieces}


def test_each_kind_has_its_ranges():
    pieces = by_range(NET, classical=[(0, 2)])
    assert [key for key in pieces if key[0] == "classical"] == [("classical", 0, 2)]
    assert [key for key in pieces if key[0] == "fusible"] == [("fusible", 1, 3)]
    assert [key[1:] for key in pieces if key[0] == "single"] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    fused = pieces["fusible", 1, 3]
    assert isinstance(fused, Subgraph)
    assert op_sequence(fused.graph.program) == ("operator.mul", "torch.tanh")
    assert [spec.shape for spec in fused.graph.tensors] == [(8, 16), (8, 16)]


def test_only_the_kinds_that_are_wanted_are_given():
    assert {key[0] for key in by_range(NET, kinds=["single"])} == {"single"}


def test_a_range_that_writes_into_what_is_outside_is_refused_and_the_rest_given():
    target = graph("a = torch.relu(x)\na += y\nb = torch.tanh(a)\nreturn (b,)", x=(4,), y=(4,))
    pieces = by_range(target, kinds=["single"])
    refused = pieces["single", 1, 2]
    assert isinstance(refused, RangeRefusal) and "writes into" in refused.reason
    assert isinstance(pieces["single", 2, 3], Subgraph)


def test_a_graph_that_has_no_plan_gives_its_other_kinds():
    target = graph("a = torch.nonzero(x)\nb = torch.tanh(y)\nreturn (a, b)", x=(4,), y=(4,))
    pieces = list(subgraphs(target, kinds=["fusible", "single"], where="here"))
    assert isinstance(pieces[0], RangeRefusal)
    assert (pieces[0].kind, pieces[0].start, pieces[0].stop) == ("fusible", 0, 0)
    assert "here: Inductor cannot lower it" in pieces[0].reason
    assert any(isinstance(piece, Subgraph) and piece.start == 1 for piece in pieces)


@pytest.mark.parametrize("classical", [[(0, 9)], [(2, 2)]])
def test_a_range_that_is_none_is_refused(classical):
    [piece] = subgraphs(NET, classical=classical, kinds=["classical"])
    assert isinstance(piece, RangeRefusal)


PARTS = graph(
    "t = torch.chunk(x, 2)\na = t[0]\nb = t[1]\nc = torch.relu(a)\nd = c * b\ne = d + 1\n"
    "f = e * 2\nu = torch.unbind(f)\ng = torch.tanh(d)\nh = u[0]\nreturn (g, h)",
    x=(4, 4),
)


def test_a_single_op_that_makes_a_tuple_comes_with_the_ops_that_take_it_apart():
    pieces = by_range(PARTS, kinds=["single"])
    assert isinstance(pieces["single", 0, 3], Subgraph)
    assert op_sequence(pieces["single", 0, 3].graph.program) == (
        "torch.chunk",
        "operator.getitem",
        "operator.getitem",
    )
    assert ("single", 1, 2) not in pieces and isinstance(pieces["single", 3, 4], Subgraph)


def test_an_element_far_from_its_tuple_is_no_single_op():
    pieces = by_range(PARTS, kinds=["single"])
    assert pieces["single", 9, 10].reason == LONE_ELEMENT
    assert "no tensor" in pieces["single", 7, 8].reason


def test_a_classical_range_loses_the_ops_that_keep_it_from_being_cut():
    pieces = by_range(PARTS, classical=[(0, 3), (1, 7), (2, 8), (1, 5)], kinds=["classical"])
    trimmed = [(key[1:], getattr(piece, "num_trimmed", None)) for key, piece in pieces.items()]
    assert trimmed == [((0, 3), 0), ((3, 7), 2), ((1, 5), None)]
    twice = list(subgraphs(PARTS, [(2, 8)], ["classical"]))
    assert [(piece.start, piece.stop, piece.num_trimmed) for piece in twice] == [(3, 7, 2)]


def test_a_graph_with_an_unknown_op_is_an_error_that_names_it():
    target = graph("a = torch.relu(x)\nb = torch.no_such_op(a)\nreturn (b,)", x=(4,))
    with pytest.raises(GraphError, match="torch.no_such_op is not on the list of allowed"):
        list(subgraphs(target, kinds=["single"]))


def test_a_large_graph_is_planned_in_windows_that_no_fusible_range_crosses():
    lines = [f"v{k + 1} = torch.{'tanh' if k % 2 else 'relu'}(v{k})" for k in range(12)]
    target = graph("\n".join(["v0 = x + 1.0", *lines, "return (v12,)"]), x=(8,))

    def fusible(planned_ops):
        pieces = subgraphs(target, kinds=["fusible"], planned_ops=planned_ops)
        return [(piece.start, piece.stop) for piece in pieces]

    assert fusible(13) == [(0, 13)]
    assert fusible(5) == [(0, 5), (5, 10), (10, 13)]
