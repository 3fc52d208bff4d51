"""A decoder as a net of tensors alone: new tokens, masks, and the keys and values of the past.

A step neither joins past and new keys nor copies the past, which may lie in a buffer with room for
more. In eager torch, for comparisons, it calls the decoder as it is; while it is traced, with an
attention that takes both parts. The decoder of an encoder-decoder also attends to its source: keys
and values of the encoder's output, which the first call of the decoder computes.
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

OPTIONS = {"logits_to_keep", "use_cache", "return_dict", "cache", "past_key_values"}
"""The named arguments of calls that can be steps, besides ids, masks, positions and a source."""

_layers: dict[int, Any] = {}
"""The layer of new keys, by their identity, while a step is traced."""


def is_step(args: Sequence[Any], kwargs: Mapping[str, Any], prefix: str = "") -> bool:
    """Return whether a call has arguments of steps alone.

    Its ids are given by position or name; those of an encoder-decoder, whose names for the decoder
    have a prefix, by name.
    """
    name, most = f"{prefix}input_ids", 0 if prefix else 1
    names = {name, f"{prefix}attention_mask", f"{prefix}position_ids"} | OPTIONS
    if prefix:
        names |= {"attention_mask", "encoder_outputs"}
    ids = args[0] if args else kwargs.get(name)
    is_known = len(args) <= most and not kwargs.keys() - names
    return is_known and not (args and name in kwargs) and type(ids) is torch.Tensor


def prefix_of(net: Any) -> str:
    """Return what precedes the names of the decoder's arguments in a call of a net."""
    return "decoder_" if net.config.is_encoder_decoder else ""


def is_decoder(net: Any) -> bool:
    """Return whether a net of transformers generates tokens, and its calls can be steps."""
    if not any(kind.__module__.startswith("transformers.") for kind in type(net).__mro__):
        return False
    if getattr(net, "config", None) is None or not net.can_generate() or _returns_more(net.config):
        return False
    prefix, names = prefix_of(net), inspect.signature(net.forward).parameters
    own = ("attention_mask", "encoder_outputs") if prefix else ("position_ids", "logits_to_keep")
    if not {f"{prefix}input_ids", f"{prefix}attention_mask", *own} <= set(names):
        return False
    try:
        layers = _layer_forms(net)
    except Exception:  # noqa: BLE001 (boundary: a configuration of strangers)
        return False
    if prefix and any(is_sliding for _, is_sliding in layers):
        return False
    return all(kind in _known_layers() for kind, _ in layers)


def _returns_more(config: Any) -> bool:
    """Return whether calls return hidden states, attentions or a tuple, as a step does not."""
    options = ("output_hidden_states", "output_attentions")
    is_tuple = getattr(config, "return_dict", True) is False
    return is_tuple or any(getattr(config, name, False) for name in options)


def cache_name(net: Any) -> str:
    """Return the name of the cache among arguments and outputs, which newer versions changed."""
    return "cache" if "cache" in inspect.signature(net.forward).parameters else "past_key_values"


def slides(net: Any) -> tuple[bool, ...]:
    """Return for each layer whether it attends to a window alone."""
    return tuple(is_sliding for _, is_sliding in _layer_forms(net))


def _layer_forms(net: Any) -> list[tuple[type, bool]]:
    from transformers import DynamicCache

    decoder = net.get_decoder() if prefix_of(net) else net
    layers: list[Any] = DynamicCache(config=decoder.config).layers
    return [(type(layer), getattr(layer, "is_sliding", False)) for layer in layers]


def _known_layers() -> tuple[type, ...]:
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    return DynamicLayer, DynamicSlidingWindowLayer


class DecoderStep(torch.nn.Module):
    """A step of a decoder.

    Its arguments are ids and positions [batch, length], the positions of logits to keep where the
    decoder `keeps` some, for each kind of layers a mask of the past [batch, 1, length, past] and of
    the new tokens [batch, 1, length, length], a mask of the source [batch, 1, 1, source] where the
    decoder `masks_source`, then for each layer its keys and values of the past [batch, heads, past,
    size], and of the source. Where the net itself counts positions, these are places in the past.
    It returns logits, then for each layer the new keys and values.
    """

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net
        self.training = net.training
        self.slides = slides(net)
        self.kinds = tuple(sorted(set(self.slides)))
        self.cache_name, self.prefix = cache_name(net), prefix_of(net)
        self.has_source = bool(self.prefix)
        names = inspect.signature(net.forward).parameters
        self.keeps = "logits_to_keep" in names
        self.counts = f"{self.prefix}position_ids" not in names
        own = inspect.signature(net.get_decoder().forward).parameters if self.has_source else ()
        self.masks_source = "encoder_attention_mask" in own

    @property
    def num_first(self) -> int:
        """The number of arguments before the layers' own."""
        return 2 + self.keeps + 2 * len(self.kinds) + self.masks_source

    def forward(
        self, ids: torch.Tensor, positions: torch.Tensor, *rest: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Run the decoder on new tokens."""
        from transformers.cache_utils import Cache

        start, first, count = int(self.keeps), self.num_first - 2, 2 * len(self.slides)
        is_traced = torch.compiler.is_compiling()
        pasts, own = rest[start : start + 2 * len(self.kinds) : 2], rest[first : first + count]
        length = slots = None
        if self.counts and is_traced:
            length = positions[0, 0]
            slots = torch.cat([torch.arange(own[0].shape[2]), positions[0]])
        elif self.counts:  # it takes all keys for tokens before the new ones
            held = int(positions[0, 0])
            pasts = [mask[..., :held] for mask in pasts]
            own = [tensor[:, :, :held] for tensor in own]
        news = rest[start + 1 : start + 2 * len(self.kinds) : 2]
        joined = [torch.cat(pair, -1) for pair in zip(pasts, news, strict=True)]
        joined += rest[first - 1 : first] if self.masks_source else []
        if not is_traced and self.net.config._attn_implementation == "eager":  # it adds masks
            joined = [_added(mask, self.net.dtype) for mask in joined]
        names = {KINDS[kind]: mask for kind, mask in zip(self.kinds, joined, strict=False)}
        pairs = zip(own[::2], own[1::2], self.slides, strict=True)
        layers = [_layer_type()(*pair, is_traced, length, slots) for pair in pairs]
        cache: Any = Cache(layers=layers)
        call: dict[str, Any] = {"logits_to_keep": rest[0]} if self.keeps else {}
        if not self.counts:
            call[f"{self.prefix}position_ids"] = positions
        if self.has_source:
            source = rest[first + count :]
            cache = _with_source(cache, source)
            call["encoder_outputs"] = _of_shape(source[0])
            if self.masks_source:
                call["attention_mask"] = joined[-1]
        call[f"{self.prefix}attention_mask"] = names if len(names) > 1 else joined[0]
        call |= {f"{self.prefix}input_ids": ids, self.cache_name: cache}
        with _attention(self.net) if is_traced else nullcontext():
            outputs = self.net(use_cache=True, return_dict=True, **call)
        return outputs.logits, *(tensor.contiguous() for layer in layers for tensor in layer.new)


def _with_source(own: Any, source: Sequence[torch.Tensor]) -> Any:
    """Return a cache whose layers also have these keys and values of a source."""
    from transformers.cache_utils import Cache, EncoderDecoderCache

    pairs = zip(source[::2], source[1::2], strict=True)
    cache = EncoderDecoderCache(own, Cache(layers=[_layer_type()(*pair) for pair in pairs]))
    cache.is_updated = dict.fromkeys(range(len(source) // 2), True)
    return cache


def _of_shape(keys: torch.Tensor) -> Any:
    """Return outputs of an encoder that are read for their shape alone, of a source with keys."""
    from transformers.modeling_outputs import BaseModelOutput

    hidden: Any = keys.new_zeros(keys.shape[0], keys.shape[2], 1)
    return BaseModelOutput(last_hidden_state=hidden)


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
            self,
            keys: torch.Tensor,
            values: torch.Tensor,
            is_sliding: bool = False,
            is_traced: bool = False,
            length: torch.Tensor | None = None,
            slots: torch.Tensor | None = None,
        ) -> None:
            super().__init__()
            self.keys, self.values = self.past = keys, values
            self.is_traced, self.length, self.slots = is_traced, length, slots
            self.is_sliding, self.is_initialized = is_sliding, True
            self.new: Any = ()
            self.given: Any = ()

        def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
            """Do nothing: the past is given."""

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
        ) -> tuple[torch.Tensor, torch.Tensor]:
            """Take the new keys and values, and return those to attend to."""
            given: Any = (key_states, value_states)
            self.new = self.given = given
            if not self.is_traced:
                keys, values = self.past
                return torch.cat([keys, key_states], 2), torch.cat([values, value_states], 2)
            if self.slots is not None:  # for a bias, which reads the length of all keys alone
                count = self.slots.shape[0]
                self.given = given = [x[:, :, :1].expand(-1, -1, count, -1) for x in given]
            _layers[id(given[0])] = self
            return given

        def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
            """Return the length of all keys, and where they begin."""
            return self.past[0].shape[2] + query_length, 0

        def get_seq_length(self, *_: Any) -> Any:
            """Return the length of the past."""
            return self.past[0].shape[2] if self.length is None else self.length

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
    position_bias: torch.Tensor | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attend to the past and to new keys without joining them; as transformers calls attentions.

    Heads that share keys are rows of one product. A masked score is the least number, and not minus
    infinity, so that a row with nothing to attend to gives no NaN. A bias is of the key at each
    position, and each place of the past holds the key of its own position.
    """
    if unknown := [name for name, value in others.items() if _matters(name, value)]:
        raise BackendError(f"its attention takes {unknown[0]}, which a step does not know")
    heads, length, size = query.shape[1:]
    shared = heads // key.shape[1]
    layer = _layers.get(id(key))
    parts = [(key, value)] if layer is None else [layer.past, layer.new]
    query = (query * (size**-0.5 if scaling is None else scaling)).contiguous()
    if shared > 1:
        query = query.unflatten(1, (key.shape[1], shared)).flatten(2, 3)
    of_parts = [torch.matmul(query, keys.transpose(2, 3)) for keys, _ in parts]
    scores = torch.cat(of_parts, -1) if layer is not None else of_parts[0]
    if shared > 1:
        scores = scores.unflatten(2, (shared, length)).flatten(1, 2)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if position_bias is not None:
        slots = None if layer is None else layer.slots
        scores = scores + (position_bias if slots is None else position_bias[..., slots])
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
