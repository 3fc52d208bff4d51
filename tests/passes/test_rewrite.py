"""Graphs before and after passes: what stands in the place of a match."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.fx
from expecttest import assert_expected_inline

from passnet.errors import PassError
from passnet.passes.apply.rewrite import apply_passes
from passnet.passes.match.guards import make_guards
from passnet.passes.match.pattern import Pass
from tests.passes.graphs import assert_same, code, graph_of, pass_of, rewritten

X, Y, Z = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0))


def add_relu(x, y):
    return torch.relu(x + y)


def fused(x, y):
    return torch.clamp(x + y, min=0)


def double(x):
    return x + x


def pair(x, y):
    return x + y, x - y


def sum_and_difference(x, y):
    return x + y, x - y


def only_first(*values):
    return values[0]


def test_one_output() -> None:
    def net(x, y):
        return (torch.relu(x + y).exp(),)

    module, [report] = rewritten(net, pass_of(add_relu, fused))
    assert report.num_matches == 1 and report.miss is None
    assert_same(net, module, [X, Y])
    assert_expected_inline(
        code(module),
        """\
fused = fused(x, y)
exp = fused.exp()
return (exp,)""",
    )


def test_several_outputs() -> None:
    def net(x, y):
        difference = x - y
        half = difference * 2
        return (x + y) * half, difference

    module, [report] = rewritten(net, pass_of(sum_and_difference, pair))
    assert report.num_matches == 1
    assert_same(net, module, [X, Y])
    assert_expected_inline(
        code(module),
        """\
pair = pair(x, y)
getitem = pair[0]
getitem_1 = pair[1]
mul = getitem_1 * 2
mul_1 = getitem * mul
return (mul_1, getitem_1)""",
    )


def test_a_tuple_of_one_may_come_bare_or_as_a_tuple() -> None:
    def pattern(x, y):
        return (torch.relu(x + y),)

    def as_tuple(x, y):
        return (fused(x, y),)

    for replacement in (fused, as_tuple):
        module, _ = rewritten(add_relu, pass_of(pattern, replacement))
        assert_same(add_relu, module, [X, Y])
    module, _ = rewritten(add_relu, pass_of(pattern, fused))
    assert_expected_inline(
        code(module),
        """\
fused = fused(x, y)
only = only(fused)
return only""",
    )


def test_two_passes_keep_their_two_replacements() -> None:
    def net(x, y):
        return torch.relu(x + y) * (x * 2)

    module, reports = rewritten(
        net, pass_of(add_relu, fused), pass_of(lambda x: x * 2, double, name="Double")
    )
    assert [(report.name, report.num_matches) for report in reports] == [("Fuse", 1), ("Double", 1)]
    assert_same(net, module, [X, Y])
    assert_expected_inline(
        code(module),
        """\
fused = fused(x, y)
double = double(x)
mul_1 = fused * double
return mul_1""",
    )


def test_two_replacements_of_one_name_stay_apart() -> None:
    def scaled_by(factor):
        def scale(x):
            return x * factor

        return scale

    def net(x):
        return x.exp() + x.sin()

    module, _ = rewritten(
        net, pass_of(lambda x: x.exp(), scaled_by(2)), pass_of(lambda x: x.sin(), scaled_by(3))
    )
    torch.testing.assert_close(module(X), X * 2 + X * 3)


@pytest.mark.parametrize("wrap", [lambda f: lambda x, y: f(x, y), lambda f: Callable_(f)])
def test_a_replacement_without_a_name_is_called(wrap: Callable[..., Any]) -> None:
    module, _ = rewritten(add_relu, pass_of(add_relu, wrap(fused)))
    assert_same(add_relu, module, [X, Y])


class Callable_:
    """An object that can be called and has no name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


def test_replacement_args_append_constants() -> None:
    fuse = pass_of(add_relu, only_first, lambda x, y: (x, y, "route", 1.5, (2, 3), None))
    module, _ = rewritten(add_relu, fuse)
    assert_expected_inline(
        code(module),
        """\
only_first = only_first(x, y, 'route', 1.5, (2, 3), None)
return only_first""",
    )


def test_replacement_args_reorder_and_drop() -> None:
    def net(x, y, z):
        return x * y - z

    fuse = pass_of(lambda a, b, c: a * b - c, only_first, lambda a, b, c: (c, a))
    module, _ = rewritten(net, fuse)
    assert_expected_inline(
        code(module),
        """\
only_first = only_first(z, x)
return only_first""",
    )


def test_replacement_args_may_compute() -> None:
    fuse = pass_of(add_relu, fused, lambda x, y: (x.reshape(-1), y.reshape(-1)))
    module, _ = rewritten(add_relu, fuse)
    torch.testing.assert_close(module(X, Y), add_relu(X, Y).reshape(-1))
    assert_expected_inline(
        code(module),
        """\
reshape = x.reshape(-1)
reshape_1 = y.reshape(-1)
fused = fused(reshape, reshape_1)
return fused""",
    )


def test_replacement_args_may_be_one_value_that_is_no_tuple() -> None:
    module, _ = rewritten(lambda x: x * 2, pass_of(lambda x: x * 2, double, lambda x: x))
    assert_same(double, module, [X])


def test_a_parameter_that_the_pattern_does_not_read_cannot_be_handed_on() -> None:
    with pytest.raises(PassError, match="Fuse: the pattern does not read y"):
        rewritten(lambda x: x * 2, pass_of(lambda x, y: x * 2))
    module, _ = rewritten(lambda x: x * 2, pass_of(lambda x, y: x * 2, double, lambda x, y: (x,)))
    assert_same(double, module, [X])


class Text(str):
    """A string that would be written into the code of a graph as anything."""


@pytest.mark.parametrize(
    "broken",
    [
        pass_of(lambda x, y: x * 2, name="Broken"),
        pass_of(lambda x: x * 2, double, lambda x: (x.neg(), Text("a")), "Broken"),
        pass_of(lambda x: x * 2, lambda x: x.clone(), lambda x: (x * 2,), "Broken"),
        replace(
            pass_of(lambda x: x * 2, double, name="Broken"),
            guards=make_guards("Broken", (), lambda x: x.no_such, ["x"]),
        ),
    ],
)
def test_a_pass_that_fails_is_skipped_and_the_others_apply(broken: Pass) -> None:
    module = graph_of(lambda x: (x * 2).exp())
    exp = pass_of(lambda x: x.exp(), name="Exp")
    reports, _ = apply_passes(module, [broken, exp], [X])
    assert [report.name for report in reports if report.skipped] == ["Broken"]
    assert (reports[0].sentence() or "").startswith("skipped: ")
    assert reports[1].num_matches == 1
    assert_same(lambda x: (x * 2).exp(), module, [X])


def test_a_later_pass_sees_what_the_one_before_it_left() -> None:
    def net(x, y):
        return torch.relu(torch.relu(x + y) + y).exp()

    inner = pass_of(lambda x, y: torch.relu(torch.relu(x + y) + y), fused, name="Inner")
    outer = pass_of(lambda x: x.exp(), double, name="Outer")
    module, reports = rewritten(net, inner, pass_of(add_relu, fused), outer)
    assert [report.num_matches for report in reports] == [1, 0, 1]
    assert_expected_inline(
        code(module),
        """\
fused = fused(x, y)
double = double(fused)
return double""",
    )


def test_the_order_of_passes_decides_who_gets_a_call() -> None:
    long = pass_of(add_relu, fused, name="Long")
    short = pass_of(lambda x, y: x + y, pair, name="Short")
    assert [report.num_matches for report in rewritten(add_relu, long, short)[1]] == [1, 0]
    assert [report.num_matches for report in rewritten(add_relu, short, long)[1]] == [1, 0]


def test_a_replacement_is_never_part_of_a_later_match() -> None:
    plain = pass_of(lambda x, y: x + y, torch.add)
    function = pass_of(lambda x, y: torch.add(x, y), fused, name="Again")
    module, reports = rewritten(add_relu, plain, function)
    assert [report.num_matches for report in reports] == [1, 0]
    [report], sites = apply_passes(module, [function])
    assert report.num_matches == 0 and not sites


def test_a_site_names_what_the_parameters_stand_for() -> None:
    def pattern(x, y, n: float):
        return (x + y) * n

    module = graph_of(lambda x, y: (y + x) * 1.5)
    _, [site] = apply_passes(module, [pass_of(pattern)])
    assert [str(value) for value in site.inputs] == ["y", "x", "1.5"]
    assert site.source.name == "Fuse" and site.node in module.graph.nodes


def test_a_site_follows_an_input_that_a_later_pass_replaced() -> None:
    module = graph_of(lambda x, y: torch.relu(x.exp() + y))
    passes = [pass_of(add_relu, fused), pass_of(lambda x: x.exp(), double, name="Double")]
    _, sites = apply_passes(module, passes)
    assert sites[0].inputs[0] is sites[1].node


def test_a_graph_that_nothing_matched_is_left_as_it_was() -> None:
    module = graph_of(lambda x, y: x - y)
    before = code(module)
    reports, sites = apply_passes(module, [pass_of(add_relu, fused)])
    assert code(module) == before and not sites and reports[0].num_matches == 0


def test_a_match_that_another_replacement_makes_legal_is_found_too() -> None:
    def net(x):
        y = torch.relu(x)
        return (y.tanh_().tanh_(),)

    def tanh(x):
        return x.tanh_()

    def new_tanh(x):
        return torch.tanh(x)

    module, [report] = rewritten(net, pass_of(tanh, new_tanh))
    assert report.num_matches == 2
    assert_same(net, module, [X])
