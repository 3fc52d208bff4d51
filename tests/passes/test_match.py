"""Where a pattern stands in a graph, and what its parameters stand for."""

import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx
from expecttest import assert_expected_inline

from passnet.graph.fx.build import build
from passnet.judge.suite.suite import load_suite
from passnet.passes.codegen.pass_text import pattern_text
from passnet.passes.match.graph_index import GraphIndex
from passnet.passes.match.match import each_match
from passnet.passes.match.pattern import Match, make_pattern
from tests.passes.graphs import assert_same, code, pass_of, rewritten

F = torch.nn.functional
X, Y, Z = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0))


def add_relu(x, y):
    return torch.relu(x + y)


def fused(x, y):
    return torch.clamp(x + y, min=0)


def only_first(*values):
    return values[0]


def num_matches(function: Callable[..., Any], pattern: Callable[..., Any]) -> int:
    """How often a pattern is found in the graph of a function."""
    _, [report] = rewritten(function, pass_of(pattern))
    assert (report.miss is None) == (report.num_matches > 0)
    return report.num_matches


def test_every_place_is_replaced() -> None:
    def net(x, y):
        z = torch.relu(x + y)
        return torch.relu(z + x) * torch.relu(z + y)

    module, [report] = rewritten(net, pass_of(add_relu, fused))
    assert report.num_matches == 3
    assert_same(net, module, [X, Y])
    assert_expected_inline(
        code(module),
        """\
fused = fused(x, y)
fused_1 = fused_1(fused, x)
fused_2 = fused_2(fused, y)
mul = fused_1 * fused_2
return mul""",
    )


def test_a_call_is_part_of_one_match_only() -> None:
    def net(x):
        return x.exp().exp().exp().exp().exp()

    module, [report] = rewritten(net, pass_of(lambda x: x.exp().exp()))
    assert report.num_matches == 2
    assert_same(net, module, [X])
    assert sum(node.target == "exp" for node in module.graph.nodes) == 1


def test_the_same_parameter_stands_for_the_same_value() -> None:
    square = lambda x: x * x  # noqa: E731
    assert num_matches(lambda x, y: x * x, square) == 1
    assert num_matches(lambda x, y: x * y, square) == 0


def test_two_parameters_may_stand_for_the_same_value() -> None:
    assert num_matches(lambda x: torch.relu(x + x), add_relu) == 1


FREE = {
    "number": (lambda n: lambda x: torch.relu(x + n), 1.0),
    "tuple": (lambda n: lambda x: x.view(n), (2, -1)),
    "one of several sizes": (lambda n: lambda x: x.view(2, n), -1),
    "dimension": (lambda n: lambda x: x.sum(n), -1),
    "dtype": (lambda n: lambda x: x.to(n), torch.float16),
    "device": (lambda n: lambda x: x.to(device=n), "cpu"),
    "end of a slice": (lambda n: lambda x: x[:, :n], 3),
    "text": (lambda n: lambda x: torch.einsum(n, x, x), "ij,ij->i"),
    "nothing": (lambda n: lambda x: F.linear(x, x, n), None),
    "stride": (lambda n: lambda x: torch.conv2d(x, x, None, n), 1),
    "strides": (lambda n: lambda x: torch.conv2d(x, x, None, n), (2, 1)),
}


@pytest.mark.parametrize("kind", FREE)
def test_a_parameter_without_a_type_stands_for_a_literal_as_it_is_written(kind: str) -> None:
    make, literal = FREE[kind]
    pattern = lambda x, n: make(n)(x)  # noqa: E731
    keep_first = pass_of(pattern, only_first, lambda x, n: (n, x))
    module, [report] = rewritten(make(literal), keep_first)
    assert report.num_matches == 1
    call = next(node for node in module.graph.nodes if node.op == "call_function")
    assert call.args[0] == literal and type(call.args[0]) is type(literal)


def test_a_parameter_that_stands_for_a_literal_twice_stands_for_one() -> None:
    pattern = lambda x, n: (x * n) + n  # noqa: E731
    assert num_matches(lambda x: x * 1.5 + 1.5, pattern) == 1
    assert num_matches(lambda x: x * 1.5 + 2.5, pattern) == 0
    assert num_matches(lambda x, y: x * 1.5 + y, pattern) == 0


def test_a_parameter_stands_for_a_list_of_values() -> None:
    pattern = lambda values, n: torch.cat(values, n).exp()  # noqa: E731
    replacement = lambda values, n: torch.exp(torch.cat(values, n))  # noqa: E731
    later = pass_of(lambda x: x.neg(), name="Later")

    def net(x, y):
        return torch.cat([x.neg(), y], 0).exp()

    module, reports = rewritten(net, pass_of(pattern, replacement), later)
    assert [report.num_matches for report in reports] == [1, 1]
    assert_same(net, module, [X, Y])


def test_ops_of_prims_and_operators_as_methods_are_found() -> None:
    prims = torch.ops.prims
    iota = {"start": 0, "step": 1, "dtype": torch.int64, "device": "cpu", "requires_grad": False}

    def net(x):
        numbers = prims.iota.default(8, **iota)
        return prims.convert_element_type.default(x + numbers, torch.float16)

    def pattern(x):
        return prims.convert_element_type(x + prims.iota(8, **iota), dtype=torch.float16)

    assert num_matches(net, net) == num_matches(net, pattern) == 1
    assert num_matches(lambda x, y: x.__eq__(y).sum(), lambda x, y: (x == y).sum()) == 1
    assert num_matches(lambda x, y: (x >= y).sum(), lambda x, y: x.__ge__(y).sum()) == 1


LITERALS = {
    "int": (int, 2, lambda n: lambda x: x.transpose(0, n), [1.5]),
    "float": (float, 1.5, lambda n: lambda x: x * n, [2, True, "a"]),
    "tuple": (tuple, (2, 4), lambda n: lambda x: x.view(n), []),
    "str": (str, "tanh", lambda n: lambda x: F.gelu(x, approximate=n), []),
    "bool": (bool, True, lambda n: lambda x: x.mean(0, n), []),
    "dtype": (torch.dtype, torch.float16, lambda n: lambda x: x.to(n) * 1, ["cpu"]),
    "device": (torch.device, torch.device("cpu"), lambda n: lambda x: x.to(n), [torch.float16]),
    "dtype of a view": (torch.dtype, torch.int32, lambda n: lambda x: x.view(n), [(2, 4), 8]),
}


@pytest.mark.parametrize("name", LITERALS)
def test_a_typed_parameter_stands_for_a_literal_of_that_type_only(name: str) -> None:
    kind, literal, make, unequal = LITERALS[name]

    def pattern(x, n):
        return make(n)(x)

    for annotation in (kind, f"torch.{kind.__name__}" if "torch" in str(kind) else kind.__name__):
        pattern.__annotations__ = {"n": annotation}
        keep_first = pass_of(pattern, only_first, lambda x, n: (n, x))
        module, [report] = rewritten(make(literal), keep_first)
        assert report.num_matches == 1
        call = next(node for node in module.graph.nodes if node.op == "call_function")
        assert call.args[0] == literal and type(call.args[0]) is type(literal)
        for value in unequal:
            assert rewritten(make(value), keep_first)[1][0].num_matches == 0
        assert rewritten(lambda x, y: pattern(x, y), keep_first)[1][0].num_matches == 0


def test_a_literal_that_is_named_twice_must_be_equal() -> None:
    def pattern(x, n: float):
        return (x * n) + n

    assert num_matches(lambda x: x * 1.5 + 1.5, pattern) == 1
    assert num_matches(lambda x: x * 1.5 + 2.5, pattern) == 0


def test_a_literal_parameter_inside_a_slice_or_a_list() -> None:
    def pattern(x, n: int):
        return torch.cat([x[..., n:], x[..., :n]], dim=-1)

    assert num_matches(lambda x: torch.cat((x[..., 3:], x[..., :3]), -1), pattern) == 1
    assert num_matches(lambda x: torch.cat((x[..., 3:], x[..., :2]), -1), pattern) == 0


def test_a_graph_module_as_pattern() -> None:
    fuse = pass_of(torch.fx.symbolic_trace(add_relu), fused)
    module, _ = rewritten(lambda x, y: torch.relu(y + x) * 2, fuse)
    assert_expected_inline(
        code(module),
        """\
fused = fused(y, x)
mul = fused * 2
return mul""",
    )


def test_a_pattern_whose_parts_share_only_an_argument() -> None:
    def net(x, y):
        return x.sin() + x.cos() * y

    module, _ = rewritten(net, pass_of(lambda x: (x.sin(), x.cos())))
    assert_same(net, module, [X, Y])
    assert_expected_inline(
        code(module).replace("same", "sincos"),
        """\
sincos = sincos(x)
getitem = sincos[0]
getitem_1 = sincos[1]
mul = getitem_1 * y
add = getitem + mul
return add""",
    )


def test_a_pattern_whose_parts_share_nothing() -> None:
    def net(x, y):
        return x.sin() + y.cos()

    module, [report] = rewritten(net, pass_of(lambda a, b: (a.sin(), b.cos())))
    assert report.num_matches == 1
    assert_same(net, module, [X, Y])


def test_outputs_of_a_pattern_that_the_graph_does_not_use() -> None:
    def net(x, y):
        return torch.relu(x + y) * 2

    def pattern(x, y):
        total = x + y
        return total, torch.relu(total)

    module, _ = rewritten(net, pass_of(pattern))
    assert_same(net, module, [X, Y])
    assert_expected_inline(
        code(module),
        """\
same = same(x, y)
getitem = same[0]
getitem_1 = same[1]
mul = getitem_1 * 2
return mul""",
    )


def test_a_search_goes_on_where_the_first_user_of_a_value_does_not_fit() -> None:
    def net(x, y):
        z = x.exp()
        return (z + 1).sin(), (z + 1).relu(), z

    def pattern(x):
        z = x.exp()
        return z, (z + 1).relu()

    module, [report] = rewritten(net, pass_of(pattern))
    assert report.num_matches == 1
    assert_same(net, module, [X, Y])


def test_a_literal_integer_stands_for_the_sizes_that_it_is_repeated_to() -> None:
    def pooled(x, n: int):
        return F.avg_pool2d(x, n).mean(n)

    assert num_matches(lambda x: F.avg_pool2d(x, 2).mean(2), pooled) == 1
    assert num_matches(lambda x: F.avg_pool2d(x, (2, 2)).mean((2,)), pooled) == 1
    assert num_matches(lambda x: F.avg_pool2d(x, (2, 1)).mean(2), pooled) == 0
    assert num_matches(lambda x: F.avg_pool2d(x, 2).mean((2, 2)), pooled) == 0


def test_each_op_of_a_suite_written_as_a_pattern_is_found_in_its_own_graph() -> None:
    num_found = {}
    for item in load_suite("passbench-v1-single").graphs:
        params = ", ".join(param.name for param in item.graph.program.params)
        body = textwrap.indent(pattern_text(item.graph), "    ")
        names = {"torch": torch, "device": torch.device, "inf": torch.inf}
        exec(f"def pattern({params}):\n{body}", names)
        found: list[Match] = []
        graph = build(item.graph.program).graph
        each_match(make_pattern(item.name, names["pattern"]), GraphIndex(graph), found.append)
        num_found[item.name] = len(found)
    assert len(num_found) == 679
    assert [name for name, number in num_found.items() if not number] == []
