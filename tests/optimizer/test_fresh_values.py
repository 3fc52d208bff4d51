import math

import pytest
import torch

from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.compare.fresh_values import HOSTILE, fresh_tensors, hostile_tensors


def net(*tensors: torch.Tensor) -> torch.Tensor:
    return sum((tensor.double().sum() for tensor in tensors), torch.zeros((), dtype=torch.double))


def call_of(*tensors: torch.Tensor) -> NetCall:
    return NetCall(net, tensors, {})


def test_fresh_values_are_like_those_of_the_example() -> None:
    example = torch.randn(64, 64, dtype=torch.bfloat16).t() * 3 + 5
    ids = torch.randint(5, 90, (4, 100))
    mask = torch.tensor([1, 0] * 20)
    additive = torch.tensor([0.0, -math.inf, 0.0, 0.0])
    fresh = fresh_tensors(call_of(example, ids, mask, additive), seed=1)
    floats, other_ids, other_mask, other_additive = fresh
    assert floats.dtype == example.dtype and floats.stride() == example.stride()
    assert not torch.equal(floats, example)
    assert float(floats.float().mean()) == pytest.approx(5, abs=0.3)
    assert float(floats.float().std()) == pytest.approx(3, abs=0.3)
    assert int(other_ids.min()) >= 5 and int(other_ids.max()) < 90
    assert not torch.equal(other_ids, ids)
    assert sorted(other_mask.tolist()) == sorted(mask.tolist())
    assert other_additive.isinf().sum() == 1
    again = fresh_tensors(call_of(example, ids, mask, additive), seed=1)
    assert all(map(torch.equal, fresh, again))


def test_each_hostile_value_stands_once_in_each_float() -> None:
    call = call_of(torch.ones(3, 5), torch.ones(2, dtype=torch.int64), torch.ones(0, 2))
    *found, (bound, scaled) = hostile_tensors(call, seed=0, bound=512.0)
    assert len(found) == len(HOSTILE)
    assert (
        bound == 512.0 and float(scaled[0].abs().max()) == 512.0 and scaled[1].equal(found[0][1][1])
    )
    for value, (floats, whole, empty) in found:
        matching = floats.isnan() if math.isnan(value) else floats == torch.tensor(value)
        assert matching.sum() == 1 and empty.numel() == 0 and whole.dtype is torch.int64


def test_without_floats_there_is_nothing_hostile() -> None:
    assert not list(hostile_tensors(call_of(torch.ones(3, dtype=torch.int64)), seed=0, bound=1.0))
