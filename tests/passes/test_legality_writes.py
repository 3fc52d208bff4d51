"""Calls that write: a match keeps what others see of its writes, and sees theirs in time."""

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.passes.graphs import assert_same, check_rewrite, pass_of, rewritten

F = torch.nn.functional
X, Y = torch.randn(2, 2, 4, 3, generator=torch.Generator().manual_seed(0))
MEAN, VAR = torch.rand(2, 4, generator=torch.Generator().manual_seed(1)) + 0.5


def add_relu(x, y):
    return torch.relu(x + y)


@pytest.mark.parametrize("name", ["iadd", "imul"])
def test_a_write_into_an_argument_of_the_graph_is_refused(name: str) -> None:
    function = getattr(operator, name)
    check_rewrite(
        lambda x, y: torch.relu(function(x, y)),
        lambda x, y: torch.relu(function(x, y)),
        [X, Y],
        "writes into a value from outside",
    )


def lost_by_name(x, y):
    a = x.exp()
    a += y
    return torch.relu(a)


def read_later(x, y):
    a = x.exp()
    b = torch.relu(operator.iadd(a, y))
    return b, a.sin()


def read_later_through_a_view(x, y):
    a = x.exp()
    v = a.view(-1)
    return torch.relu(operator.iadd(a, y)), v.sin()


def returned(x, y):
    a = x.exp()
    return torch.relu(operator.iadd(a, y)), a


@pytest.mark.parametrize("net", [read_later, read_later_through_a_view, returned])
def test_a_write_that_is_read_later_is_refused(net: Callable[..., Any]) -> None:
    check_rewrite(net, add_relu, [X, Y], "writes into a value from outside")


def test_a_write_into_a_fresh_value_that_nobody_reads_is_fine() -> None:
    check_rewrite(lost_by_name, add_relu, [X, Y], None)


def test_the_end_of_a_residual_block_is_replaced() -> None:
    def net(x, mean, var, y):
        a = F.batch_norm(x, mean, var, None, None, False, 0.1, 1e-5)
        a += y
        return F.relu(a, inplace=True)

    check_rewrite(net, net, [X, MEAN, VAR, Y], None)
    check_rewrite(
        net, lambda x, m, v, y: F.relu(F.batch_norm(x, m, v) + y), [X, MEAN, VAR, Y], None
    )


def test_views_of_the_result_of_a_write_are_views_of_what_takes_its_place() -> None:
    def body(x, mean, var):
        return F.relu(F.batch_norm(x, mean, var, None, None, False, 0.1, 1e-5), inplace=True)

    def net(x, mean, var):
        a = body(x, mean, var)
        b, c = a.split(2, dim=1)
        return b, c.flatten(1), a.view(-1)[1:]

    check_rewrite(net, body, [X, MEAN, VAR], None)


def view_before_the_write(x, y):
    a = x.exp()
    v = a.view(-1)
    b = operator.iadd(a, y)
    return torch.relu(b).view(-1), v[1:]


def test_a_view_of_what_was_there_before_a_write_is_not() -> None:
    check_rewrite(view_before_the_write, add_relu, [X, Y], "writes into a value from outside")


def test_batch_norm_in_training_is_refused_since_it_updates_its_statistics() -> None:
    def net(x, mean, var):
        return F.batch_norm(x, mean, var, None, None, True).exp()

    check_rewrite(net, net, [X, MEAN, VAR], "writes into a value from outside")


def test_instance_norm_with_statistics_is_refused_since_it_updates_them() -> None:
    def net(x, mean, var):
        return F.instance_norm(x, mean, var).exp()

    check_rewrite(net, net, [X, MEAN, VAR], "writes into a value from outside")


def test_built_in_batch_norm_in_training_is_refused() -> None:
    def net(x, weight, mean, var):
        return torch.batch_norm(x, weight, None, mean, var, True, 0.1, 1e-5, False).exp()

    inputs = [X, torch.ones(4), MEAN, VAR]
    check_rewrite(net, net, inputs, "writes into a value from outside")


def scale_and_add(x, y):
    return x * 2 + y


def test_batch_norm_in_training_in_between_counts_as_a_write_to_its_statistics() -> None:
    def net(x, mean, var):
        a = mean * 2
        b = F.batch_norm(x, mean, var, None, None, True)
        return a + mean, b

    check_rewrite(net, scale_and_add, [X, MEAN, VAR], "written to in between")


def test_batch_norm_without_statistics_writes_nothing() -> None:
    def net(x):
        return F.batch_norm(x, None, None, None, None, True).exp()

    check_rewrite(net, net, [X], None)


def view_written_later(x):
    a = x.transpose(0, 1).unsqueeze(0)
    a.add_(1)
    return a.exp(), x.sin()


def source_written_later(x):
    a = x.transpose(0, 1).unsqueeze(0)
    x.add_(1)
    return a.exp()


@pytest.mark.parametrize("net", [view_written_later, source_written_later])
def test_a_returned_view_that_is_written_later_is_refused(net: Callable[..., Any]) -> None:
    check_rewrite(net, lambda x: x.transpose(0, 1).unsqueeze(0), [X], "may share memory")


def test_a_returned_view_that_nobody_writes_is_fine() -> None:
    check_rewrite(
        lambda x: x.view(-1).unsqueeze(0).exp(), lambda x: x.view(-1).unsqueeze(0), [X], None
    )


def test_a_fresh_result_that_is_written_later_is_fine() -> None:
    def net(x, y):
        a = torch.relu(x + y)
        a += 1
        return a.exp()

    check_rewrite(net, add_relu, [X, Y], None)


def test_two_results_that_share_memory_and_are_written_later_are_refused() -> None:
    def net(x):
        a = x.exp()
        v = a.view(-1)
        v.add_(1)
        return a * 2, v

    def pattern(x):
        a = x.exp()
        return a, a.view(-1)

    module, [report] = rewritten(net, pass_of(pattern, lambda x: (x.exp(), x.exp().view(-1))))
    assert report.num_matches == 0 and "may share memory" in report.miss.reason
    assert_same(net, module, [X])


def written_and_returned(x, y):
    a = x + y
    return a, F.relu(a, inplace=True)


def plain_and_returned(x, y):
    a = x + y
    return a, F.relu(a)


def written_and_read(x, y):
    a = x + y
    F.relu(a, inplace=True)
    return a * 2


def dead_and_read(x, y):
    a = x + y
    F.relu(a)
    return a * 2


@pytest.mark.parametrize(
    ("net", "pattern"),
    [
        (written_and_returned, plain_and_returned),
        (plain_and_returned, written_and_returned),
        (dead_and_read, written_and_read),
    ],
)
def test_a_write_seen_under_an_older_name_is_no_plain_call(
    net: Callable[..., Any], pattern: Callable[..., Any]
) -> None:
    check_rewrite(net, pattern, [X, Y], "differ in what a write changes")


@pytest.mark.parametrize("net", [written_and_returned, plain_and_returned, written_and_read])
def test_a_pattern_that_writes_just_as_the_graph_does_is_found(net: Callable[..., Any]) -> None:
    check_rewrite(net, net, [X, Y], None)


def test_two_parameters_for_one_written_value_are_refused() -> None:
    def net(x):
        a = x.exp()
        a.add_(1)
        return a * a

    def pattern(x, y):
        x.add_(1)
        return x * y

    check_rewrite(net, pattern, [X], "differ in what a write changes")


def test_an_earlier_replacement_still_shares_the_memory_of_what_it_replaced() -> None:
    def net(x):
        a = (x + 1) * 2
        v = a.view(-1)
        b = a * 3
        v.add_(1)
        return b + a

    first = pass_of(lambda x: (x + 1) * 2, name="First")
    second = pass_of(lambda a: a * 3 + a, name="Second")
    module, reports = rewritten(net, first, second)
    assert [report.num_matches for report in reports] == [1, 0]
    assert_same(net, module, [X])
