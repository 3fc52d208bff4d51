import math

import pytest
import torch

from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.compare.fresh_values import ANY_NUMBER, ArgumentSet, draws, fresh_tensors


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


def drawn(call: NetCall) -> list[ArgumentSet]:
    return list(draws(call, tuple((0, 9) for _ in call.tensors()), 2048.0, seed=0))


def test_each_draw_has_the_signature_of_the_example() -> None:
    mask = torch.ones(2, 6, dtype=torch.bool)
    wide = torch.randn(1, 4).expand(3, 4)
    call = call_of(torch.randn(6, 3).t(), torch.arange(6), mask, torch.ones(0, 2), wide)
    kinds = set()
    for draw in drawn(call):
        kinds.add(draw.kind)
        for tensor, example in zip(draw.tensors, call.tensors(), strict=True):
            assert (tensor.shape, tensor.dtype) == (example.shape, example.dtype)
    assert kinds == {"usual", "small", "mask", "indices", "large", "not finite"}
    assert all(torch.equal(x, y) for x, y in zip(call.tensors(), call.leaves, strict=True))


def test_masks_take_both_values_and_empty_and_full_rows() -> None:
    call = call_of(torch.ones(3, 5, dtype=torch.bool), torch.ones(3, 5, dtype=torch.int64))
    masks = [draw.tensors[0] for draw in drawn(call) if draw.kind == "mask"]
    assert all(
        torch.equal(d.tensors[0], d.tensors[1].bool()) for d in drawn(call) if d.kind == "mask"
    )
    rows = [(bool(mask.any(-1).all()), bool(mask.all(-1).any())) for mask in masks]
    assert {(True, True), (False, True), (False, False)} <= set(rows)


def test_floats_are_hostile_equal_negated_scaled_and_zero() -> None:
    call = call_of(torch.randn(40, 50))
    [x] = call.tensors()
    found = {draw.says: draw.tensors[0] for draw in drawn(call)}
    assert found["with nan in its arguments"].isnan().sum() == 1
    assert found["with a row of NaN in tensor 0"].isnan().sum() == 50
    assert found["with equal values in its arguments"].unique().numel() < 20
    assert not found["with zeros as arguments"].any()
    assert torch.equal(found["with arguments 1000 times as large"], x * 1000)
    assert float(found["with arguments up to 2048"].abs().max()) == pytest.approx(2048.0)


def test_whole_numbers_of_every_dtype_are_drawn_within_bounds_and_beyond() -> None:
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        call = call_of(torch.full((6,), 5, dtype=dtype))
        tensors = [draw.tensors[0] for draw in drawn(call) if draw.kind == "indices"]
        assert any(set(x.tolist()) >= {0, 1, 9} and int(x.max()) == 9 for x in tensors)
        assert any(int(x.min()) < 0 or int(x.max()) > 100 for x in tensors)


def test_rows_of_whole_numbers_are_beyond_their_bounds_one_by_one() -> None:
    call = call_of(torch.randint(0, 9, (2, 5)))
    tensors = [draw.tensors[0] for draw in draws(call, ((0, 8),), 10.0, 0)]
    for row in (0, 1):
        for value in (-1, 9):
            assert any((x[row] == value).any() and (x[1 - row] < 9).all() for x in tensors)


def test_whole_numbers_of_any_size_are_drawn_far_from_zero() -> None:
    call = call_of(torch.randint(0, 10**7, (6, 8)))
    found = draws(call, ((0, ANY_NUMBER),), 10.0, 0)
    tensors = [draw.tensors[0] for draw in found if "far from zero" in draw.says]
    assert [int(x.min()) > 2**39 for x in tensors] == [True, True, False]
    assert len({int(x.max() - x.min()) for x in tensors}) > 1


def test_items_end_in_padding_or_hold_it_alone() -> None:
    call = call_of(torch.rand(3, 8, 5) + 0.5, torch.arange(24).reshape(3, 8))
    found = {draw.says: draw.tensors for draw in drawn(call)}
    [x, _] = found["with items that end in zeros, or hold zeros alone"]
    assert x[0].any(-1).tolist() == 4 * [True] + 4 * [False]
    assert x[1].all() and not x[2].any()
    for name, value in (("least", 0), ("second", 1), ("greatest", 9)):
        [_, ids] = found[f"with the {name} whole number at the ends of rows"]
        assert ids[0, 4:].eq(value).all() and ids[2].eq(value).all() and not ids[1].eq(value).all()
        assert found[f"with the {name} whole number alone"][1].eq(value).all()


def test_floats_are_whole_numbers_denormal_and_near_the_largest() -> None:
    call = call_of(torch.rand(40, 50) + 0.5)
    found = {draw.says: draw for draw in drawn(call)}
    assert set(found["with whole numbers as floats"].tensors[0].flatten().tolist()) == {*range(256)}
    assert float(found["with arguments around -30"].tensors[0].max()) < -27
    assert float(found["with arguments around 30"].tensors[0].min()) > 27
    tiny, huge = (found[f"with arguments {f:g} times as large"] for f in (1e-40, 1e24))
    assert tiny.kind == "small" and float(tiny.tensors[0].max()) < torch.finfo(torch.float32).tiny
    assert huge.kind == "large" and float(huge.tensors[0].min()) > 1e23


def test_a_nan_is_in_every_place_of_a_row() -> None:
    call = call_of(torch.rand(6, 9), torch.rand(2, 1, 4))
    found = {draw.says: draw.tensors for draw in drawn(call) if "a NaN in each row" in draw.says}
    for number, (shape, places) in enumerate([((6, 9), [*range(9)]), ((2, 1, 4), [0, 3])]):
        there = [found[says][number].isnan() for says in found if says.endswith(f"tensor {number}")]
        assert [where.shape for where in there] == 2 * [shape]
        assert all(where.sum(-1).eq(1).all() for where in there)
        flat = torch.cat([where.reshape(-1, shape[-1]) for where in there])
        assert flat.any(0).nonzero().flatten().tolist() == places
