"""A decoder as a net of tensors alone: new tokens, masks, and the keys and values of the past.

A step neither joins past and new keys nor copies the past, which may lie in a buffer with room for
more. In eager torch, for comparisons, it calls the decoder as it is; while it is traced, with an
attention that takes both parts.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import torch

from passnet.errors import BackendError

ATTENTION = "passnet_parts"
"""The name of our attention among those of transformers."""

KINDS = ("full_attention", "sliding_attention")
"""The names of masks by whether layers attend to a window alone."""

KNOWN = {
    *("input_ids", "attention_mask", "position_ids", "logits_to_keep", "use_cache", "return_dict"),
    *("cache", "past_key_values"),
}
"""The named arguments of calls that can be steps."""

_layers: dict[int, Any] = {}
"""The layer of new keys, by their identity, while a step is traced."""


def is_step(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a call has arguments of steps alone: ids by position or name, and others."""
    ids = args[0] if args else kwargs.get("input_ids")
    is_known = len(args) <= 1 and not kwargs.keys() - KNOWN
    return is_known and not (args and "input_ids" in kwargs) and type(ids) is torch.Tensor


def is_decoder(net: Any) -> bool:
    """Return whether a net is a causal LLM of transformers whose calls can be steps."""
    if not any(kind.__module__.startswith("transformers.") for kind in type(net).__mro__):
        return False
    config = getattr(net, "config", None)
    if config is None or config.is_encoder_decoder or not net.can_generate():
        return False
    names = inspect.signature(net.forward).parameters
    if not {"input_ids", "position_ids", "attention_mask", "logits_to_keep"} <= set(names):
        return False
    try:
        layers = _layer_forms(net)
    except Exception:  # noqa: BLE001 (boundary: a configuration of strangers)
        return False
    is_known = all(kind in _known_layers() for kind, _ in layers)
    return is_known and not all(is_sliding for _, is_sliding in layers)


def cache_name(net: Any) -> str:
    """Return the name of the cache among arguments and outputs, which newer versions changed."""
    return "cache" if "cache" in inspect.signature(net.forward).parameters else "past_key_values"


def slides(net: Any) -> tuple[bool, ...]:
    """Return for each layer whether it attends to a window alone."""
    return tuple(is_sliding for _, is_sliding in _layer_forms(net))


def _layer_forms(net: Any) -> list[tuple[type, bool]]:
    from transformers import DynamicCache

    layers: list[Any] = DynamicCache(config=net.config).layers
    return [(type(layer), getattr(layer, "is_sliding", False)) for layer in layers]


def _known_layers() -> tuple[type, ...]:
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    return DynamicLayer, DynamicSlidingWindowLayer


class DecoderStep(torch.nn.Module):
    """A step of a decoder.

    Its arguments are ids and positions [batch, length], the positions of logits to keep, for each
    kind of layers a mask of the past [batch, 1, length, past] and of the new tokens [batch, 1,
    length, length], then for each layer its keys and values of the past [batch, heads, past, size].
    It returns logits, then for each layer the new keys and values.
    """

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net
        self.training = net.training
        self.slides = slides(net)
        self.kinds = tuple(sorted(set(self.slides)))
        self.cache_name = cache_name(net)

    def forward(
        self, ids: torch.Tensor, positions: torch.Tensor, keep: torch.Tensor, *rest: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Run the decoder on new tokens."""
        from transformers.cache_utils import Cache

        count = 2 * len(self.kinds)
        is_traced = torch.compiler.is_compiling()
        joined = [torch.cat(rest[n : n + 2], -1) for n in range(0, count, 2)]
        if not is_traced and self.net.config._attn_implementation == "eager":  # it adds masks
            joined = [_added(mask, self.net.dtype) for mask in joined]
        names = {KINDS[kind]: mask for kind, mask in zip(self.kinds, joined, strict=True)}
        mask: Any = joined[0] if len(joined) == 1 else names
        pairs = zip(rest[count::2], rest[count + 1 :: 2], self.slides, strict=True)
        layers = [_layer_type()(*pair, is_traced) for pair in pairs]
        cache = {self.cache_name: Cache(layers=layers)}
        with _attention(self.net) if is_traced else nullcontext():
            outputs = self.net(
                input_ids=ids,
                position_ids=positions,
                attention_mask=mask,
                use_cache=True,
                logits_to_keep=keep,
                return_dict=True,
                **cache,
            )
        return outputs.logits, *(tensor.contiguous() for layer in layers for tensor in layer.new)


@contextmanager
def _attention(net: Any) -> Iterator[None]:
    """Let a decoder use our attention, with boolean masks."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(ATTENTION, attention_of_parts)
    ALL_MASK_ATTENTION_FUNCTIONS.register(ATTENTION, sdpa_mask)
    former = net.config._attn_implementation
    net.set_attn_implementation(ATTENTION)
    try:
        yield
    finally:
        _layers.clear()
        net.set_attn_implementation(former)


@cache
def _layer_type() -> type:
    """Return the class of a layer of a cache; it is made once transformers is imported."""
    from transformers.cache_utils import CacheLayerMixin

    class StepLayer(CacheLayerMixin):
        """A layer of a cache that gives a traced decoder its new keys and values alone."""

        is_compileable = False

        def __init__(
            self, keys: torch.Tensor, values: torch.Tensor, is_sliding: bool, is_traced: bool
        ) -> None:
            super().__init__()
            self.past, self.is_traced = (keys, values), is_traced
            self.is_sliding, self.is_initialized = is_sliding, True
            self.new: Any = ()

        def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
            """Do nothing: the past is given."""

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
        ) -> tuple[torch.Tensor, torch.Tensor]:
            """Take the new keys and values, and return those to attend to."""
            self.new = key_states, value_states
            if self.is_traced:
                _layers[id(key_states)] = self
                return self.new
            keys, values = self.past
            return torch.cat([keys, key_states], 2), torch.cat([values, value_states], 2)

        def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
            """Return the length of all keys, and where they begin."""
            return self.past[0].shape[2] + query_length, 0

        def get_seq_length(self, *_: Any) -> int:
            """Return the length of the past."""
            return self.past[0].shape[2]

        def get_max_length(self) -> int:
            """Return that there is no most length."""
            return -1

        get_max_cache_shape = get_max_length

    return StepLayer


def attention_of_parts(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    softcap: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attend to the past and to new keys without joining them; as transformers calls attentions.

    Heads that share keys are rows of one product. A masked score is the least number, and not minus
    infinity, so that a row with nothing to attend to gives no NaN.
    """
    if unknown := [name for name, value in others.items() if _matters(name, value)]:
        raise BackendError(f"its attention takes {unknown[0]}, which a step does not know")
    heads, length, size = query.shape[1:]
    shared = heads // key.shape[1]
    layer = _layers.get(id(key))
    parts = [*([layer.past] if layer is not None else []), (key, value)]
    query = (query * (size**-0.5 if scaling is None else scaling)).contiguous()
    if shared > 1:
        query = query.unflatten(1, (key.shape[1], shared)).flatten(2, 3)
    scores = torch.cat([torch.matmul(query, keys.transpose(2, 3)) for keys, _ in parts], -1)
    if shared > 1:
        scores = scores.unflatten(2, (shared, length)).flatten(1, 2)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if attention_mask is not None:
        scores = torch.where(attention_mask, scores, torch.finfo(scores.dtype).min)
    shares = torch.softmax(scores, -1)
    if shared > 1:
        shares = shares.unflatten(1, (key.shape[1], shared)).flatten(2, 3)
    outputs, start = [], 0
    for keys, values in parts:
        stop = start + keys.shape[2]
        outputs.append(torch.matmul(shares[..., start:stop], values))
        start = stop
    output = sum(outputs[1:], outputs[0])
    if shared > 1:
        output = output.unflatten(2, (shared, length)).flatten(1, 2)
    return output.transpose(1, 2).contiguous(), None


def _matters(name: str, value: Any) -> bool:
    """Return whether an argument of an attention changes what it computes, as sinks do."""
    return isinstance(value, torch.Tensor) and name not in ("position_ids", "cache_position")


def _added(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a mask that is added to scores."""
    return torch.where(mask, 0.0, torch.finfo(dtype).min).to(dtype)


def masks_of(
    kinds: Sequence[bool],
    shown: torch.Tensor | None,
    slots: Sequence[torch.Tensor],
    new: torch.Tensor,
    window: int,
    batch: int,
) -> list[torch.Tensor]:
    """Return the masks of a step, for each kind of layers of the past and of the new tokens.

    Args:
        kinds: of layers: whether they attend to a window alone.
        shown: by position, which tokens of each row are no padding; None for all.
        slots: of each kind, the position that each place of the past holds; -1 for none.
        new: the positions of the new tokens.
        window: how far back layers with a window attend.
        batch: the number of rows.
    """
    masks = []
    for is_sliding, own in zip(kinds, slots, strict=True):
        for keys in (own, new):
            mask = (keys[None] <= new[:, None]) & (keys >= 0)
            if is_sliding:
                mask &= keys[None] > new[:, None] - window
            mask = mask.expand(batch, 1, *mask.shape)
            if shown is not None:
                mask = mask & shown.bool()[:, keys.clamp(min=0)][:, None, None]
            masks.append(mask.contiguous())
    return masks
