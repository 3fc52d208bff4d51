"""A step's attention as one op, against the ops that it stands for."""

from typing import Any

import pytest
import torch

from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.decoding.fused_attention import fuse_attention_of_parts
from passnet.optimizer.decoding.step_plan import step_plan
from passnet.passes.apply.packed_op import load_op
from tests.optimizer import test_decoding as nets


def written_out(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None
) -> torch.Tensor:
    scores = query @ keys.transpose(2, 3)
    if mask is not None:
        mask = mask.repeat(1, 1, scores.shape[2] // mask.shape[2], 1)
        scores = torch.where(mask, scores, torch.finfo(torch.float32).min)
    return scores.softmax(-1) @ values


@pytest.mark.parametrize("past", [0, 1, 37])
@pytest.mark.parametrize(("shared", "new"), [(1, 1), (3, 1), (2, 5), (1, 40), (2, 33)])
@pytest.mark.parametrize(("size", "width"), [(64, 64), (24, 24), (100, 36)])
def test_the_op_is_attention(past: int, shared: int, new: int, size: int, width: int) -> None:
    if size != width and shared * new > 16:
        pytest.skip("torch's flash kernel knows one width alone")
    load_op()
    torch.manual_seed(0)
    query = torch.randn(2, 3, shared * new, size) / 8
    parts = [
        torch.randn(2, count + 4, 3, wide).transpose(1, 2)[:, :, 2 : count + 2]
        for count in (past, new)
        for wide in (size, width)
    ]
    keys, values = (torch.cat(parts[n::2], 2) for n in (0, 1))
    mask = torch.rand(2, 1, new, past + new) > 0.3
    mask[0, 0, 0] = False  # a row with nothing to attend to
    for own in (mask, mask[:1], None):
        right = written_out(query, keys, values, own)
        y = torch.ops.passnet_packed.attend(query, *parts, own)
        tolerance = 1e-5 if shared * new <= 16 else 0.02
        torch.testing.assert_close(y, right, rtol=tolerance, atol=tolerance)


def test_nan_and_infinity_stay() -> None:
    load_op()
    query, keys, values = (torch.randn(1, 1, rows, 16) for rows in (2, 5, 5))
    empty = keys[:, :, :0]
    for value in (torch.nan, torch.inf):
        query[0, 0, 1, 3] = value
        y = torch.ops.passnet_packed.attend(query, empty, empty, keys, values, None)
        right = written_out(query, keys, values, None)
        assert torch.equal(y.isnan(), right.isnan())
        torch.testing.assert_close(y[:, :, 0], right[:, :, 0])


OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("qwen", "gpt2", "mistral")]


@pytest.mark.parametrize("family", ["llama", "gemma", *OTHERS])
def test_attentions_of_a_step_are_fused(family: str) -> None:
    net: Any = nets.FAMILIES[family]()
    plan = step_plan(net)
    call = NetCall(plan.step, tuple(plan.example(plan.traced)), {}, None, plan.ranges, plan)
    load_op()
    program = call.exported_flat
    tensors = call.tensors()
    with torch.no_grad():
        right = program.module(check_guards=False)(*tensors)
    assert fuse_attention_of_parts(program.graph_module.graph) == net.config.num_hidden_layers
    program.graph_module.recompile()
    assert "softmax" not in program.graph_module.code
    with torch.no_grad():
        for value, expected in zip(
            program.module(check_guards=False)(*tensors), right, strict=True
        ):
            torch.testing.assert_close(value, expected, rtol=1e-3, atol=1e-4)
