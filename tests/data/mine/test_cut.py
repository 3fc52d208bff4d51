"""A range cut out of a graph computes what the graph computed there, or is refused."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
import torch.fx
from hypothesis import given
from hypothesis import strategies as st

from passnet.data.capture.capture import capture_values
from passnet.data.mine.cut import (
    Parent,
    cut_range,
    inferred_specs,
    parent_of,
    single_assignment,
    trimmed_range,
)
from passnet.errors import CutError
from passnet.graph.fx.build import build
from passnet.graph.fx.from_fx import spec_from_tensor
from passnet.graph.spec import Graph, Op, Program, Ref, TensorSpec
from passnet.graph.values.inputs import make_inputs
from recipes.demo_suite import observed_specs
from tests.data.capture.nets import mixed
from tests.graph.programs import QUICK, graph_of, program_of, programs


@dataclass(frozen=True)
class Whole:
    """A graph in single-assignment form, its arguments, and its values after every op."""

    program: Program
    parent: Parent
    moments: tuple[dict[str, Any], ...]


def record(graph: Graph, values: tuple[Any, ...]) -> Whole:
    """Run a graph, keeping a copy of every value before the first op and after each one."""
    program = single_assignment(graph.program)
    held = {param.name: value for param, value in zip(program.params, values, strict=True)}
    moments = [copied(held)]

    class Recorder(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            result = super().run_node(n)
            if "custom" in n.meta:
                held[program.ops[n.meta["custom"]["op"]].output or ""] = result
                moments.append(copied(held))
            return result

    specs = observed_specs(Graph(program, graph.tensors), copies(values))
    with torch.no_grad():
        Recorder(build(program)).run(*values)
    return Whole(program, parent_of(program, specs), tuple(moments))


def test_a_range_of_a_cut_graph_names_its_arguments_once() -> None:
    program = program_of("x = torch.relu(a)", "y = x + b", "z = torch.tanh(y)", returns="(z,)")
    first = cut_range(parent_of(program, inferred_specs(graph_of(program))), 1, 3)
    again = cut_range(parent_of(first.program, inferred_specs(first)), 0, 1)
    for graph in (first, again):
        for spec in graph.tensors:
            assert sorted(set(spec.keys)) == sorted(spec.keys), spec.keys
    assert again.tensors[0].original_name == first.tensors[0].name


def copied(values: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(values, copies(tuple(values.values())), strict=True))


def copies(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value.clone() if isinstance(value, torch.Tensor) else value for value in values)


@cache
def parent() -> Whole:
    net, x = mixed()
    [captured] = capture_values(net, x)
    return record(captured.graph, copies(captured.values))


def expected_outputs(whole: Whole, graph: Graph, start: int, stop: int) -> list[torch.Tensor]:
    """The parent's values, after the range, of what the cut graph returns."""
    inside = whole.program.ops[start:stop]
    indices = {op.output: index for index, op in enumerate(graph.program.ops)}
    names = [inside[indices[arg.name]].output for arg in graph.program.outputs]
    return [whole.moments[stop][name] for name in names]


RANGES = st.tuples(st.integers(0, 40), st.integers(1, 12))


@QUICK
@given(RANGES)
def test_a_cut_graph_computes_what_its_parent_did(span: tuple[int, int]):
    whole = parent()
    start = span[0] % len(whole.program.ops)
    stop = min(len(whole.program.ops), start + span[1])
    try:
        graph = cut_range(whole.parent, start, stop)
    except CutError:
        return
    assert [op.target for op in graph.program.ops] == [
        op.target for op in whole.program.ops[start:stop]
    ]
    names = [spec.original_name for spec in graph.tensors]
    values = copies(tuple(whole.moments[start][name] for name in names))
    before = copies(values)
    with torch.no_grad():
        actual = build(graph.program)(*values)
    expected = expected_outputs(whole, graph, start, stop)
    torch.testing.assert_close(list(actual), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(values, before, rtol=0, atol=0)  # it writes into no argument
    for spec, value in zip(graph.tensors, values, strict=True):
        assert spec.shape == tuple(value.shape) and f"torch.{spec.dtype}" == str(value.dtype)


def test_most_short_ranges_of_a_net_can_be_cut():
    whole = parent()
    num_ops = len(whole.program.ops)
    num_cut = 0
    for start in range(num_ops - 1):
        try:
            cut_range(whole.parent, start, start + 2)
            num_cut += 1
        except CutError:
            pass
    assert num_cut > num_ops / 3


def test_the_whole_of_a_net_can_be_cut():
    whole = parent()
    graph = cut_range(whole.parent, 0, len(whole.program.ops))
    outputs = build(graph.program)(
        *(whole.moments[0][spec.original_name] for spec in graph.tensors)
    )
    last = whole.moments[-1]
    expected = {last[arg.name].sum().item() for arg in whole.program.outputs}
    assert expected <= {output.sum().item() for output in outputs}


@QUICK
@given(programs())
def test_single_assignment_names_every_value_once(program: Program):
    single = single_assignment(program)
    outputs = [op.output for op in single.ops if op.output is not None]
    names = [param.name for param in single.params] + outputs
    assert len(names) == len(set(names)) and len(single.body) == len(program.ops)
    assert [op.target for op in single.ops] == [op.target for op in program.ops]
    assert single_assignment(single) == single


def test_single_assignment_keeps_what_each_name_meant():
    program = program_of(
        "x = a + b", "y = x", "x += 1", "b = x * y", "x = None", params="a, b", returns="(b, y)"
    )
    assert single_assignment(program) == Program(
        program.params,
        (
            Op("x", "operator.add", (Ref("a"), Ref("b"))),
            Op("x_1", "operator.iadd", (Ref("x"), 1)),
            Op("b_1", "operator.mul", (Ref("x_1"), Ref("x"))),
        ),
        (Ref("b_1"), Ref("x")),
    )


def cut_of(start: int, stop: int, *lines: str, returns: str = "(z,)") -> Graph:
    """The cut of a range of a program on arguments a and b of shape (2, 3)."""
    program = single_assignment(program_of(*lines, returns=returns))
    values = [torch.ones(2, 3), torch.full((2, 3), 2.0)]
    tensors = tuple(map(spec_from_tensor, "ab", values))
    return cut_range(
        parent_of(program, observed_specs(Graph(program, tensors), values)), start, stop
    )


def test_arguments_and_outputs_are_those_that_cross_the_cut():
    graph = cut_of(
        1, 3, "x = a + b", "y = x * b", "w = torch.relu(y)", "z = w + y", returns="(z, w)"
    )
    assert [spec.original_name for spec in graph.tensors] == ["x", "b"]
    assert [spec.mean for spec in graph.tensors] == [3.0, 2.0]
    assert graph.program == program_of(
        "tmp_0 = in_0 * in_1",
        "tmp_1 = torch.relu(tmp_0)",
        params="in_0, in_1",
        returns="(tmp_0, tmp_1)",
    )


def test_a_write_into_a_value_made_inside_is_cut():
    assert len(cut_of(0, 2, "x = a + b", "x += 1", "z = torch.relu(x)").program.ops) == 2


WRITES = {
    "an in-place operator": ["x = a + b", "x += 1", "z = x * 2"],
    "an in-place method": ["x = a + b", "y = x.relu_()", "z = y * 2"],
    "an in-place argument": [
        "x = a + b",
        "y = torch.nn.functional.relu(x, inplace=True)",
        "z = y * 2",
    ],
    "an in-place call by keyword": [
        "x = a + b",
        "y = torch.nn.functional.relu(input=x, inplace=True)",
        "z = y * 2",
    ],
    "an in-place argument by place": [
        "x = a + b",
        "y = torch.nn.functional.hardtanh(x, 0.0, 6.0, True)",
        "z = y * 2",
    ],
    "an index assignment": ["x = a + b", "x[0] = 1", "z = x"],
    "an output argument": ["x = a + b", "y = torch.add(a, b, out=x)", "z = y * 2"],
    "a view": ["x = a + b", "v = x.view(-1); v += 1", "z = v * 2"],
    "a view of a view": ["x = a + b", "v = x[0]; w = v.unsqueeze(0); w.neg_()", "z = w * 2"],
    "an attribute that is a view": ["x = a + b", "v = x.T; v += 1", "z = v * 2"],
    "a view by keyword": [
        "x = a + b",
        "v = torch.reshape(input=x, shape=(-1,)); v += 1",
        "z = v * 2",
    ],
    "a view by einsum": ["x = a + b", "v = torch.einsum('ij->ji', x); v += 1", "z = v * 2"],
    "the second of two views": [
        "x = a + b",
        "y = a * 1; v = torch.broadcast_tensors(y, x); w = v[1]; w += 1",
        "z = w * 2",
    ],
}


@pytest.mark.parametrize("claim", WRITES)
def test_a_write_into_a_value_made_outside_is_refused_through(claim: str):
    lines = WRITES[claim]
    num_ops = len(program_of(*lines, returns="(z, x)").ops)
    with pytest.raises(CutError, match=r"op \d+ \(.*\) writes into \w+, made outside|no value"):
        cut_of(1, num_ops, *lines, returns="(z, x)")
    assert cut_of(0, num_ops, *lines, returns="(z, x)").program.ops


@pytest.mark.parametrize("start, stop", [(1, 1), (2, 1), (-1, 1), (0, 4), (3, 4)])
def test_a_range_that_is_empty_or_not_in_the_graph_is_refused(start: int, stop: int):
    lines = ("x = a + b", "y = x * b", "z = torch.relu(y)")
    with pytest.raises(CutError, match=rf"range \[{start}, {stop}\) is not within the 3 ops"):
        cut_of(start, stop, *lines)


def test_a_range_that_nothing_uses_is_refused():
    with pytest.raises(CutError, match=r"range \[0, 1\) makes no value that is used after it"):
        cut_of(0, 1, "x = a + b", "z = a * b")


@pytest.mark.parametrize(
    "line", ["torch._C._set_grad_enabled(False)", "torch._check(True)", "torch._assert(True, 'x')"]
)
def test_a_switch_of_state_is_refused(line: str):
    with pytest.raises(CutError, match=r"op 1 \(torch\.\S+\) switches a state"):
        cut_of(0, 3, "x = a + b", line, "z = x * 2")


def test_a_value_that_is_no_tensor_is_refused_in_and_out():
    lines = ("s = a.shape", "n = s[0]", "z = b.view((n, 3))")
    with pytest.raises(CutError, match="n crosses the cut and is no tensor"):
        cut_of(0, 2, *lines)
    with pytest.raises(CutError, match="n crosses the cut and is no tensor"):
        cut_of(2, 3, *lines)
    assert len(cut_of(0, 3, *lines).tensors) == 2


def test_a_symbolic_size_stays_an_integer():
    program = program_of("z = a.view(n)", params="a, n: torch.SymInt", returns="(z,)")
    tensors = (TensorSpec("a", (2, 3), "float32"), TensorSpec("n", (), "int64", data=(6,)))
    specs = observed_specs(Graph(program, tensors), [torch.ones(2, 3), 6])
    graph = cut_range(parent_of(program, specs), 0, 1)
    assert make_inputs(graph, "fresh", 0)[1] == 6
    assert type(make_inputs(graph, "fresh", 0)[1]) is int


def test_shapes_are_inferred_as_they_are_observed():
    net, x = mixed()
    [captured] = capture_values(net, x)
    graph = Graph(single_assignment(captured.graph.program), captured.graph.tensors)
    observed, inferred = observed_specs(graph, captured.values), inferred_specs(graph)
    assert observed.keys() == inferred.keys()
    for name, spec in observed.items():
        assert (inferred[name].shape, inferred[name].dtype) == (spec.shape, spec.dtype)


def parent_of_lines(*lines: str, returns: str = "(z,)") -> Parent:
    program = single_assignment(program_of(*lines, returns=returns))
    tensors = tuple(map(spec_from_tensor, "ab", [torch.ones(2, 3), torch.ones(2, 3)]))
    return parent_of(program, inferred_specs(Graph(program, tensors)))


SPLIT = ("t = torch.chunk(a, 2)", "x = t[0]", "y = t[1]", "w = x * y", "v = w + 1", "z = v * x")


def test_a_range_that_takes_a_tuple_apart_is_trimmed_to_what_can_be_cut():
    parent = parent_of_lines(*SPLIT)
    with pytest.raises(CutError, match="t crosses the cut and is no tensor"):
        cut_range(parent, 1, 6)
    assert trimmed_range(parent, 1, 6, max_trimmed=4, min_ops=2) == (3, 6)
    assert trimmed_range(parent, 0, 6, max_trimmed=4, min_ops=2) == (0, 6)


def test_no_more_is_trimmed_than_allowed():
    parent = parent_of_lines(*SPLIT)
    assert trimmed_range(parent, 1, 6, max_trimmed=1, min_ops=1) is None
    assert trimmed_range(parent, 1, 6, max_trimmed=4, min_ops=4) is None
    assert trimmed_range(parent, 9, 12, max_trimmed=1, min_ops=1) is None


def test_a_range_under_vmap_or_autocast_is_refused():
    lines = (
        "x = a + b",
        "s = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, {}, None)",
        "y = x @ b.T",
        "e = torch.amp.autocast_mode._exit_autocast(s)",
        "z = y * 2",
    )
    lines = (*lines[:2], "c = b.T", "y = torch.matmul(x, c)", *lines[3:])
    on, off = (
        parent_of_lines(*(line.format(state) for line in lines)) for state in ("True", "False")
    )
    with pytest.raises(CutError, match="lies where another op switches a state"):
        cut_range(on, 2, 4)
    assert len(cut_range(off, 2, 4).program.ops) == 2
    assert cut_range(on, 0, 1).program.ops and cut_range(on, 5, 6).program.ops
    vmap = parent_of_lines(
        "level = torch._C._functorch._vmap_increment_nesting(2, 'error')",
        "x = a + b",
        "left = torch._C._functorch._vmap_decrement_nesting()",
        "z = x * 2",
    )
    with pytest.raises(CutError, match="lies where another op switches a state"):
        cut_range(vmap, 1, 2)
    assert cut_range(vmap, 3, 4).program.ops


def test_all_ops_of_a_long_program_are_cut_in_time_that_grows_with_it():
    lines = ["x0 = a + b", *(f"x{n} = x{n - 1} + b" for n in range(1, 2000)), "z = x1999 + a"]
    program = single_assignment(program_of(*lines, returns="(z,)"))
    spec = TensorSpec("a", (2, 3), "float32")
    parent = parent_of(program, dict.fromkeys(["a", "b", *(op.output for op in program.ops)], spec))
    start = time.process_time()
    for index in range(len(parent.ops)):
        cut_range(parent, index, index + 1)
    assert time.process_time() - start < 1.0


def test_the_place_of_inplace_is_that_of_the_signatures():
    import inspect

    for name, function in vars(torch.nn.functional).items():
        if not inspect.isfunction(function):
            continue
        names = list(inspect.signature(function).parameters)
        if "inplace" not in names:
            continue
        args = ["x", *["0.5"] * (names.index("inplace") - 1), "True"]
        line = f"y = torch.nn.functional.{name}({', '.join(args)})"
        program = single_assignment(program_of("x = a + b", line, "z = y * 2", returns="(z,)"))
        with pytest.raises(CutError, match="writes into x, made outside"):
            cut_range(parent_of(program, {}), 1, 3)


WRITES_STATE = {
    "torch.nn.functional.batch_norm(a, x, b, training=True)": "x",
    "torch.nn.functional.batch_norm(a, x, b, None, None, True)": "x",
    "torch.batch_norm(a, None, None, x, b, True, 0.1, 1e-05, True)": "x",
    "torch.nn.functional.instance_norm(a, x, b)": "x",
    "torch.nn.functional.embedding(a, x, max_norm=1.0)": "x",
    "torch.nn.functional.embedding(a, x, None, 1.0)": "x",
    "torch.nn.functional.embedding_bag(a, x, b, 1.0)": "x",
    "torch.native_batch_norm(a, None, None, x, b, True, 0.1, 1e-05)": "x",
    "torch.ops.aten._native_batch_norm_legit.default(a, None, None, x, b, True, 0.1, 1.0)": "x",
    "torch.ops.aten._native_batch_norm_legit.no_stats(a, None, x, True, 0.1, 1e-05)": "",
    "torch.nn.functional.embedding_bag(a, x)": "",
    "torch.nn.functional.batch_norm(a, x, b, None, None, False)": "",
    "torch.nn.functional.instance_norm(a, None, None)": "",
    "torch.nn.functional.embedding(a, x)": "",
}


@pytest.mark.parametrize("call", WRITES_STATE)
def test_no_cut_writes_statistics_or_rows_from_outside(call):
    program = single_assignment(program_of("x = a + b", f"y = {call}", "z = y * 2", returns="(z,)"))
    parent = parent_of(
        program, dict.fromkeys(["a", "b", "x", "y", "z"], TensorSpec("a", (2, 3), "float32"))
    )
    if not WRITES_STATE[call]:
        assert cut_range(parent, 1, 3).program.ops
        return
    with pytest.raises(CutError, match="writes into x, made outside"):
        cut_range(parent, 1, 3)


def test_no_cut_loses_the_strides_that_a_call_reads_past():
    lines = ["x = torch.relu(a)", "y = x.t()", "v = y[0:]", "z = v.as_strided((2, 2), (2, 1))"]
    parent = parent_of_lines(*lines, "w = z * 2", returns="(w,)")
    for start in (2, 3):
        with pytest.raises(CutError, match="is read past its strides"):
            cut_range(parent, start, 5)
    for start in (0, 1, 4):
        assert cut_range(parent, start, 5).program.ops


RESHAPES = (
    ("y = x.unsqueeze_(0)", "v = x + b"),
    ("y = x.t_()", "v = x @ b"),
    ("y = x.unsqueeze_(0)", "w = x.squeeze_(0)", "v = y + b"),
    ("y = torch.mean(a, 0, out=x)", "v = x + b"),
    ("p = x.contiguous()", "y = p.unsqueeze_(0)", "v = x + b"),
)


@pytest.mark.parametrize("lines", RESHAPES)
def test_no_value_crosses_a_cut_after_its_shape_was_changed_in_place(lines):
    parent = parent_of_lines("x = torch.relu(a)", *lines, "z = v * 2")
    num_ops = len(parent.ops)
    with pytest.raises(CutError, match="after a change of its shape"):
        cut_range(parent, num_ops - 2, num_ops)
    assert cut_range(parent, 0, num_ops).program.ops


def test_the_result_of_a_change_of_shape_crosses_a_cut():
    parent = parent_of_lines("x = torch.relu(a)", "y = x.unsqueeze_(0)", "v = y + b", "z = v * 2")
    assert cut_range(parent, 2, 4).tensors[0].shape == (1, 2, 3)


@pytest.mark.parametrize("call", ["torch.split(a, 2)", "torch.gradient(a, dim=0)"])
def test_a_tuple_of_one_tensor_is_no_tensor(call):
    parent = parent_of_lines(f"t = {call}", "x = t[0]", "z = x + b")
    assert "t" not in parent.specs and "x" in parent.specs
    with pytest.raises(CutError, match="t crosses the cut and is no tensor"):
        cut_range(parent, 0, 1)
