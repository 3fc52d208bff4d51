"""A pattern that is not found says where it came nearest, what it expected and what it found."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from passnet.passes.match.match import Miss
from tests.passes.graphs import pass_of, rewritten

F = torch.nn.functional


def miss_of(net: Callable[..., Any], pattern: Callable[..., Any]) -> Miss:
    """The nearest miss of a pattern in the graph of a function."""
    _, [report] = rewritten(net, pass_of(pattern, name="FuseNorm"))
    assert report.num_matches == 0 and report.miss is not None
    assert report.miss.pattern == "FuseNorm"
    return report.miss


def gist(miss: Miss) -> tuple[int, int, str | None, str, str]:
    """Calls that agreed and calls there are, the node, what was expected, what was found."""
    return miss.num_matched, miss.num_calls, miss.node, miss.expected, miss.found


def norm(x, w):
    y = x.pow(2).mean(-1, keepdim=True)
    return x * torch.rsqrt(y + 1e-6) * w


def test_another_literal_is_named_with_its_parameter() -> None:
    def net(x, w):
        y = x.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(y + 1e-5) * w

    miss = miss_of(net, norm)
    assert miss.node == "add" and miss.reason == "another argument"
    assert (miss.expected, miss.found) == ("argument 1=1e-06", "argument 1=1e-05")


def test_another_literal_deep_in_a_call_is_named() -> None:
    miss = miss_of(lambda x: F.softmax(x, dim=1).exp(), lambda x: F.softmax(x, -1).exp())
    assert gist(miss) == (1, 2, "softmax", "dim=-1", "dim=1")


def test_another_type_of_a_literal_is_shown() -> None:
    miss = miss_of(lambda x: x + 1, lambda x: x + 1.0)
    assert (miss.expected, miss.found) == ("argument 1=1.0", "argument 1=1")


def test_another_call_is_named_with_the_node_that_makes_it() -> None:
    miss = miss_of(lambda x, y: torch.relu(torch.sub(x, y)), lambda x, y: torch.relu(x + y))
    assert gist(miss) == (1, 2, "sub", "operator.add", "torch.sub")


def test_a_function_in_the_place_of_an_operator_is_another_call() -> None:
    miss = miss_of(lambda x, y: torch.relu(torch.add(x, y)), lambda x, y: torch.relu(x + y))
    assert gist(miss) == (1, 2, "add", "operator.add", "torch.add")


def test_another_overload_is_named() -> None:
    miss = miss_of(lambda x: x.mean().exp(), lambda x: x.mean(0).exp())
    assert miss.node == "mean" and miss.reason == "another overload"
    assert (miss.expected, miss.found) == ("dim", "dtype")


def test_another_number_of_arguments_is_named() -> None:
    miss = miss_of(lambda x: torch.einsum("i->i", x), lambda x, y: torch.einsum("i->i", x, y))
    assert gist(miss) == (0, 1, "einsum", "3 arguments", "2")


def test_a_leak_names_the_value_and_who_uses_it() -> None:
    def net(x, y):
        z = x + y
        return torch.relu(z), z.exp()

    miss = miss_of(net, lambda x, y: torch.relu(x + y))
    assert miss.node == "add" and "leaks" in miss.reason and "return it" in miss.reason
    assert miss.found == "a use by exp"


def test_a_leak_to_the_output_is_told() -> None:
    miss = miss_of(lambda x, y: (torch.relu(z := x + y), z), lambda x, y: torch.relu(x + y))
    assert (miss.node, miss.found) == ("add", "a use by output")


def test_a_missing_last_call_says_what_there_is_in_its_place() -> None:
    miss = miss_of(lambda x, y: (x + y).exp(), lambda x, y: torch.relu(x + y))
    assert gist(miss) == (1, 2, "add", "torch.relu", "Tensor.exp")
    miss = miss_of(lambda x, y: x + y, lambda x, y: torch.relu(x + y))
    assert gist(miss) == (1, 2, "add", "torch.relu", "the graph's output")


def test_a_graph_without_any_of_the_calls_says_so() -> None:
    miss = miss_of(lambda x: x.exp(), lambda x, y: torch.relu(x + y))
    assert gist(miss) == (0, 2, None, "operator.add", "no such call in the graph")


def test_the_place_with_the_longest_agreement_is_told() -> None:
    def net(x, y):
        short = (x * y).tanh()
        long = ((y + x).sigmoid().tanh() * x).sin()
        return short, long

    miss = miss_of(net, lambda x, y: ((x + y).sigmoid().tanh() * y).cos())
    assert gist(miss) == (4, 5, "mul_1", "Tensor.cos", "Tensor.sin")


def test_a_broken_chain_is_told_where_it_breaks() -> None:
    def net(x, w):
        y = x.pow(2).mean(-1, keepdim=True)
        return x * (y + 1e-6).sqrt() * w

    miss = miss_of(net, norm)
    assert miss.num_calls == 6 and miss.num_matched == 3
    assert (miss.node, miss.expected, miss.found) == ("add", "torch.rsqrt", "Tensor.sqrt")


def test_two_values_in_the_place_of_one_are_told() -> None:
    miss = miss_of(lambda x, y: x * y, lambda x: x * x)
    assert (miss.node, miss.expected, miss.found) == ("y", "value x", "value y")
    assert miss.reason == "it stood for another before"


def test_an_argument_that_the_graph_leaves_out_is_told() -> None:
    miss = miss_of(lambda x, w: F.linear(x, w), lambda x, w, b: F.linear(x, w, b))
    assert (miss.node, miss.expected, miss.found) == ("linear", "bias", "None")
    assert miss.reason == "it is left out"


def test_a_literal_of_another_type_than_the_annotation_is_told() -> None:
    def pattern(x, n: float):
        return x * n

    miss = miss_of(lambda x: x * 2, pattern)
    assert (miss.call, miss.expected, miss.found) == ("argument n", "a literal float", "2")


def test_a_second_use_that_the_graph_lacks_is_told() -> None:
    miss = miss_of(lambda x: x.exp().sin(), lambda x: ((y := x.exp()).sin(), y.cos()))
    assert gist(miss) == (1, 3, "exp", "Tensor.cos", "Tensor.sin")
    miss = miss_of(lambda x: x.exp().cos(), lambda x: ((y := x.exp()).sin(), y.cos()))
    assert gist(miss) == (2, 3, "exp", "Tensor.sin", "no further use")


def test_of_two_parts_that_share_nothing_the_one_that_is_not_there_is_told() -> None:
    miss = miss_of(lambda x: x.sin(), lambda x, y: (x.sin(), y.cos()))
    assert gist(miss) == (0, 2, None, "Tensor.cos", "no such call in the graph")


def test_there_is_no_miss_where_a_pattern_was_found_once() -> None:
    _, [report] = rewritten(lambda x: (x.exp(), x + 1), pass_of(lambda x: x.exp()))
    assert report.num_matches == 1 and report.miss is None


SENTENCES = {
    "literal": (lambda x: x.view("a\nb"), lambda x: x.view("c\nd")),
    "call": (lambda x: x.exp().sin(), lambda x: x.exp().cos()),
    "leak": (lambda x: ((y := x.exp()).sin(), y), lambda x: x.exp().sin()),
    "nothing": (lambda x: x.exp(), lambda x: x.sin()),
    "write": (lambda x: x.add_(1), lambda x: x.add(1)),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_miss_is_told_in_one_line(name: str) -> None:
    miss = miss_of(*SENTENCES[name])
    sentence = miss.sentence()
    assert "\n" not in sentence
    assert sentence.startswith(f"FuseNorm: {miss.num_matched} of {miss.num_calls} calls agree")
    assert sentence.endswith(f"expected {miss.expected}, found {miss.found}")
    assert miss.node is None or f" at node {miss.node}" in sentence


def test_branches_that_can_stand_for_each_other_are_not_tried_in_all_orders() -> None:
    names = ", ".join(f"x{number}" for number in range(12))
    space: dict[str, Any] = {"torch": torch}
    body = f"    ys = [torch.relu(x) for x in ({names})]\n"
    exec(  # noqa: S102 (functions of twelve parameters)
        f"def net({names}):\n{body}    return ys[0].exp(), *ys\n"
        f"def pattern({names}):\n{body}    return ys[0].exp(), *ys[1:]\n",
        space,
    )
    miss = miss_of(space["net"], space["pattern"])  # one is used outside, whatever the others are
    assert miss.reason.endswith("can stand for each other in more ways than are tried")
