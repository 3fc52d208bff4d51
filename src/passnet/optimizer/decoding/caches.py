"""The caches of a user's decoder, read and updated in place.

Keys and values of a growing layer lie in a buffer with room for more, of which the layer's own
tensors are the beginning; whatever else changes them (a beam search, a crop, a step of eager torch)
makes other tensors of them, which the next step copies into a buffer.
"""

from dataclasses import dataclass
from typing import Any

import torch

from passnet.optimizer.decoding.step_plan import BLOCK

NAMES = ("keys", "values")


@dataclass(frozen=True, slots=True)
class Past:
    """The past of a layer: keys, values, and how many positions end where the new tokens begin."""

    tensors: tuple[torch.Tensor, ...]
    held: int

    @property
    def places(self) -> int:
        """The places of the tensors, with empty ones."""
        return self.tensors[0].shape[2]


def past_of(layer: Any, length: int, new: int, empty: tuple[torch.Tensor, ...]) -> Past | None:
    """Return the past of a layer before new tokens; None of layers of other kinds.

    Args:
        layer: of a cache of transformers.
        length: of the past.
        new: the number of new tokens, for which a buffer gets room.
        empty: keys and values of no position.
    """
    from transformers import cache_utils as of

    kind = type(layer)
    known = (
        of.DynamicLayer,
        of.StaticLayer,
        of.DynamicSlidingWindowLayer,
        of.StaticSlidingWindowLayer,
    )
    if kind not in known:
        return None
    if not layer.is_initialized or not length:
        return Past(empty, 0)
    if kind is of.DynamicLayer:
        return Past(tuple(_buffer(layer, name, length + new) for name in NAMES), length)
    own = tuple(getattr(layer, name) for name in NAMES)
    if kind is of.StaticLayer:
        return Past(own, length)
    own = tuple(tensor.contiguous() for tensor in own)
    return Past(own, min(length, own[0].shape[2]))


def source_of(cache: Any, count: int) -> list[torch.Tensor] | None:
    """Return the keys and values of a source in so many layers; None where a cache has none.

    The first call of a decoder puts them there, as `is_updated` says.
    """
    from transformers.cache_utils import DynamicLayer, EncoderDecoderCache, StaticLayer

    if not isinstance(cache, EncoderDecoderCache):
        return None
    cross = cache.cross_attention_cache
    layers, is_known = cross.layers[:count], all(cache.is_updated.get(n) for n in range(count))
    if not is_known or len(layers) < count or cross.offloading:
        return None
    if any(type(layer) not in (DynamicLayer, StaticLayer) for layer in layers):
        return None
    for layer in layers:
        for name in NAMES:
            setattr(layer, name, getattr(layer, name).contiguous())
    return [getattr(layer, name) for layer in layers for name in NAMES]


def append(layer: Any, length: int, states: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Append new keys and values to a layer, as its own `update` does, after `past_of` of it."""
    from transformers.cache_utils import DynamicLayer, StaticLayer

    kind, stop = type(layer), length + states[0].shape[2]
    if kind not in (DynamicLayer, StaticLayer):
        layer.update(*states)
        return
    if not layer.is_initialized:
        layer.lazy_initialization(*states)
    for name, state in zip(NAMES, states, strict=True):
        if kind is StaticLayer:
            getattr(layer, name)[:, :, length:stop].copy_(state)
            continue
        if not length:
            setattr(layer, name, state[:, :, :0])
            _buffer(layer, name, stop)
        held = vars(layer)[f"_passnet_{name}"]
        held[0][:, :, length:stop].copy_(state)
        held[1] = stop
        setattr(layer, name, held[0][:, :, :stop])
    if kind is StaticLayer:
        layer.cumulative_length.add_(states[0].shape[2])


def _buffer(layer: Any, name: str, room: int) -> torch.Tensor:
    """Return the buffer that a layer's tensor begins, with room for so many positions.

    A part that others hold is not written: where more of the buffer was written than the layer
    shows, as after a crop, or by a copy of the layer that went on, a new buffer is made.
    """
    own = getattr(layer, name)
    length = own.shape[2]
    buffer, written = vars(layer).get(f"_passnet_{name}", (None, 0))
    if (
        buffer is not None
        and written == length
        and buffer.shape[2] >= room
        and own.data_ptr() == buffer.data_ptr()
        and own.stride() == buffer.stride()
        and own.shape[:2] == buffer.shape[:2]
        and (torch.is_inference_mode_enabled() or not buffer.is_inference())
    ):
        return buffer
    size = -(-max(room, length + length // 8) // BLOCK) * BLOCK
    buffer = own.new_zeros(*own.shape[:2], size, own.shape[3])  # no NaN in its room
    buffer[:, :, :length].copy_(own)
    setattr(layer, name, buffer[:, :, :length])
    # a list, which copies of the layer share: each sees what another one wrote
    setattr(layer, f"_passnet_{name}", [buffer, length])
    return buffer
