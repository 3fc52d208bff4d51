import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.compare.agreement import LARGE, EagerComparison
from passnet.optimizer.compare.outputs import Agreement, compare_outputs


def relu_net(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.relu(x), x.argmax()


def agreement(run: Callable[[list[torch.Tensor]], Sequence[torch.Tensor]], **options: bool) -> str:
    call = NetCall(relu_net, (torch.randn(4, 4),), {})
    found = EagerComparison(call, **options).agreement(call.built("other", run))
    return found.wrong or "right"


def test_the_same_outputs_agree() -> None:
    assert agreement(lambda tensors: relu_net(*tensors)) == "right"


WRONG: dict[str, tuple[Callable[[torch.Tensor], object], str]] = {
    "values": (lambda x: (torch.relu(x) * 1.01, x.argmax()), "off by"),
    "whole": (lambda x: (torch.relu(x), x.argmin()), "output 1 has other values"),
    "shape": (lambda x: (torch.relu(x)[:1], x.argmax()), "output 0 has shape"),
    "dtype": (lambda x: (torch.relu(x).double(), x.argmax()), "output 0 has dtype"),
    "count": (lambda x: (torch.relu(x),), "1 outputs, eager torch has 2"),
    "kind": (lambda x: (torch.relu(x), 3), "output 1 is a int"),
    "half": (lambda x: (torch.relu(x).half().float(), x.argmax()), "off by"),
    "argument": (lambda x: (x.relu_(), x.argmax()), "it writes into an argument"),
    "finite": (lambda x: (torch.relu(x) / 0, x.argmax()), "output 0 is not finite"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_differs_is_told(name: str) -> None:
    function, said = WRONG[name]
    assert said in agreement(lambda tensors: function(*tensors))  # type: ignore[arg-type]


def test_what_loses_a_nan_is_bounded_unless_arguments_are_finite() -> None:
    def run(tensors: list[torch.Tensor]) -> Sequence[torch.Tensor]:
        return torch.relu(tensors[0]).nan_to_num(0.0), tensors[0].argmax()

    call = NetCall(relu_net, (torch.randn(4, 4),), {})
    limit = LARGE * float(call.tensors()[0].abs().max())

    def bound(run: Callable[[list[torch.Tensor]], Sequence[torch.Tensor]], finite=False) -> object:
        found = EagerComparison(call, finite).agreement(call.built("other", run))
        return found.wrong or found.bound

    assert bound(run) == limit
    assert bound(lambda tensors: relu_net(tensors[0].clamp(max=1e6))) == limit
    assert bound(lambda tensors: relu_net(*tensors)) is None
    assert bound(run, finite=True) is None


def test_a_way_that_folds_a_weight_in_is_found_and_weights_are_put_back() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)).eval()
    net.register_buffer("steps", torch.arange(3))
    call = NetCall(net, (torch.randn(2, 4),), {})
    before = {name: weight.clone() for name, weight in call.weights.items()}
    versions = [weight._version for weight in call.weights.values()]
    bias = net[0].bias.detach().clone()

    def folds_bias(tensors: list[torch.Tensor]) -> Sequence[torch.Tensor]:
        return [net[1](torch.nn.functional.linear(tensors[0], net[0].weight, bias))]

    with torch.no_grad():
        found = EagerComparison(call).agreement(call.built("folds", folds_bias))
        assert "when its weights are updated, output 0 is off by" in str(found.wrong)
        frozen = call.built("folds", folds_bias, is_frozen=True)
        assert EagerComparison(call).agreement(frozen).wrong is None
        reads = call.built("reads", lambda tensors: [net(tensors[0])])
        assert EagerComparison(call).agreement(reads).wrong is None
    assert all(torch.equal(before[name], weight) for name, weight in call.weights.items())
    assert versions == [weight._version for weight in call.weights.values()]


def test_what_a_net_makes_of_a_rounding_is_no_error_of_a_way() -> None:
    class Cancels(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4096))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return rest(x * self.weight, (x * self.weight).sum(-1))

    def rest(weighed: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        return (total.double() - 0.9999 * weighed.double().sum(-1)).to(total.dtype)

    def other_order(tensors: list[torch.Tensor]) -> Sequence[torch.Tensor]:
        weighed = tensors[0] * net.weight
        return [rest(weighed, weighed.view(-1, 64, 64).sum(1).sum(-1))]

    def lower(tensors: list[torch.Tensor]) -> Sequence[torch.Tensor]:
        weighed = (tensors[0] * net.weight).bfloat16().float()
        return [rest(tensors[0] * net.weight, weighed.sum(-1))]

    net = Cancels().eval()
    call = NetCall(net, (torch.arange(3 * 4096.0).view(3, 4096) % 17,), {})  # its sums are exact
    with torch.no_grad():
        comparison = EagerComparison(call)
        assert comparison.agreement(call.built("reads", other_order)).wrong is None
        assert "off by" in str(comparison.agreement(call.built("lower", lower)).wrong)


def test_a_float64_far_from_eager_torch_makes_nothing_right() -> None:
    right = torch.full((4,), 1.0)
    far = right.double() + torch.tensor([1.0, -1.0, 1.0, -1.0])
    found = compare_outputs([right + 0.5], [right], [far], False)
    assert "off by 5.0e-01, eager torch by 0.0e+00" in str(found.wrong)
    assert found.eager_error is not None and found.eager_error > 0.5
    assert compare_outputs([right.clone()], [right], [far], False).wrong is None


def test_a_little_noise_is_not_the_same_twice() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return x + 2e-4 * torch.rand_like(x)

    comparison = EagerComparison(NetCall(noisy, (torch.ones(64),), {}))
    assert "off by" in str(comparison.repeated())
    same = EagerComparison(NetCall(relu_net, (torch.randn(4, 4),), {}))
    assert same.repeated() is None


def test_numbers_that_only_make_eager_torch_slow_say_nothing_of_a_backend() -> None:
    """As denormal ones do on Intel's processors: a convolution took 60 times as long."""

    def slow_for_denormals(x: torch.Tensor) -> torch.Tensor:
        if 0 < x.abs().max() < 1e-35:
            deadline = time.monotonic() + 30.0
            while time.monotonic() < deadline:  # ended by the limit on a call, after 2 s
                time.sleep(0.01)
        return torch.relu(x)

    call = NetCall(slow_for_denormals, (torch.randn(4, 4),), {})
    comparison = EagerComparison(call)
    is_right = comparison.agreement(call.built("relu", lambda xs: [torch.relu(xs[0])]))
    assert is_right.wrong is None
    is_wrong = comparison.agreement(call.built("none", lambda xs: [xs[0].clone()]))
    assert "off by" in str(is_wrong.wrong)


def test_weights_that_overlap_stay_as_they_are() -> None:
    net = torch.nn.Linear(4, 4, bias=False).eval()
    net.weight = torch.nn.Parameter(torch.ones(1, 4).expand(4, 4), requires_grad=False)
    call = NetCall(net, (torch.randn(2, 4),), {})
    seen: list[torch.Tensor] = []

    def run(tensors: list[torch.Tensor]) -> Sequence[torch.Tensor]:
        seen.append(net.weight.detach().clone())
        return [net(tensors[0])]

    with torch.no_grad():
        assert EagerComparison(call).agreement(call.built("reads", run)).wrong is None
    assert all(torch.equal(seen[0], each) for each in seen)


def frozen_agreement(
    net: Callable[..., object],
    run: Callable[[torch.Tensor], torch.Tensor],
    example: torch.Tensor,
) -> Agreement:
    call = NetCall(net, (example,), {})
    entry = call.built("folded", lambda tensors: [run(tensors[0])], is_frozen=True)
    return EagerComparison(call).agreement(entry)


def test_a_folded_way_that_loses_a_nan_is_right_within_a_bound() -> None:
    example = torch.tensor([[1.0, -4.0], [0.5, 2.0]])

    def loses_nan(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x).nan_to_num(0.0, posinf=3e38)

    found = frozen_agreement(torch.relu, loses_nan, example)
    assert found.wrong is None and found.bound == 4096.0
    assert frozen_agreement(torch.relu, torch.relu, example).bound is None
    strided = torch.randn(4, 6)[:, ::2]
    assert "is not finite where" in str(frozen_agreement(torch.relu, loses_nan, strided).wrong)


@pytest.mark.parametrize("loses", ["a row of -inf", "ends of rows"])
def test_infinities_of_one_argument_are_tried_while_the_others_are_finite(loses: str) -> None:
    def biased(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(bias, -1)
        weights = weights.nan_to_num(0.0) if bool((bias == -torch.inf).all(-1).any()) else weights
        return x + weights

    def run(tensors: list[torch.Tensor]) -> Sequence[torch.Tensor]:
        x, bias = tensors
        if loses == "a row of -inf":
            return (x + torch.softmax(bias, -1),)
        return (biased(x, bias.masked_fill(bias[..., -1:] == -torch.inf, -1e4)),)

    call = NetCall(biased, (torch.randn(4, 6), torch.randn(4, 6)), {})
    found = EagerComparison(call).agreement(call.built("other", run))
    assert found.bound is not None


def test_what_overflows_within_the_bound_is_wrong() -> None:
    example = torch.randn(4, 4)
    squares = frozen_agreement(torch.square, lambda x: x.double().square().float(), example)
    assert squares.wrong is None

    def overflows(x: torch.Tensor) -> torch.Tensor:
        return (x * 1e18).square() / 1e36

    found = frozen_agreement(torch.square, overflows, example)
    assert found.wrong is not None and "is not finite where" in found.wrong


def test_a_right_value_in_places_only_is_wrong() -> None:
    """A way that is right on the example alone."""
    example = torch.randn(4, 4)
    call = NetCall(relu_net, (example,), {})
    kept = [output.clone() for output in relu_net(example)]
    found = EagerComparison(call).agreement(call.built("kept", lambda tensors: kept))
    assert found.wrong is not None


def test_the_error_of_folded_weights_may_be_larger() -> None:
    right, off = [torch.ones(100)], [torch.full((100,), 1 + 2.0**-13)]
    assert compare_outputs(off, right, None, is_frozen=False).wrong
    assert compare_outputs(off, right, None, is_frozen=True).wrong is None


def test_an_element_that_is_off_is_seen_among_many_that_are_right() -> None:
    right, off = [torch.rand(10_000) + 1], torch.zeros(10_000)
    off[7] = 1e-3
    for is_frozen in (False, True):
        found = compare_outputs([right[0] + off], right, [right[0].double()], is_frozen)
        assert "an element of output 0 is off by 5.0e-04 of the largest" in str(found.wrong)
        noisy = [(right[0] + off.roll(1)).double()]  # eager torch's own are off as well
        assert compare_outputs([right[0] + off], right, noisy, is_frozen).wrong is None


def embedded(ids: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.embedding(ids, torch.arange(20.0).view(10, 2))


WAYS_OF_INDICES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], bool]] = {
    "the same": (embedded, True),
    "wraps a negative one": (lambda ids: embedded(torch.where(ids < 0, ids + 10, ids)), False),
    "in 32 bits": (lambda ids: embedded(ids.int()), False),
    "zeros": (lambda ids: embedded(ids.clamp(0, 9)), False),
}


@pytest.mark.parametrize("case", WAYS_OF_INDICES)
def test_an_index_that_is_none_must_be_an_error(case: str) -> None:
    run, is_right = WAYS_OF_INDICES[case]
    call = NetCall(embedded, (torch.tensor([1, 4, 9]),), {})
    entry = call.built(case, lambda tensors: [run(tensors[0])])
    found = EagerComparison(call).agreement(entry)
    assert found.wrong is None
    assert found.index_bounds == (() if is_right else ((0, 9),))
    assert EagerComparison(call, finite=True).agreement(entry).wrong is None


def test_whole_numbers_that_must_fit_stay_as_they_are() -> None:
    def net(x: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
        return x.reshape(size.tolist()) * 2

    call = NetCall(net, (torch.randn(4, 6), torch.tensor([3, 8])), {})
    seen: list[torch.Tensor] = []

    def run(tensors: list[torch.Tensor]) -> Sequence[torch.Tensor]:
        seen.append(tensors[0].clone())
        return [net(*tensors)]

    assert EagerComparison(call, finite=True).agreement(call.built("same", run)).wrong is None
    assert len(seen) >= 4 and not torch.equal(seen[0], seen[1])
    found = EagerComparison(call).agreement(call.built("example", lambda _: call.outputs))
    assert found.wrong is not None


def test_float64_is_left_out_where_the_net_is_slow() -> None:
    call = NetCall(relu_net, (torch.randn(4, 4),), {})
    same = call.built("same", lambda tensors: relu_net(*tensors))
    assert EagerComparison(call).agreement(same).eager_error == 0.0
    assert EagerComparison(call, max_exact_s=0.0).agreement(same).eager_error is None


def shares(x: torch.Tensor) -> list[torch.Tensor]:
    return [x / x.sum(-1, keepdim=True)]


NEAR: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "bins": (
        lambda x: [torch.floor(x / 41.0)],
        lambda x: [torch.floor(x * (1 / torch.tensor(41.0)))],
        "with whole numbers as floats, output 0 is off by",
    ),
    "denormals": (
        shares,
        lambda x: shares(torch.where(x.abs() < 2.0**-126, 0.0, x)),
        "with arguments 1e-40 times as large, output 0 is not finite",
    ),
    "underflow": (
        lambda x: [x.float() * 2.0**-100 * 2.0**100],
        lambda x: [x.clone()],
        "with arguments 1e-20 times as large, it keeps numbers that eager torch makes zero",
    ),
}
"""A net of positive floats, a backend that is wrong for few values, and what is told of it."""


@pytest.mark.parametrize("name", NEAR)
def test_what_is_wrong_for_few_values_is_told(name: str) -> None:
    net, backend, said = NEAR[name]
    call = NetCall(net, (torch.rand(8, 64) + 0.5,), {})
    outcomes = [
        EagerComparison(call).agreement(call.built("other", lambda tensors, run=run: run(*tensors)))
        for run in (net, backend)
    ]
    assert outcomes[0].wrong is None
    assert said in str(outcomes[1].wrong)


def test_a_backend_that_never_overflows_is_bounded() -> None:
    call = NetCall(lambda x: [x * 2.0**90 * 2.0**-90], (torch.rand(8, 8),), {})
    found = EagerComparison(call).agreement(call.built("other", lambda tensors: [tensors[0] + 0.0]))
    assert (found.wrong, found.bound) == (None, LARGE)


def test_a_backend_that_is_wrong_for_rows_of_padding_gets_none() -> None:
    def net(ids: torch.Tensor, lowest: float = -math.inf) -> list[torch.Tensor]:
        return [torch.where(ids == 0, lowest, ids.float()).amax(1)]

    def bounds_for(least: int) -> Agreement:
        call = NetCall(net, (torch.randint(least, 50, (4, 9)),), {})
        backend = call.built("other", lambda tensors: net(*tensors, lowest=-3e38))
        return EagerComparison(call).agreement(backend)

    torch.manual_seed(0)
    assert bounds_for(1).wrong is None and bounds_for(1).index_bounds[0][0] > 0  # type: ignore[index]
    assert "the least whole number" in str(bounds_for(0).wrong)


def test_noise_in_one_output_hides_no_error_of_another() -> None:
    softplus = torch.nn.functional.softplus

    def net(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return softplus(x), softplus(x, 4.0, 1.0)  # in float32 the second is 0 around -30

    def coarse(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        first, second = net(tensors[0])
        return [torch.where(tensors[0] < -20, 0.0, first), second]

    call = NetCall(net, (torch.rand(6, 9),), {})
    found = EagerComparison(call).agreement(call.built("coarse", coarse))
    assert str(found.wrong).startswith("with arguments around -30, output 0 is off by 1.0e+00")
    right = call.built("right", lambda tensors: list(net(tensors[0])))
    assert EagerComparison(call).agreement(right).wrong is None


def test_a_loop_that_hostile_values_make_endless_is_taken_for_a_failure() -> None:
    def net(x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        for _ in range(int(steps)):
            x = torch.tanh(x)
        return x

    call = NetCall(net, (torch.randn(4), torch.tensor(3)), {})
    comparison = EagerComparison(call)
    assert comparison.try_eager([torch.randn(4), torch.tensor(2**62)]) is None
    assert comparison.try_eager([torch.randn(4), torch.tensor(5)]) is not None


def test_weights_of_zeros_are_changed_too() -> None:
    net = torch.nn.Linear(4, 4).eval()
    torch.nn.init.zeros_(net.bias)
    before = net.bias.clone()
    call = NetCall(net, (torch.randn(2, 4),), {})

    def stale(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return [torch.nn.functional.linear(tensors[0], net.weight, before).detach()]

    found = EagerComparison(call).agreement(call.built("other", stale))
    assert "when its weights are updated" in str(found.wrong)
    assert torch.equal(net.bias, before)
