"""A match is replaced only where the graph's values, and what it leaves in its inputs, stay."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from passnet.passes.apply.rewrite import apply_passes
from tests.passes.graphs import assert_same, check_rewrite, graph_of, pass_of, rewritten

F = torch.nn.functional
X, Y, Z = torch.randn(3, 2, 4, 3, generator=torch.Generator().manual_seed(0))


def add_relu(x, y):
    return torch.relu(x + y)


def relu_and_sigmoid(x):
    a = torch.relu(x)
    return a, torch.sigmoid(a)


def scale_and_add(x, y):
    return x * 2 + y


def leak(x, y):
    total = x + y
    return torch.relu(total), total.exp()


def leak_to_the_output(x, y):
    total = x + y
    return torch.relu(total), total


def leak_of_a_view(x, y):
    total = x + y
    return torch.relu(total), total.view(-1)


def own_result(x):
    a = x.exp()
    return a * a.sin()


@pytest.mark.parametrize("net", [leak, leak_to_the_output, leak_of_a_view])
def test_a_value_that_leaks_is_refused(net: Callable[..., Any]) -> None:
    check_rewrite(net, add_relu, [X, Y], "the value leaks")


def unused_uses(x, y):
    total = x + y
    total.exp().sum()
    total.clone().add_(1)
    return torch.relu(total)


def unused_draws(x, y):
    total = x + y
    torch.bernoulli(total.sigmoid())
    return torch.relu(total)


TOLD = []


def tell(x):
    TOLD.append(x.shape)


torch.fx.wrap("tell")


def unused_call_of_others(x, y):
    total = x + y
    tell(total)
    return torch.relu(total)


def unused_check(x, y):
    total = x + y
    torch._assert_async(total.isfinite().all())
    return torch.relu(total)


def test_a_use_that_nobody_needs_goes_with_the_match() -> None:
    def pure(x, y):
        total = x + y
        total.exp().sum()
        return torch.relu(total), y.sin()

    module, [report] = rewritten(pure, pass_of(add_relu))
    assert_same(pure, module, [X, Y])
    assert report.num_matches == 1
    left = [node.name for node in module.graph.nodes if not node.users and node.op != "output"]
    assert left == [], "and the calls behind it are gone"


@pytest.mark.parametrize("net", [unused_uses, unused_draws, unused_call_of_others, unused_check])
def test_a_use_that_does_more_than_give_a_result_is_needed(net: Callable[..., Any]) -> None:
    check_rewrite(net, add_relu, [X, Y], "the value leaks")


def test_a_match_that_needs_its_own_result_is_refused() -> None:
    def pattern(x, y):
        a = x.exp()
        return a, a * y

    check_rewrite(own_result, pattern, [X], "the match would need its own result")


def test_matches_that_interleave_do_not_make_a_circle() -> None:
    def net(x, y):
        a = x.exp()
        b = y.exp()
        return a * b.sin(), b * a.sin()

    def pattern(x, y):
        a = x.exp()
        return a, a * y

    module, [report] = rewritten(net, pass_of(pattern))
    assert_same(net, module, [X, Y])
    assert report.num_matches == 1


def test_a_result_used_between_the_ends_of_a_match_comes_after_it() -> None:
    def net(x, y):
        a = torch.relu(x)
        b = (a + y).exp()
        return b, torch.sigmoid(a)

    check_rewrite(net, relu_and_sigmoid, [X, Y], None)


def test_a_match_of_one_call_leaves_the_order_of_all_others() -> None:
    def net(x, y):
        a = x.exp()
        b = y.sin()
        return a + b

    check_rewrite(net, lambda x: x.exp(), [X, Y], None)


def a_write_to_an_argument(x, y):
    a = x * 2
    y.add_(1)
    return a + y


def a_write_to_an_argument_through_a_view(x, y):
    v = y.view(-1)
    a = x * 2
    v.mul_(3)
    return a + y


def a_write_by_index(x, y):
    a = x * 2
    y[0] = 5.0
    return a + y


def a_write_by_copy(x, y):
    a = x * 2
    y.copy_(x)
    return a + y


def a_write_by_fill(x, y):
    a = x * 2
    y.fill_(1.5)
    return a + y


def a_write_by_a_dunder_method(x, y):
    a = x * 2
    y.__iadd__(x)
    return a + y


def a_write_to_out(x, y):
    a = x * 2
    torch.add(x, x, out=y)
    return a + y


def a_write_through_einsum(x, y):
    v = torch.einsum("abc->abc", y)
    a = x * 2
    v.add_(1)
    return a + y


def a_write_through_broadcast(x, y):
    _, v = torch.broadcast_tensors(x, y)
    a = x * 2
    v.add_(1)
    return a + y


def a_write_to_what_was_read_first(x, y):
    a = x * 2
    x.add_(1)
    return a + y


WRITES_IN_BETWEEN = [
    a_write_to_an_argument,
    a_write_to_an_argument_through_a_view,
    a_write_by_index,
    a_write_by_copy,
    a_write_by_fill,
    a_write_by_a_dunder_method,
    a_write_to_out,
    a_write_through_einsum,
]


@pytest.mark.parametrize("net", [a_write_through_broadcast, a_write_to_what_was_read_first])
def test_a_write_in_between_is_refused(net: Callable[..., Any]) -> None:
    check_rewrite(net, scale_and_add, [X, Y], "written to in between")


@pytest.mark.parametrize("net", WRITES_IN_BETWEEN)
def test_a_write_after_a_read_is_refused(net: Callable[..., Any]) -> None:
    def reading(x, y):
        read = y.sin()
        return read, net(x, y)

    def pattern(x, y):
        return y.sin(), x * 2 + y

    check_rewrite(reading, pattern, [X, Y], "written to in between")


@pytest.mark.parametrize("net", WRITES_IN_BETWEEN)
def test_a_write_before_all_that_reads_it_stays_where_it_is(net: Callable[..., Any]) -> None:
    check_rewrite(net, scale_and_add, [X, Y], None)


def test_a_write_that_uses_the_match_is_refused_where_the_match_reads_it_later() -> None:
    def net(x, y):
        a = x * 2
        y.add_(a)
        return a, a + y

    def pattern(x, y):
        a = x * 2
        return a, a + y

    check_rewrite(net, pattern, [X, Y], "written to in between")


def test_a_write_in_between_to_something_else_is_no_matter() -> None:
    def net(x, y, z):
        a = x * 2
        z.add_(1)
        return a + y, z.exp()

    check_rewrite(net, scale_and_add, [X, Y, Z], None)


def reader_before_a_write(x, z):
    a = torch.relu(x)
    b = a + z
    z.add_(1)
    return b, torch.sigmoid(a)


def write_before_a_reader(x, z):
    a = torch.relu(x)
    z.add_(a)
    b = z * 2
    return b, torch.sigmoid(a)


@pytest.mark.parametrize("net", [reader_before_a_write, write_before_a_reader])
def test_a_user_of_the_match_does_not_trade_places_with_a_write(net: Callable[..., Any]) -> None:
    check_rewrite(net, relu_and_sigmoid, [X, Z], "trade places with a write")


def test_a_value_read_before_the_match_writes_to_it_is_refused() -> None:
    def net(x):
        a = x * 2
        before = a + 1
        a.add_(1)
        return before, a

    def pattern(x):
        a = x * 2
        a.add_(1)
        return a

    check_rewrite(net, pattern, [X], "trade places with a write")


@pytest.mark.parametrize("probability", [0.0, 0.5])
def test_random_numbers_keep_their_order(probability: float) -> None:
    def net(x, y):
        noise = torch.rand_like(x)
        other = torch.dropout(y, probability, True)
        return noise + y, other

    def pattern(x, y):
        return torch.rand_like(x) + y

    module = graph_of(net)
    [report], _ = apply_passes(module, [pass_of(pattern)])
    assert report.num_matches == (probability == 0)
    if probability:
        assert "another order" in report.miss.reason


def test_a_state_switched_in_between_is_refused() -> None:
    def net(x, y):
        a = x @ y
        return a, a @ y

    module = graph_of(net)
    first, second = (node for node in module.graph.nodes if node.op == "call_function")
    with module.graph.inserting_before(second):
        settings = ("cpu", torch.bfloat16, True, False)
        entered = module.graph.call_function(torch.amp.autocast_mode._enter_autocast, settings)
    with module.graph.inserting_after(second):
        module.graph.call_function(torch.amp.autocast_mode._exit_autocast, (entered,))
    module.recompile()
    original = copy.deepcopy(module)
    [report], _ = apply_passes(module, [pass_of(net)])
    assert report.num_matches == 0 and "a state is switched" in report.miss.reason
    assert_same(original, module, [X[0] @ X[0].T, Y[0] @ Y[0].T])
    assert module(X[0] @ X[0].T, Y[0] @ Y[0].T)[1].dtype is torch.bfloat16
