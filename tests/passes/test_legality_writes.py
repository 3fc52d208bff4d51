"""Calls that write: a match keeps what others see of its writes, and sees theirs in time."""

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

from passnet.passes.apply.rewrite import apply_passes
from passnet.passes.match.graph_index import GraphIndex
from tests.passes.graphs import assert_same, check_rewrite, graph_of, pass_of, rewritten

F = torch.nn.functional
X, Y = torch.randn(2, 2, 4, 3, generator=torch.Generator().manual_seed(0))
MEAN, VAR = torch.rand(2, 4, generator=torch.Generator().manual_seed(1)) + 0.5


def add_relu(x, y):
    return torch.relu(x + y)


def written_and_lost(x, y):
    return torch.relu(operator.imul(x, y))


def written_and_returned_as_what_it_is(x, y):
    return F.relu(operator.iadd(x, y), inplace=True)


def written_with_a_result_beside_it(x, y):
    total = F.relu(x.add_(y), inplace=True)
    return total, total.sin() * y


def written_in_part(x, y):
    x[0] = 0.75
    return x.exp() * y


def two_written(x, y):
    return y.mul_(0.5), torch.relu(x.add_(1.0))


def written_with_what_it_makes(x, y):
    return torch.sigmoid(x.add_(y.exp()))


def written_with_what_it_writes(x, y):
    made = y.exp()
    made.mul_(x.sum())
    x += made
    return x.softmax(-1)


def returned_in_part(x, y):
    x.view(-1).mul_(0.5)
    return x.exp() * y


WRITTEN = [
    written_with_what_it_makes,
    written_with_what_it_writes,
    returned_in_part,
    written_and_lost,
    written_and_returned_as_what_it_is,
    written_with_a_result_beside_it,
    written_in_part,
    two_written,
]


@pytest.mark.parametrize("body", WRITTEN)
def test_a_write_into_an_argument_is_made_again_if_the_pattern_makes_it(
    body: Callable[..., Any],
) -> None:
    check_rewrite(body, body, [X, Y], None)


@pytest.mark.parametrize("body", WRITTEN)
def test_what_reads_and_writes_an_argument_later_finds_what_was_written(
    body: Callable[..., Any],
) -> None:
    def net(x, y):
        z, v = x * 1, x.view(-1)
        result = body(x, y)
        return result, x.cos(), v[2:], z

    def net_of_a_value(x, y):
        a = x.exp()
        v = a.view(-1)
        result = body(a, y)
        return result, a.cos(), v.add_(1.0), a * 2

    def written_later(x, y):
        result = body(x, y)
        first = result[0] if isinstance(result, tuple) else result
        first.sub_(3.0)
        return result, x.cos()

    check_flat(net, body)
    check_flat(net_of_a_value, body, may_refuse=True)
    check_flat(written_later, body, may_refuse=True)


def check_flat(net: Callable[..., Any], pattern: Any, may_refuse: bool = False) -> None:
    """The values of a net stay, whose result holds a tuple; it is matched, or may be refused."""

    def flat(x, y):
        first, *others = net(x, y)
        return (*(first if isinstance(first, tuple) else (first,)), *others)

    module, [report] = rewritten(flat, pass_of(pattern))
    assert_same(flat, module, [X, Y])
    assert report.num_matches == 1 or may_refuse, report.miss


def test_a_written_argument_is_returned_as_itself() -> None:
    body = written_and_returned_as_what_it_is
    module, [report] = rewritten(lambda x, y: body(x, y), pass_of(body))
    x = X.clone()
    assert report.num_matches == 1 and module(x, Y) is x


def test_what_is_written_back_is_not_matched_again() -> None:
    check_rewrite(lambda x, y: x.copy_(y).exp(), lambda x, y: x.copy_(y), [X, Y], None)


def test_what_is_written_back_may_be_written_again() -> None:
    def net(x, y):
        total = written_and_returned_as_what_it_is(x, y)
        total.sub_(3.0)
        return total.cos(), x.sin()

    check_rewrite(net, written_and_returned_as_what_it_is, [X, Y], None)


def read_while_it_is_written(x, y):
    x.add_(1.0)
    seen = x.sin()
    return torch.relu(x), seen


def drawn_at_random(x, y):
    return torch.relu(F.dropout(x, 0.5, True, True))


def turned(x, y):
    return x.transpose_(1, 2)


def written_with_what_is_drawn(x, y):
    return torch.sigmoid(x.add_(F.dropout(y, 0.5, True)))


def written_with_what_it_returns(x, y):
    made = y.exp()
    made.mul_(0.5)
    return torch.sigmoid(x.add_(made)), made


def written_with_what_others_see(x, y):
    y.mul_(0.5)
    made = y.sin()
    return torch.sigmoid(x.add_(made)), made.cos()


def returned_as_a_view(x, y):
    return x.view(-1).mul_(0.5)


def written_by_index(x, y):
    x[0] = 0.75
    return x * y


def written_elsewhere_too(x, y):
    y.add_(1.0)
    return torch.relu(x.mul_(y))


REFUSED = {
    read_while_it_is_written: lambda x, y: (x.add_(1.0), torch.relu(x))[1],
    drawn_at_random: drawn_at_random,
    turned: turned,
    written_with_what_is_drawn: written_with_what_is_drawn,
    written_with_what_it_returns: written_with_what_it_returns,
    written_with_what_others_see: written_with_what_others_see,
    returned_as_a_view: returned_as_a_view,
    written_by_index: lambda x, y: (x.__setitem__(0, 0.75), x * y),
    written_elsewhere_too: written_elsewhere_too,
}


@pytest.mark.parametrize("net", REFUSED)
def test_a_write_into_an_argument_that_cannot_be_made_again_is_refused(
    net: Callable[..., Any],
) -> None:
    module, [report] = rewritten(net, pass_of(REFUSED[net]))
    assert report.num_matches == 0
    assert "differ in what" in report.miss.reason or "from outside" in report.miss.reason
    if net not in (drawn_at_random, written_with_what_is_drawn):
        assert_same(net, module, [X, Y])


def test_a_plain_pattern_does_not_match_a_write_into_an_argument() -> None:
    check_rewrite(lambda x, y: torch.relu(operator.iadd(x, y)), add_relu, [X, Y], "from outside")


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


def added(a, b):
    return torch.relu(a) + b


def added_in_place(a, b):
    y = torch.relu(a)
    y += b
    return y


def equal(a, b):
    return torch.relu(a).eq(b)


def equal_in_place(a, b):
    return torch.relu(a).eq_(b)


@pytest.mark.parametrize(
    ("graph", "pattern", "dtype"),
    [
        (added_in_place, added, torch.bfloat16),
        (added, added_in_place, torch.bfloat16),
        (equal_in_place, equal, torch.float32),
        (equal, equal_in_place, torch.float32),
    ],
)
def test_a_write_keeps_the_dtype(graph: Any, pattern: Any, dtype: torch.dtype) -> None:
    inputs = X.to(dtype), Y
    module = graph_of(graph)
    reports, _ = apply_passes(module, [pass_of(pattern)], inputs)
    assert reports[0].num_matches == 0
    assert module(*inputs).dtype == graph(*inputs).dtype
    if graph in (added, added_in_place):
        alike = graph_of(graph)
        reports, _ = apply_passes(alike, [pass_of(pattern)], (X, Y))
        assert reports[0].num_matches == 1
        torch.testing.assert_close(alike(X, Y), graph(X, Y))


@torch.library.custom_op("passnet_tests::store", mutates_args={"into"})
def store(into: torch.Tensor, value: torch.Tensor) -> None:
    """Write a value into a tensor, by an op whose name does not tell."""
    into.copy_(value)


def read_before_a_store(x, y):
    total = x + y
    torch.ops.passnet_tests.store(x, y * 2)
    return torch.relu(total)


def test_a_write_by_an_op_of_others_is_seen() -> None:
    module, reports = rewritten(read_before_a_store, pass_of(add_relu))
    x, own = X.clone(), X.clone()
    assert torch.equal(module(x, Y), read_before_a_store(own, Y))
    assert torch.equal(x, own)
    index = GraphIndex(graph_of(read_before_a_store).graph)
    [stored] = [node for node in index.graph.nodes if "store" in str(node.target)]
    assert index.writers == [stored] and not index.is_unused(stored)


def one(x):
    return x[0, 1] * 2


def rows(x):
    return x[[0, 1]] * 2


def test_rows_of_a_list_are_no_place() -> None:
    for graph, pattern in ((one, rows), (rows, one), (rows, rows), (one, one)):
        module, reports = rewritten(graph, pass_of(pattern))
        assert reports[0].num_matches == (graph is pattern)
        assert torch.equal(module(X), graph(X))
