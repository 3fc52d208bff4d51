"""A subgraph is run on its parent's values, and what differs is found."""

from dataclasses import replace

import pytest
import torch

from benchmarks.subgraph_verification import verify
from benchmarks.tensor_differences import difference, max_error
from passnet.data.capture.capture import capture_values
from passnet.data.mine.cut import cut_range, inferred_specs, parent_of, single_assignment
from passnet.data.mine.subgraphs import Subgraph, subgraphs
from passnet.errors import CutError
from passnet.graph.spec import Graph, Op
from tests.data.capture.nets import mixed
from tests.data.mine.test_fusion import graph


def cuts(target: Graph, *ranges: tuple[int, int]) -> list[Subgraph]:
    program = single_assignment(target.program)
    parent = parent_of(program, inferred_specs(Graph(program, target.tensors)))
    return [Subgraph("classical", *span, cut_range(parent, *span)) for span in ranges]


def with_op(subgraph: Subgraph, index: int, **changed: object) -> Subgraph:
    """A subgraph with one op changed."""
    program = subgraph.graph.program
    body = list(program.body)
    op = body[index]
    assert isinstance(op, Op)
    body[index] = replace(op, **changed)
    changed_program = replace(program, body=tuple(body))
    return replace(subgraph, graph=replace(subgraph.graph, program=changed_program))


CHAIN = graph(
    "a = torch.relu(x)\na += y\nb = torch.tanh(a)\nc = b.transpose(0, 1)\nd = c + 1\n"
    "b *= 2\ne = d.transpose(0, 1)\nf = b + e\nreturn (f, c)",
    x=(4, 3),
    y=(4, 3),
)


def test_all_subgraphs_of_a_net_have_its_values():
    net, x = mixed()
    [captured] = capture_values(net, x)
    num_ops = len(captured.graph.program.ops)
    ranges = [(start, min(start + 5, num_ops)) for start in range(0, num_ops, 2)]
    cut = list(subgraphs(captured.graph, ranges, ["classical", "single"]))
    pieces = [subgraph for subgraph in cut if isinstance(subgraph, Subgraph)]
    checked = verify(captured.graph, pieces)
    assert [(span.start, span.stop) for span in checked] == [
        (subgraph.start, subgraph.stop) for subgraph in pieces
    ]
    assert {span.status for span in checked} == {"equal"} and len(pieces) > num_ops / 2


def test_in_place_ops_and_views_around_and_in_a_range_are_followed():
    checked = verify(CHAIN, cuts(CHAIN, (0, 2), (0, 3), (2, 4), (0, 8), (4, 5), (3, 5)))
    assert {span.status for span in checked} == {"equal"}
    assert {span.max_error for span in checked} == {0.0}


def test_another_op_is_a_different_value_with_its_size():
    [subgraph] = cuts(CHAIN, (2, 4))
    [checked] = verify(CHAIN, [with_op(subgraph, 0, target="torch.sin")])
    assert (checked.status, checked.reason) == ("different", "other values")
    assert checked.max_error is not None and 0 < checked.max_error < 1


def test_another_literal_is_another_shape():
    [subgraph] = cuts(CHAIN, (2, 4))
    op = subgraph.graph.program.ops[1]
    [checked] = verify(CHAIN, [with_op(subgraph, 1, args=(op.args[0], 0, 0))])
    assert checked.status == "different" and checked.reason.startswith("output 1: shape")
    assert checked.max_error is None


def test_another_layout_in_memory_differs():
    [subgraph] = cuts(CHAIN, (4, 5))
    op = subgraph.graph.program.ops[0]
    packed = with_op(subgraph, 0, target="Tensor.contiguous", args=op.args[:1])
    [checked] = verify(CHAIN, [packed])
    assert checked.status == "different"
    assert checked.reason == "output 0: strides (4, 1), not (1, 3)"


def test_a_subgraph_with_an_unknown_op_fails():
    [subgraph] = cuts(CHAIN, (4, 5))
    [checked] = verify(CHAIN, [with_op(subgraph, 0, target="torch.no_such_op")])
    assert checked.status == "failed" and "torch.no_such_op" in checked.reason


def test_a_subgraph_that_does_not_run_fails_alone():
    first, second = cuts(CHAIN, (2, 3), (4, 5))
    broken, good = verify(CHAIN, [with_op(first, 0, target="torch.det"), second])
    assert broken.status == "failed" and "the subgraph fails" in broken.reason
    assert good.status == "equal"


def test_a_subgraph_that_writes_into_its_argument_is_found_and_ends_the_run():
    first, second = cuts(CHAIN, (2, 3), (4, 5))
    writing, later = verify(CHAIN, [with_op(first, 0, target="torch.tanh_"), second])
    assert (writing.status, writing.reason) == ("different", "writes into an argument")
    assert later.status == "failed" and "[2, 3) wrote into the parent" in later.reason


def test_a_parent_that_writes_into_the_argument_of_a_range_is_found():
    target = graph("a = x * 1\nb = torch.tanh(y)\ny += 1\nreturn (a, b, y)", x=(4,), y=(4,))
    [subgraph] = cuts(target, (1, 2))
    [checked] = verify(target, [replace(subgraph, stop=3)])  # as if the range held the write, too
    assert (checked.status, checked.reason) == ("failed", "writes into an argument")


def test_random_numbers_are_those_of_the_parent():
    target = graph(
        "a = torch.nn.functional.dropout(x, 0.5, True)\nb = torch.rand_like(a)\nc = a + b\n"
        "d = torch.nn.functional.dropout(c, 0.5, True)\nreturn (d,)",
        x=(8, 8),
    )
    pieces = cuts(target, (0, 1), (0, 3), (1, 2), (1, 4), (3, 4))
    assert {span.status for span in verify(target, pieces)} == {"equal"}
    state = torch.get_rng_state()
    verify(target, pieces)
    assert torch.equal(state, torch.get_rng_state())


def test_a_parent_that_fails_fails_its_later_ranges():
    target = graph("a = torch.tanh(x)\nb = torch.relu(a)\nreturn (b,)", x=(4, 3))
    pieces = cuts(target, (0, 1), (1, 2))
    ops = list(target.program.ops)
    ops[1] = replace(ops[1], target="torch.det")
    first, second = verify(
        replace(target, program=replace(target.program, body=tuple(ops))), pieces
    )
    assert first.status == "equal" and second.status == "failed"
    assert "the parent fails at op 1 (torch.det)" in second.reason


def test_values_over_the_limit_end_the_run_and_arguments_over_it_are_refused():
    lines = "".join(f"a{n} = x + {n}\n" for n in range(8))
    returned = ", ".join(f"a{n}" for n in range(8))
    target = graph(f"{lines}return ({returned})", x=(1000,))
    first, last = verify(target, cuts(target, (0, 1), (7, 8)), max_bytes=20_000)
    assert first.status == "equal" and last.status == "failed"
    assert "the parent holds over 20000 bytes at op 4" in last.reason
    with pytest.raises(CutError, match="the arguments take 4000 bytes, more than 100"):
        verify(target, [], max_bytes=100)


def test_values_are_let_go_when_nothing_needs_them():
    lines = "a0 = x + 0\n" + "".join(f"a{n} = a{n - 1} + {n}\n" for n in range(1, 9))
    target = graph(f"{lines}return (a8,)", x=(1000,))
    checked = verify(target, cuts(target, (0, 1), (7, 9)), max_bytes=12_000)
    assert {span.status for span in checked} == {"equal"}


def test_a_nan_equals_a_nan_and_nothing_else():
    nan, inf = float("nan"), float("inf")
    assert max_error(torch.tensor([nan, inf, 1.0]), torch.tensor([nan, inf, 1.0])) == 0.0
    assert max_error(torch.tensor([nan]), torch.tensor([1.0])) is None
    assert max_error(torch.tensor([inf]), torch.tensor([1.0])) is None
    assert max_error(torch.tensor([1 + 2j]), torch.tensor([1 + 4j])) == 2.0
    assert max_error(torch.tensor([True, False]), torch.tensor([True, True])) == 1.0


def test_outputs_that_share_memory_otherwise_or_are_no_tensors_differ():
    x = torch.ones(3)
    assert difference([x, x.view(3)], [x, x.view(3)], []) == (0.0, "")
    assert difference([x, x.view(3)], [x, x.clone()], []) == (0.0, "other outputs share memory")
    assert difference([x], [(x,)], []) == (None, "output 0 is no tensor")
    assert difference([x.view(3)], [x.clone()], [x]) == (0.0, "other outputs share memory")
