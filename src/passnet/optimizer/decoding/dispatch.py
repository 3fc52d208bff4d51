"""Calls of a decoder, as `generate` makes them, run as steps on the user's own caches."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from passnet.optimizer.call.dispatch import NO_BACKEND, Dispatch
from passnet.optimizer.call.net_call import BuiltBackend
from passnet.optimizer.decoding.caches import append, past_of, source_of
from passnet.optimizer.decoding.step import KINDS, DecoderStep, cache_name, is_step, masks_of

ENCODED = {"last_hidden_state", "hidden_states", "attentions"}
"""The outputs of an encoder that those of a decoder repeat."""

_ASK = "; ask for more by passnet.optimize(net, ids, dynamic={'batch': ..., 'length': ...})"

_Source: TypeAlias = tuple[list[torch.Tensor], list[torch.Tensor]]
"""The mask of a source, if the decoder takes one, and keys and values of all layers."""


class DecoderDispatch(Dispatch):
    """The backends of a decoder's steps.

    A call that is no step runs the decoder: other arguments, a cache that is off or of another
    kind, a mask that is not causal; of an encoder-decoder also the first call, which computes the
    keys and values of the source. `output_type` is the class of its outputs, and `encoder` the
    optimised encoder, which the net then returns as its own.
    """

    def __init__(
        self,
        net: Any,
        backends: Sequence[BuiltBackend] = (),
        warns: bool = True,
        output_type: Any = None,
        encoder: Any = None,
    ) -> None:
        step = DecoderStep(net)
        super().__init__(step, backends, warns)
        self.net, self._step = net, step
        self._cache_name, self._output_type = cache_name(net), output_type
        self._window = getattr(net.config, "sliding_window", None) or 0
        self.encoder = encoder
        if encoder is not None:
            self.methods = {"get_encoder": _get_encoder}
        stop = step.num_first + 2 * len(step.slides)
        example = backends[0].leaves[step.num_first : stop] if backends else ()
        self._empty = [torch.zeros(1, x.shape[1], 0, x.shape[3], dtype=x.dtype) for x in example]
        self._most = {r.name: r.high for r in backends[0].ranges} if backends else {}

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call as a step; return NO_BACKEND where it is none, or fits no backend."""
        step, source = self._step, None
        if not self._backends or not is_step(args, kwargs, step.prefix):
            return NO_BACKEND
        ids: torch.Tensor = args[0] if args else kwargs[f"{step.prefix}input_ids"]
        keep, flag = kwargs.get("logits_to_keep", 0), kwargs.get("use_cache")
        uses_cache = self.net.config.use_cache if flag is None else flag
        if (
            ids.dim() != 2
            or type(keep) is not int
            or keep < 0
            or not uses_cache
            or kwargs.get("return_dict", True) is False
        ):
            return NO_BACKEND
        cache = own = kwargs.get("cache", kwargs.get("past_key_values"))
        if step.has_source:
            source = self._source_of(cache, kwargs, ids.shape[0])
            if source is None:
                return NO_BACKEND
            own = cache.self_attention_cache
        given, own = own, self._new_cache() if own is None else self._with_layers(own)
        if own is None:
            return self._other_cache(given)
        logits = self._logits_of(ids, keep, own, kwargs, source or ([], []))
        if logits is NO_BACKEND:
            return NO_BACKEND
        return self._outputs_of(logits, own if cache is None else cache, kwargs)

    def _logits_of(
        self, ids: torch.Tensor, keep: int, cache: Any, kwargs: dict[str, Any], source: _Source
    ) -> Any:
        """Run a step and append to the cache; return the logits, or NO_BACKEND."""
        step = self._step
        (batch, length), past = ids.shape, int(cache.get_seq_length())
        if not self._are_served(batch=batch, length=length, past=past):
            return NO_BACKEND
        layers = cache.layers[: len(step.slides)]
        pairs = zip(layers, self._empty[::2], self._empty[1::2], strict=True)
        pasts = []
        for layer, *empty in pairs:
            own = past_of(layer, past, length, tuple(x.expand(batch, -1, -1, -1) for x in empty))
            if own is None:
                return self._other_cache(layer)
            pasts.append(own)
        slots = {}
        for is_sliding, own in zip(step.slides, pasts, strict=True):
            if is_sliding not in slots:
                places = torch.full((own.places,), -1)
                places[: own.held] = torch.arange(past - own.held, past)
                slots[is_sliding] = places
        shown = self._shown(kwargs.get(f"{step.prefix}attention_mask"), batch, past + length)
        if shown is False:
            return self._other("mask", "its attention mask hides more than padding")
        new = torch.arange(past, past + length)
        kinds = step.kinds
        masks = masks_of(kinds, shown, [slots[k] for k in kinds], new, self._window, batch)
        positions = kwargs.get(f"{step.prefix}position_ids")
        is_padded = shown is not None and not bool(shown.all())
        if positions is None and is_padded and not step.prefix:  # some count what the mask shows
            return self._other("positions", "its mask hides padding, and it gives no positions")
        positions = new[None] if positions is None else positions
        start = length - keep if 0 < keep < length else 0
        tensors = (
            ids.contiguous(),
            positions.expand(batch, -1).contiguous(),
            *([torch.arange(start, length)] if step.keeps else []),
            *masks,
            *source[0],
            *(tensor for own in pasts for tensor in own.tensors),
            *source[1],
        )
        outputs = super().__call__(tensors, {})
        if outputs is NO_BACKEND:
            return NO_BACKEND
        logits, *states = outputs
        for layer, *own in zip(layers, states[::2], states[1::2], strict=True):
            append(layer, past, tuple(own))
        return logits

    def _other(self, reason: str, sentence: str, advice: str = "") -> Any:
        """Log once why a call is no step."""
        if self._warns:
            self._warn_of(reason, sentence, advice)
        return NO_BACKEND

    def _other_cache(self, cache: Any) -> Any:
        """Log once that a cache, or a layer of it, is none that steps run on."""
        sentence = f"its cache has other layers ({type(cache).__name__})"
        return self._other("cache", sentence, "; give none, or DynamicCache(config=net.config)")

    def _are_served(self, **sizes: int) -> bool:
        """Return whether a step of these sizes may fit a backend, before its cache is touched."""
        for name, size in sizes.items():
            most = self._most.get(name, size)
            if size > most:
                self._other(name, f"its {name} of {size} is beyond {most}", _ASK)
                return False
        return True

    def _source_of(self, cache: Any, kwargs: dict[str, Any], batch: int) -> _Source | None:
        """Return the mask of a source and its keys and values; None where a cache holds none."""
        from transformers.utils import ModelOutput

        tensors = source_of(cache, len(self._step.slides))
        mask, encoded = kwargs.get("attention_mask"), kwargs.get("encoder_outputs")
        if tensors is None or not isinstance(encoded, ModelOutput) or encoded.keys() - ENCODED:
            return None
        if not self._step.masks_source:
            return [], tensors
        length = tensors[0].shape[2]
        mask = torch.ones(batch, length) if mask is None else mask
        if type(mask) is not torch.Tensor or mask.shape != (batch, length):
            return None
        return [mask.bool()[:, None, None].contiguous()], tensors

    def _new_cache(self) -> Any:
        from transformers import DynamicCache

        return DynamicCache(config=self.net.config)

    def _with_layers(self, cache: Any) -> Any:
        """Return a cache with a layer for each of the decoder's; None where it is none of these."""
        from transformers.cache_utils import Cache, DynamicLayer

        if not isinstance(cache, Cache) or getattr(cache, "offloading", False):
            return None
        count = len(self._step.slides)
        if not cache.layers and getattr(cache, "layer_class_to_replicate", None) is DynamicLayer:
            if any(self._step.slides):
                return None
            cache.layers.extend(DynamicLayer() for _ in range(count))
        layers = cache.layers[:count] if self._step.has_source else cache.layers
        slides = tuple(getattr(layer, "is_sliding", False) for layer in layers)
        return cache if slides == self._step.slides else None

    def _shown(self, mask: Any, batch: int, length: int) -> Any:
        """Return which positions a mask shows, None for all; False of a mask that is no padding."""
        if isinstance(mask, dict):
            mask = mask.get(KINDS[0], False)
        if mask is None:
            return None
        if type(mask) is not torch.Tensor or mask.shape[0] != batch:
            return False
        if mask.dim() == 2:
            return mask if mask.shape[1] == length else False
        if mask.dim() != 4 or mask.dtype is not torch.bool or mask.shape[-1] < length:
            return False
        shown = mask[:, 0, :, :length].any(1)  # as generate makes it for a static cache
        new = torch.arange(length - mask.shape[2], length)
        causal = torch.arange(length)[None] <= new[:, None]
        is_causal = torch.equal(mask[:, 0, :, :length], causal & shown[:, None])
        return shown if is_causal else False

    def _outputs_of(self, logits: torch.Tensor, cache: Any, kwargs: dict[str, Any]) -> Any:
        encoded = kwargs["encoder_outputs"] if self._step.has_source else {}
        others = {f"encoder_{name}": value for name, value in encoded.items()}
        return self._output_type(logits=logits, **{self._cache_name: cache}, **others)

    @property
    def built_backends(self) -> tuple[BuiltBackend, ...]:
        """The backends of steps, then of the encoder."""
        own = super().built_backends
        return own if self.encoder is None else (*own, *self.encoder._passnet.built_backends)

    def in_words(self) -> str:
        """Describe the backends of steps and of the encoder, a line each."""
        return super().in_words() + (self.encoder._passnet.in_words() if self.encoder else "")

    def drop_moved(self) -> None:
        """Drop backends whose weights were moved or converted."""
        super().drop_moved()
        if self.encoder is not None:
            self.encoder._passnet.drop_moved()


def _get_encoder(net: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the optimised encoder in place of a net's own, and other modules as they are."""
    dispatch = net._passnet
    own = dispatch.net.get_encoder(*args, **kwargs)
    return dispatch.encoder if own is dispatch.encoder._passnet.net else own
