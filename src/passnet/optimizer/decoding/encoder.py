"""The encoder of an encoder-decoder, which `generate` calls once, before the steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from passnet.errors import InputError
from passnet.optimizer.call.dispatch import NO_BACKEND, Dispatch
from passnet.optimizer.call.sizes import named_ranges
from passnet.optimizer.decoding.step_plan import MOST_BATCH, MOST_LENGTH, most_positions
from passnet.optimizer.record import SizeRange

MASK = "attention_mask"


class EncoderDispatch(Dispatch):
    """The backends of an encoder; a call without padding gets a mask that shows all tokens."""

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call by a backend; return NO_BACKEND where it asks for more, or fits none."""
        asked = {
            name: value for name, value in kwargs.items() if value not in _DEFAULTS.get(name, ())
        }
        call = source_call(self.net, args, asked)
        return NO_BACKEND if call is None else super().__call__((), call)


_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "return_dict": (True, None),
    "output_attentions": (False, None),
    "output_hidden_states": (False, None),
}
"""Arguments of an encoder as `generate` gives them, which change nothing."""


def source_call(
    encoder: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, torch.Tensor] | None:
    """Return a call of an encoder by names, or None of a call with other arguments.

    It takes ids or features, by position or name, and a mask. Ids without a mask get one.
    """
    name = encoder.main_input_name
    call = dict(kwargs) | dict(zip((name,), args, strict=False))
    is_once = len(args) + (name in kwargs) == 1
    if call.get(MASK) is None:
        call.pop(MASK, None)
    is_known = is_once and call.keys() <= {name, MASK}
    if not is_known or not all(type(value) is torch.Tensor for value in call.values()):
        return None
    if MASK not in call and is_ids(call[name]):
        call[MASK] = torch.ones_like(call[name])
    return {key: call[key] for key in sorted(call)}


def is_ids(value: torch.Tensor) -> bool:
    """Return whether an encoder's input are ids [batch, length], and no features."""
    return value.dim() == 2 and value.dtype == torch.long


def source_ranges(
    net: Any, call: Mapping[str, torch.Tensor], asked: Mapping[Any, Any]
) -> tuple[SizeRange, ...]:
    """Return the ranges of sizes of an encoder's call: batch, and length of ids.

    Raises:
        InputError: another size is asked for, or one outside of the example.
    """
    encoder = net.get_encoder()
    source = call[encoder.main_input_name]
    ends = {"batch": (1, max(MOST_BATCH, source.shape[0]))}
    if is_ids(source):
        most = min(MOST_LENGTH, most_positions(net) or MOST_LENGTH)
        ends["length"] = 1, max(most, source.shape[1])
    if other := [name for name in asked if name not in ends]:
        raise InputError(f"dynamic: {other[0]!r} of an encoder; it has {' and '.join(ends)}")
    return named_ranges(ends | dict(asked), (), call, encoder)
