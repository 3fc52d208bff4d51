"""Printing and parsing are inverse; fingerprints see what a graph is, not how it is named."""

from dataclasses import replace

import pytest
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

from passnet.errors import GraphError
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.spec import Alias, Device, Graph, Op, Program, Ref, Release, TensorSpec, retarget
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from tests.graph.programs import (
    DEVICES,
    NUMBERS,
    QUICK,
    all_names,
    bound_names,
    dead_names,
    graph_of,
    program_of,
    programs,
    renamed,
    with_alias,
)


@QUICK
@given(programs())
def test_a_printed_program_parses_to_itself(program: Program):
    assert parse_program(render_program(program)) == program


@QUICK
@given(programs())
def test_a_second_print_is_the_same_text(program: Program):
    text = render_program(program)
    assert render_program(parse_program(text)) == text


def test_a_print_reads_like_the_code_it_came_from():
    program = program_of(
        "x = torch.conv2d(a, b, None, (1, 1), padding=[0, -1]);  a = None",
        "x += 1; x[..., 1:, (0,)] = float('nan')",
        "y = x",
        "z = (-1) ** y",
        "w = torch.full((), -inf, dtype=torch.float32, device=device('cuda:0'))",
        "operator.add(x, b)",
        "x.relu_()",
        "v = w.shape",
        "u = v[0]; v = w = None",
        params="a: torch.Tensor, b",
        returns="(u, z)",
    )
    assert_expected_inline(
        render_program(program),
        """\
import torch
import operator
from torch import device
from torch import inf


class GraphModule(torch.nn.Module):
    def forward(self, a: torch.Tensor, b):
        x = torch.conv2d(a, b, None, (1, 1), padding=[0, -1])
        a = None
        x += 1
        x[Ellipsis, slice(1, None, None), (0,)] = float('nan')
        y = x
        z = (-1) ** y
        w = torch.full((), -inf, dtype=torch.float32, device=device(type='cuda', index=0))
        operator.add(x, b)
        x.relu_()
        v = w.shape
        u = v[0]
        v = w = None
        return (u, z)
""",
    )


@QUICK
@given(programs(), st.data())
def test_names_do_not_matter(program: Program, data: st.DataObject):
    graph = with_shapes(program)
    names = all_names(program)
    new_names = data.draw(st.permutations([*names, "v0", "i0"]))
    same_graph = renamed(graph, dict(zip(names, new_names, strict=False)))
    assert fingerprints(same_graph) == fingerprints(graph)


def with_shapes(program: Program) -> Graph:
    """The program with a shape of its own for every argument."""
    tensors = graph_of(program).tensors
    return Graph(program, tuple(replace(spec, shape=(size,)) for size, spec in enumerate(tensors)))


def test_rows_of_a_list_are_another_graph_than_a_place():
    by_index = [
        graph_of(program_of(f"y = x[{index}]", params="x", returns="(y,)"))
        for index in ("[0, 1]", "0, 1", "(0, 1)")
    ]
    rows, place, same_place = (fingerprints(graph).literals for graph in by_index)
    assert place == same_place != rows


@QUICK
@given(programs(), st.data())
def test_the_order_of_the_arguments_does_not_matter(program: Program, data: st.DataObject):
    graph = with_shapes(program)
    order = data.draw(st.permutations(range(len(graph.tensors))))
    params = tuple(program.params[index] for index in order)
    tensors = tuple(graph.tensors[index] for index in order)
    shuffled = Graph(replace(program, params=params), tensors)
    assert fingerprints(shuffled) == fingerprints(graph)


@QUICK
@given(programs(), st.data())
def test_liveness_lines_leave_no_trace(program: Program, data: st.DataObject):
    index = data.draw(st.integers(0, len(program.body)))
    hint = Release((data.draw(st.sampled_from(dead_names(program, index))),))
    body = (*program.body[:index], hint, *program.body[index:])
    assert fingerprints(graph_of(replace(program, body=body))) == fingerprints(graph_of(program))


@QUICK
@given(programs(), st.data())
def test_alias_lines_leave_no_trace(program: Program, data: st.DataObject):
    index = data.draw(st.integers(0, len(program.body)))
    name = data.draw(st.sampled_from(bound_names(program, index)))
    aliased = with_alias(program, index, name)
    assert len(aliased.body) == len(program.body) + 1
    assert fingerprints(graph_of(aliased)) == fingerprints(graph_of(program))


def test_an_alias_of_an_argument_that_is_read_later_does_not_change_its_number():
    plain = program_of("x = a - b", returns="(x,)")
    aliased = program_of("t = b", "x = a - t", returns="(x,)")
    graphs = [
        Graph(program, (TensorSpec("a", (1,), "float32"), TensorSpec("b", (2,), "int64")))
        for program in (plain, aliased)
    ]
    assert fingerprints(graphs[0]) == fingerprints(graphs[1])


def with_last_op(program: Program, *args: object, target: str = "torch.mul") -> Graph:
    """The program with one more op, which it returns too."""
    body = (*program.body, Op("last", target, args))  # type: ignore[arg-type]
    return graph_of(Program(program.params, body, (*program.outputs, Ref("last"))))


@QUICK
@given(programs(), NUMBERS, NUMBERS)
def test_a_changed_literal_changes_the_literals_but_not_the_structure(
    program: Program, first_literal, second_literal
):
    value = program.outputs[0]
    first, second = (
        fingerprints(with_last_op(program, value, literal))
        for literal in (first_literal, second_literal)
    )
    assert first.structure == second.structure
    differ = (
        f"{type(first_literal)}{first_literal!r}" != f"{type(second_literal)}{second_literal!r}"
    )
    assert (first.literals != second.literals) == (first.full != second.full) == differ


@pytest.mark.parametrize(
    "first_literal, second_literal",
    [("1", "True"), ("1", "1.0"), ("'a'", "'b'"), ("torch.float32", "torch.half"), ("None", "0")],
)
def test_literals_of_other_kinds_are_other_literals(first_literal: str, second_literal: str):
    first, second = (
        fingerprints(graph_of(program_of(f"x = torch.sum(a, {literal})")))
        for literal in (first_literal, second_literal)
    )
    assert first.structure == second.structure and first.literals != second.literals


def test_tuples_lists_and_sizes_are_equal():
    texts = ("(2, 3)", "[2, 3]", "torch.Size([2, 3])")
    assert len({fingerprints(graph_of(program_of(f"x = a.view({text})"))) for text in texts}) == 1


def with_first_op(program: Program, op: Op) -> Program:
    """The program with one more op before all others."""
    return replace(program, body=(op, *program.body))


@QUICK
@given(programs(), st.sampled_from([{"shape": (3, 2)}, {"dtype": "float16"}]))
def test_a_changed_shape_or_dtype_changes_the_full_identity_only(program: Program, change):
    graph = graph_of(with_first_op(program, Op(None, "torch.relu", (Ref("in_0"),))))
    changed = replace(graph, tensors=(replace(graph.tensors[0], **change), *graph.tensors[1:]))
    before, after = fingerprints(graph), fingerprints(changed)
    assert (before.structure, before.literals) == (after.structure, after.literals)
    assert before.full != after.full


@QUICK
@given(programs())
def test_an_argument_that_nothing_reads_does_not_matter(program: Program):
    graph = graph_of(program)
    more = replace(program, params=(*program.params, replace(program.params[0], name="unread")))
    extra = Graph(more, (*graph.tensors, TensorSpec("unread", (7,), "int8")))
    assert fingerprints(extra) == fingerprints(graph)


@QUICK
@given(programs(), st.sampled_from(["torch.add", "Tensor.mul", "operator.mul"]))
def test_another_op_is_another_structure(program: Program, target: str):
    args = (program.outputs[0], program.outputs[0])
    first = fingerprints(with_last_op(program, *args))
    second = fingerprints(with_last_op(program, *args, target=target))
    assert first.structure != second.structure and first.literals != second.literals


@pytest.mark.parametrize(
    "first_lines, second_lines",
    [
        (["x = a + b", "y = x + a"], ["x = a + b", "y = x + b"]),
        (["x = a + b", "y = x + x"], ["x = a + b", "y = x + a"]),
        (["x = a + a", "y = x + b"], ["x = a + b", "y = x + b"]),
        (["x = torch.relu(a)", "y = torch.relu(a)"], ["x = torch.relu(a)", "y = torch.relu(x)"]),
        (["x = a[b]", "y = x + x"], ["x = a[b:]", "x = a[0]", "y = x + x"]),
        (["y = torch.add(a, b)"], ["y = torch.add(a, out=b)"]),
    ],
)
def test_another_data_flow_is_another_structure(first_lines: list[str], second_lines: list[str]):
    first, second = (
        fingerprints(graph_of(program_of(*lines, returns="(y,)")))
        for lines in (first_lines, second_lines)
    )
    assert first.structure != second.structure


def test_other_outputs_are_another_structure():
    lines = ("x = torch.relu(a)", "y = torch.tanh(x)")
    structures = [
        fingerprints(graph_of(program_of(*lines, returns=returns))).structure
        for returns in ("(x, y)", "(y, x)", "(y,)", "(y, y)")
    ]
    assert len(set(structures)) == 4


@QUICK
@given(programs(), DEVICES)
def test_device_literals_do_not_matter(program: Program, device: Device):
    graph = with_last_op(program, program.outputs[0], device)
    assert fingerprints(graph) == fingerprints(retarget(graph, "cuda", 3))


def test_an_argument_without_a_spec_is_refused_where_others_have_one():
    graph = Graph(program_of("x = a + b"), (TensorSpec("a", (1,), "float32"),))
    with pytest.raises(GraphError, match="argument b has no shape and dtype"):
        fingerprints(graph)
    assert fingerprints(Graph(graph.program, ())).full is None


@QUICK
@given(programs())
def test_the_op_sequence_is_the_targets_in_order(program: Program):
    ops = [statement for statement in program.body if not isinstance(statement, (Alias, Release))]
    assert op_sequence(program) == tuple(op.target for op in ops)
