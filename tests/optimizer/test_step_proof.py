"""Decoders whose calls are no steps with outputs around them, found before any is built."""

import inspect
import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch

from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.optimizer.call.dispatch import NO_BACKEND
from passnet.optimizer.decoding.dispatch import DecoderDispatch
from passnet.optimizer.decoding.proof import eager_steps, fault_of_steps
from passnet.optimizer.decoding.step import cache_name, is_decoder
from passnet.optimizer.decoding.step_plan import step_plan
from passnet.optimizer.optimize import optimize_net
from passnet.optimizer.settings import OptimizeSettings
from tests.optimizer.tiny_decoders import IDS, TINY

transformers = pytest.importorskip("transformers")
import_with_torchvision("transformers")

Change = Callable[[Any, dict[str, Any]], None]
"""Change outputs, given the arguments of a call by name."""


def llama(**others: Any) -> Any:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**TINY, **others)).eval()


def t5() -> Any:
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=97, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
        decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config).eval()


def overridden(net: Any, change: Change) -> None:
    """Give the net a subclass whose `forward` changes outputs."""
    former = type(net).forward

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = former(self, *args, **kwargs)
        change(outputs, kwargs)
        return outputs

    vars(forward)["__signature__"] = inspect.signature(former)
    net.__class__ = type("Own", (type(net),), {"forward": forward})


def patched(net: Any, change: Change) -> None:
    """Give the net a `forward` of its own that changes outputs."""
    overridden(net, change)
    net.forward = type(net).forward.__get__(net)
    net.__class__ = type(net).__mro__[1]


def hooked(net: Any, change: Change) -> None:
    """Give the net a hook that changes outputs."""

    def hook(module: Any, args: Any, kwargs: Any, outputs: Any) -> Any:
        change(outputs, kwargs)
        return outputs

    net.register_forward_hook(hook, with_kwargs=True)


def value(outputs: Any, kwargs: dict[str, Any]) -> None:
    outputs["value"] = outputs.logits.mean(-1)


def attribute(outputs: Any, kwargs: dict[str, Any]) -> None:
    object.__setattr__(outputs, "value", outputs.logits.mean(-1))


def on_first(outputs: Any, kwargs: dict[str, Any]) -> None:
    if kwargs.get("cache", kwargs.get("past_key_values")) is None:
        outputs.logits = outputs.logits * 10


def on_a_mask(outputs: Any, kwargs: dict[str, Any]) -> None:
    mask = kwargs.get("attention_mask", kwargs.get("decoder_attention_mask"))
    if mask is not None and mask.dim() == 2:
        outputs.logits = outputs.logits + 1


def on_a_flag(outputs: Any, kwargs: dict[str, Any]) -> None:
    if kwargs.get("use_cache"):
        outputs.logits = outputs.logits + 1


def always(outputs: Any, kwargs: dict[str, Any]) -> None:
    outputs.logits = outputs.logits + 1


CHANGES: dict[str, Change] = {
    "those of a step lack value": value,
    "a step returns other logits": on_first,
    "returns other logits": on_a_mask,
    "other logits": on_a_flag,
}
WAYS = (overridden, patched, hooked)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("says", CHANGES)
def test_calls_that_return_more_than_steps_are_found(
    says: str, way: Callable[[Any, Change], None]
) -> None:
    net = llama()
    way(net, CHANGES[says])
    assert is_decoder(net)
    assert says in str(fault_of_steps(step_plan(net)))


def test_an_attribute_of_outputs_is_found() -> None:
    net = llama()
    hooked(net, attribute)
    assert "lack value" in str(fault_of_steps(step_plan(net)))


@pytest.mark.parametrize("way", WAYS)
def test_code_of_a_users_own_is_served_where_steps_return_the_same(
    way: Callable[[Any, Change], None],
) -> None:
    net = llama()
    way(net, always)
    assert fault_of_steps(step_plan(net)) is None


def test_steps_of_encoder_decoders_are_compared_too() -> None:
    net = t5()
    encoded = net.get_encoder()(IDS)
    assert fault_of_steps(step_plan(net), encoded) is None
    hooked(net, on_a_mask)
    assert "other logits" in str(fault_of_steps(step_plan(net), encoded))


def test_a_hook_that_is_added_later_is_seen() -> None:
    net = llama()
    plan = step_plan(net)
    dispatch = DecoderDispatch(net, [eager_steps(plan)], False, plan.output_type)
    assert list(dispatch((IDS,), {})) == ["logits", cache_name(net)]
    handle = net.register_forward_hook(lambda module, args, outputs: outputs)
    assert dispatch((IDS,), {}) is NO_BACKEND
    handle.remove()
    assert dispatch((IDS,), {}) is not NO_BACKEND


def test_a_decoder_whose_calls_return_more_runs_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    net, settings = llama(), OptimizeSettings(backends=("graph",), seconds=0.02)
    hooked(net, value)
    with caplog.at_level(logging.WARNING, "passnet"):
        done = optimize_net(net, [((IDS,), {})], settings)
    assert "its calls are not optimised as decoding steps" in caplog.text
    assert not done.record.decodes
    assert "cannot be made" in str(done.record.forms[0].engines[1].reason)
    right, found = net(IDS), done.net(IDS)
    assert list(found) == list(right) and torch.equal(found["value"], right["value"])
    assert torch.equal(
        done.net.generate(IDS, max_new_tokens=3), net.generate(IDS, max_new_tokens=3)
    )


def test_a_decoder_whose_step_fails_is_optimised_as_it_is_called() -> None:
    config = transformers.MixtralConfig(
        **TINY, num_local_experts=2, num_experts_per_tok=1, output_router_logits=True
    )
    torch.manual_seed(0)
    net = transformers.MixtralForCausalLM(config).eval()
    settings = OptimizeSettings(backends=("graph",), seconds=0.02, budget_s=60)
    done = optimize_net(net, [((IDS,), {})], settings)
    assert not done.record.decodes
    right, found = net(IDS), done.net(IDS)
    assert list(found) == list(right)
    torch.testing.assert_close(found.logits, right.logits)
