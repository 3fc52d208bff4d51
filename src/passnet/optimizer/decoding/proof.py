"""Proof that a decoder's steps return what its calls return, with the same outputs around them.

A net may override `forward`, have hooks, or ask in its configuration for outputs that a step lacks.
"""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from passnet.errors import InputError
from passnet.optimizer.call.dispatch import NO_BACKEND
from passnet.optimizer.call.net_call import BuiltBackend
from passnet.optimizer.call.values import difference, flattened
from passnet.optimizer.decoding.dispatch import DecoderDispatch
from passnet.optimizer.decoding.step_plan import StepPlan

_TOLERANCE, _LOWER_TOLERANCE = 1e-3, 5e-2
"""What floats may differ by, relative to the largest, in 32 bits and in fewer: attention that joins
past and new keys adds in another order.
"""


def fault_of_steps(plan: StepPlan, encoded: Any = None) -> str | None:
    """Return how steps in eager torch differ from calls of a decoder; None if they do not.

    Calls are made as a user makes them and as `generate` does, without a cache and then with one.
    `encoded` are the outputs of an encoder-decoder's encoder.
    """
    net, did_run = plan.step.net, False
    try:
        with torch.no_grad():
            dispatch = DecoderDispatch(net, [eager_steps(plan)], False, plan.output_type)
            for calls in _sequences(plan, encoded):
                caches: dict[str, Any] = {}
                for call in calls:
                    found = dispatch((), call | copy.deepcopy(caches))
                    right = net(**call, **caches)
                    if found is not NO_BACKEND:
                        did_run = True
                        if fault := _fault_of(found, right):
                            return fault
                    caches = {plan.step.cache_name: right[plan.step.cache_name]}
    except Exception as cause:  # noqa: BLE001 (boundary: a net may raise anything)
        return f"{type(cause).__name__}: {cause}".partition("\n")[0]
    return None if did_run else "none of its calls is a step"


def eager_steps(plan: StepPlan) -> BuiltBackend:
    """Return the step in eager torch as a backend."""
    tensors = plan.example(plan.traced)
    leaves, spec = tree_flatten((tuple(tensors), {}))
    structure = flattened(plan.step(*tensors))[1]

    def run(inputs: list[torch.Tensor]) -> Any:
        return plan.step(*inputs)

    return BuiltBackend("eager", spec, tuple(leaves), run, structure, {}, ranges=plan.ranges)


def _sequences(plan: StepPlan, encoded: Any) -> Iterator[list[dict[str, Any]]]:
    """Yield calls that follow each other: with ids alone, with a mask, and as `generate` does."""
    step, random = plan.step, torch.Generator().manual_seed(0)
    batch, first = plan.sizes(1, 3, 0)[:2]
    then = plan.sizes(1, 1, 0)[1]
    own = {} if encoded is None else {"encoder_outputs": encoded}
    if encoded is not None:
        batch = encoded.last_hidden_state.shape[0]
    for num_named in range(3):
        calls, past = [], 0
        for length in (first, then):
            ids = torch.randint(plan.vocabulary, (batch, length), generator=random)
            call = {f"{step.prefix}input_ids": ids} | own
            past += length
            if num_named:
                call[f"{step.prefix}attention_mask"] = torch.ones(batch, past, dtype=torch.long)
                if step.masks_source:
                    shape = encoded.last_hidden_state.shape[:2]
                    call["attention_mask"] = torch.ones(shape, dtype=torch.long)
            if num_named == 2:
                call |= {"use_cache": True, "return_dict": True}
                if not step.counts:
                    positions = torch.arange(past - length, past)[None].expand(batch, -1)
                    call[f"{step.prefix}position_ids"] = positions
                if step.keeps:
                    call["logits_to_keep"] = 1
            calls.append(call)
        yield calls


def _fault_of(found: Any, right: Any) -> str | None:
    """Return how a step's outputs differ from a call's."""
    if type(found) is not type(right):
        return f"it returns {type(right).__name__}, and a step {type(found).__name__}"
    if list(found) != list(right) or vars(found).keys() != vars(right).keys():
        names = {*found, *vars(found)} ^ {*right, *vars(right)}
        return f"its outputs are {', '.join(right)}, and those of a step lack {', '.join(names)}"
    for name in right:
        of_both = [_parts_of(outputs[name]) for outputs in (found, right)]
        try:
            (tensors, structure), (expected, former) = map(flattened, of_both)
        except InputError as cause:
            return str(cause)
        are_alike = difference(former, structure) is None and len(tensors) == len(expected)
        if not are_alike or not all(map(_are_close, tensors, expected)):
            return f"a step returns other {name}"
    return None


def _parts_of(value: Any) -> Any:
    """Return a cache as its class, and the class and tensors of each layer; others unchanged."""
    from transformers.cache_utils import Cache, EncoderDecoderCache

    if isinstance(value, EncoderDecoderCache):
        return _parts_of(value.self_attention_cache), _parts_of(value.cross_attention_cache)
    if isinstance(value, Cache):
        layers: list[Any] = value.layers
        return type(value), [(type(own), own.keys, own.values) for own in layers]
    return value


def _are_close(found: torch.Tensor, right: torch.Tensor) -> bool:
    if found.dtype != right.dtype or found.shape != right.shape:
        return False
    if not right.is_floating_point() or not right.numel():
        return torch.equal(found, right)
    tolerance = _TOLERANCE if right.element_size() > 2 else _LOWER_TOLERANCE
    largest = float(right.abs().nan_to_num(0.0, 0.0, 0.0).max())
    return torch.allclose(found, right, rtol=0.0, atol=tolerance * largest, equal_nan=True)
