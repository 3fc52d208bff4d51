"""Attention that is written out becomes one call, as exact as before, or stays as it is."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._inductor import config
from torch.nn.functional import dropout, normalize, softmax

from passnet.passes.apply.written_attention import fuse_attention
from passnet.passes.inductor_pass import passes_in_inductor

INF, LEAST = math.inf, torch.finfo(torch.float32).min

B, H, L, S, D = 2, 3, 16, 18, 4
LEAST_SCORES = L * L
Q, K, FLAT_Q, FLAT_K = (B, H, L, D), (B, H, S, D), (B * H, L, D), (B * H, S, D)

SC = (B, H, L, S)

Net = Callable[..., Any]
FORMS: dict[str, tuple[Net, list[tuple[Any, ...]]]] = {}
OTHERS: dict[str, tuple[Net, list[tuple[Any, ...]]]] = {}
"""Nets that write attention out, and those that only look so, with the shapes of their inputs; a
shape that ends with `bool` is of a mask."""


def form(*shapes: tuple[Any, ...], of: dict[str, Any] = FORMS) -> Callable[[Net], Net]:
    """Note a net."""

    def note(net: Net) -> Net:
        of[net.__name__] = net, [*shapes]
        return net

    return note


def other(*shapes: tuple[Any, ...]) -> Callable[[Net], Net]:
    """Note a net that stays."""
    return form(*shapes, of=OTHERS)


def drawn(*shape: Any) -> Tensor:
    """Random numbers, or a mask."""
    return torch.rand(shape[:-1]) > 0.7 if shape[-1] is bool else torch.randn(shape)


@form(Q, K, K)
def no_scale(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT).softmax(-1) @ v


@form((B, L, H, D), (B, S, H, D), (B, S, H, D))
def scale_on_query(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return torch.matmul(((q * 0.3) @ k.permute(0, 1, 3, 2)).softmax(-1), v)


@form((B, L, H, D), (B, S, H, D), (B, S, H, D), (B, 1, L, S))
def by_einsum(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / 2 + mask
    return torch.einsum("...hqk,...khd->...qhd", softmax(scores, -1), v)


@form(Q, K, K, (B, 1, 1, S, bool))
def filled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    weights = (2.0 * (q @ k.mT)).masked_fill(mask, -1e9).softmax(-1)
    return (dropout(weights, 0.1, training=False) @ v).transpose(1, 2).reshape(B, L, H * D)


@form(Q, K, K, (1, 1, L, S), (B, 1, L, S, bool))
def added_then_filled(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.mT
    scores += bias
    return scores.where(~mask, LEAST).softmax(-1) @ v


@form(Q, K, K, (L, S, bool), (H, 1, 1))
def filled_then_taken_off(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
    return (torch.where(mask, torch.tensor(-INF), (q @ k.mT) * 0.5) - bias).softmax(-1) @ v


@form(FLAT_Q, FLAT_K, FLAT_K, (B, 1, L, S))
def views_between(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = torch.bmm(q, k.transpose(1, 2)).view(B, H, L, S) + mask
    return torch.bmm(softmax(scores.view(B * H, L, S), -1), v).view(B, H, L, D)


@form((B * H, 1, S), FLAT_Q, (B * H, D, S), FLAT_K)
def by_baddbmm(bias: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.baddbmm(bias, q, k, alpha=0.3).softmax(-1) @ v


@form((B, H, D, L), (B, H, D, S), (B, H, D, S), (1, H, L, S))
def values_first(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    scores = (q.transpose(-2, -1) @ k) * 0.3 + bias
    return (v @ scores.softmax(-1).transpose(-2, -1)).reshape(B, H * D, L)


@form(Q, K, K)
def columns_first(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (k @ q.mT).softmax(-2).mT @ v


@form(Q, K, K, (H, 1, 1), (1,))
def learned_scales(q: Tensor, k: Tensor, v: Tensor, factor: Tensor, divisor: Tensor) -> Tensor:
    scores = (normalize(q, dim=-1) @ normalize(k, dim=-1).mT) * factor.exp()
    return (scores / (1 + divisor.abs())).softmax(-1) @ v


@form(Q, K, K, (B, 1, 1, S))
def scale_of_columns(q: Tensor, k: Tensor, v: Tensor, factor: Tensor) -> Tensor:
    return ((q @ k.mT) * factor).softmax(-1) @ v


@form(Q, (B, S, D), (B, S, D))
def one_key_for_all_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = torch.einsum("bhqd,bkd->bhqk", q, k).softmax(-1)
    return torch.einsum("bhqk,bkd->bhqd", weights, v)


@form(FLAT_Q, (B, S, D), (B, S, D), (B, L, S))
def grouped_heads(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    k, v = (x[:, None].expand(B, H, S, D).reshape(B * H, S, D) for x in (k, v))
    scores = (q @ k.mT).view(B, H, L, S) + mask[:, None]
    return scores.softmax(-1).view(B * H, L, S) @ v


@form((B * 2, H, L, D), (B * 2, H, L, D), (B * 2, H, L, D), (H, L, L), (2, L, L))
def windows(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
    scores = ((q * 0.3) @ k.mT + bias).view(B, 2, H, L, L) + mask[:, None][None]
    return scores.view(-1, H, L, L).softmax(-1) @ v


@form(FLAT_Q, FLAT_K, FLAT_K, (B * H, 2, 8, 3), (B * H, 2, 8, 6))
def bias_of_rows_and_columns(q: Tensor, k: Tensor, v: Tensor, high: Tensor, wide: Tensor) -> Tensor:
    scores = (q @ k.mT).view(B * H, 2, 8, 3, 6) + high[..., None] + wide[..., None, :]
    return scores.view(B * H, L, S).softmax(-1) @ v


@form((B, L, H, D), K, K)
def copy_written(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    result = ((q.transpose(1, 2) @ k.mT).softmax(-1) @ v).transpose(1, 2)
    flat = result.reshape(B, L, H * D)
    flat.add_(1)
    return flat, result.contiguous()


@form(Q, K, K)
def two_layers(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    v = (k @ k.mT).softmax(-1) @ v
    return (q @ v.mT).softmax(-1) @ v


@form(Q, K, (B, H, S, D + 1))
def wider_values(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT).softmax(-1) @ v


@form(Q, K, (B, S, H, D - 1))
def narrower_values(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return ((q @ k.mT).softmax(-1) @ v.transpose(1, 2)).transpose(1, 2).flatten(2)


@form(Q, K, K, (L, D), (D, S + 1))
def bias_that_is_a_product(q: Tensor, k: Tensor, v: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return ((x @ y)[:, 1:] * 2 + q @ k.mT).softmax(-1) @ v


@form(Q, K, K, (L, D), (D, S))
def scores_after_a_product(q: Tensor, k: Tensor, v: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return ((x @ y) + q @ k.mT).softmax(-1) @ v


@form(Q, K, K, (L, S), (1, S))
def scaled_after_masks(q: Tensor, k: Tensor, v: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return ((q @ k.mT + first - second) / 3).softmax(-1) @ v


@form(Q, K, K, (B, 1, S, L))
def mask_in_columns(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return (q @ k.mT + mask.mT).softmax(-1) @ v


@other(Q, K, K)
def weights_returned(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = (q @ k.mT).softmax(-1)
    return weights @ v, weights


@other(Q, K, K)
def scores_returned(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    scores = q @ k.mT
    return scores.softmax(-1) @ v, scores


@other(Q, K, K)
def dropped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return dropout((q @ k.mT).softmax(-1), 1.0, training=True) @ v + q


@other(Q, K, K, (B, 1, 1, S, bool))
def filled_with_little(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return (q @ k.mT).masked_fill(mask, -5.0).softmax(-1) @ v


@other(Q, Q, Q)
def softmax_of_rows(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT).softmax(-2) @ v


@other((B, L, L, D), (B, L, S, D), (B, L, D))
def softmax_of_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.einsum("bhqk,bhd->bqkd", (q @ k.mT).softmax(1), v)


@other(Q, K, K)
def summed_over_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.einsum("bhqk,bhkd->bqd", (q @ k.mT).softmax(-1), v)


@other(Q, K, K)
def bounded(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT).tanh().softmax(-1) @ v


@other(Q, K, K, (L, S, bool))
def fill_scaled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return ((q @ k.mT).masked_fill(mask, -1e9) * 2).softmax(-1) @ v


@other(Q, K, K, (L, S))
def scale_of_scores(q: Tensor, k: Tensor, v: Tensor, factor: Tensor) -> Tensor:
    return ((q @ k.mT) * factor).softmax(-1) @ v


@other(Q, K, K)
def query_written(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    q = q + 0
    weights = (q @ k.mT).softmax(-1)
    q.zero_()
    return weights @ v, q


@other((B * H, L, S), FLAT_Q, (B * H, D, S), FLAT_K)
def bias_written(bias: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    bias = bias + 0
    return bias.baddbmm_(q, k).softmax(-1) @ v, bias


@other(Q, K, K, SC)
def scores_kept(q: Tensor, k: Tensor, v: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    out = out + 0
    return torch.mul(q @ k.mT, 0.3, out=out).softmax(-1) @ v, out


@other(Q, K, K)
def in_float64(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT).double().softmax(-1).to(v.dtype) @ v


@other((0, H, L, D), (0, H, S, D), (0, H, S, D))
def empty(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT).softmax(-1) @ v


@other((B, H, 15, D), (B, H, 17, D), (B, H, 17, D))
def few_scores(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT).softmax(-1) @ v


@other(Q, K, (B, H, S, 257))
def wide_values(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT).softmax(-1) @ v


@other(Q, K, K)
def divided_by(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (0.3 / (q @ k.mT)).softmax(-1) @ v


@torch.no_grad()
def check(net: Net, inputs: list[Tensor], num_fused: int, dynamic: bool = False) -> None:
    """Compare a net with attention fused, op by op, and as written, both with float64."""
    fused = []

    def backend(module: torch.fx.GraphModule, _: Any) -> Any:
        fused.append(fuse_attention(module, LEAST_SCORES))
        return module.forward

    torch._dynamo.reset()
    fast = torch.compile(net, backend=backend, dynamic=dynamic, fullgraph=True)
    doubles = [x.double() if x.is_floating_point() else x for x in inputs]
    as_tuple = torch.utils._pytree.tree_leaves
    results = zip(*(as_tuple(f(*x)) for f, x in ((fast, inputs), (net, inputs))), strict=True)
    assert sum(fused) == num_fused
    torch.set_default_dtype(torch.float64)
    try:
        truth = as_tuple(net(*doubles))
    finally:
        torch.set_default_dtype(torch.float32)
    for (own, written), right in zip(results, truth, strict=True):
        assert own.stride() == written.stride()
        assert torch.equal(own.isnan(), written.isnan())
        if not right.numel():
            continue
        size = right.nan_to_num().abs().max() + 1e-30
        error, usual = (
            ((x.double() - right).nan_to_num() / size).abs().max() for x in (own, written)
        )
        assert error <= 2 * usual + 5e-7


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_one_call(name: str) -> None:
    net, shapes = FORMS[name]
    check(net, [drawn(*shape) for shape in shapes], num_fused=1 + (name == "two_layers"))


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay(name: str) -> None:
    net, shapes = OTHERS[name]
    check(net, [drawn(*shape) for shape in shapes], num_fused=0)


def test_sizes_that_vary_stay() -> None:
    check(no_scale, [drawn(*Q), drawn(*K), drawn(*K)], num_fused=0, dynamic=True)


def test_other_dtypes_stay() -> None:
    inputs = [drawn(*shape).double() for shape in (Q, K, K)]
    check(no_scale, inputs, num_fused=0)


@pytest.mark.parametrize("size", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("number", [-INF, LEAST, -1e9])
def test_rows_without_a_column_are_as_before(number: float, size: float) -> None:
    mask = torch.rand(2, 1, 65, 70) > 0.7
    mask[0, 0, 3] = True
    q, k, v = (torch.randn(2, 3, 65 + 5 * (n > 0), 8) for n in range(3))

    def fill(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return (q @ k.mT).masked_fill(mask, number).softmax(-1) @ v

    def add(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return (q @ k.mT + mask).softmax(-1) @ v

    check(fill, [size * q, k, v, mask], num_fused=1)
    if number < -1e9:  # float64 keeps the scores that -1e9 rounds away
        added = torch.zeros(mask.shape).masked_fill(mask, number)
        check(add, [size * q, k, v, added], num_fused=1)


def test_a_value_that_is_no_number_spreads_as_before() -> None:
    q, k, v, bias = drawn(*Q), drawn(*K), drawn(*K), drawn(H, 1, 1)
    q[0, 0, 2, 0], v[1, 1, 1, 1] = math.nan, math.nan
    check(filled_then_taken_off, [q, k, v, drawn(L, S, bool), bias], num_fused=1)


def test_tensors_with_gaps() -> None:
    inputs = [drawn(*shape[:-1], 2 * shape[-1])[..., ::2] for shape in (Q, K, K, (B, 1, S, L))]
    check(mask_in_columns, inputs, num_fused=1)


@pytest.mark.slow
def test_inside_inductor() -> None:
    inputs = [drawn(1, 200, 2, 16) for _ in range(3)] + [drawn(1, 1, 200, 200)]
    torch._dynamo.reset()
    uncached = config.patch(force_disable_caches=True)
    with uncached, passes_in_inductor(packed_weights=True) as own:
        with torch.no_grad():
            result = torch.compile(by_einsum, dynamic=False)(*inputs)
        assert own.num_fused == 1
        torch.testing.assert_close(result, by_einsum(*inputs))
        torch.compile(by_einsum, dynamic=False)(*(x.requires_grad_() for x in inputs))
        assert own.num_fused == 1
