"""Calls of a decoder, as `generate` makes them, run as steps on the user's own caches."""

from collections.abc import Sequence
from typing import Any

import torch

from passnet.optimizer.call.dispatch import NO_BACKEND, Dispatch
from passnet.optimizer.call.net_call import BuiltBackend
from passnet.optimizer.decoding.caches import append, past_of
from passnet.optimizer.decoding.step import KINDS, DecoderStep, cache_name, is_step, masks_of


class DecoderDispatch(Dispatch):
    """The backends of a decoder's steps.

    A call that is no step runs the decoder: other arguments, a cache that is off or of another
    kind, a mask that is not causal. `output_type` is the class of its outputs.
    """

    def __init__(
        self,
        net: Any,
        backends: Sequence[BuiltBackend] = (),
        warns: bool = True,
        output_type: Any = None,
    ) -> None:
        step = DecoderStep(net)
        super().__init__(step, backends, warns)
        self.net, self._step = net, step
        self._cache_name, self._output_type = cache_name(net), output_type
        self._window = getattr(net.config, "sliding_window", None) or 0
        example = backends[0].leaves[3 + 2 * len(step.kinds) :] if backends else ()
        self._empty = [torch.zeros(1, x.shape[1], 0, x.shape[3], dtype=x.dtype) for x in example]

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call as a step; return NO_BACKEND where it is none, or fits no backend."""
        if not is_step(args, kwargs):
            return NO_BACKEND
        ids: torch.Tensor = args[0] if args else kwargs["input_ids"]
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
        cache = kwargs.get("cache", kwargs.get("past_key_values"))
        cache = self._new_cache() if cache is None else self._with_layers(cache)
        if cache is None:
            return NO_BACKEND
        return self._step_of(ids, keep, cache, kwargs)

    def _step_of(self, ids: torch.Tensor, keep: int, cache: Any, kwargs: dict[str, Any]) -> Any:
        (batch, length), past = ids.shape, int(cache.get_seq_length())
        pairs = zip(cache.layers, self._empty[::2], self._empty[1::2], strict=True)
        pasts = []
        for layer, *empty in pairs:
            own = past_of(layer, past, length, tuple(x.expand(batch, -1, -1, -1) for x in empty))
            if own is None:
                return NO_BACKEND
            pasts.append(own)
        slots = {}
        for is_sliding, own in zip(self._step.slides, pasts, strict=True):
            if is_sliding not in slots:
                places = torch.full((own.places,), -1)
                places[: own.held] = torch.arange(past - own.held, past)
                slots[is_sliding] = places
        shown = self._shown(kwargs.get("attention_mask"), batch, past + length)
        if shown is False:
            return NO_BACKEND
        new = torch.arange(past, past + length)
        kinds = self._step.kinds
        masks = masks_of(kinds, shown, [slots[k] for k in kinds], new, self._window, batch)
        positions = kwargs.get("position_ids")
        positions = new[None] if positions is None else positions
        tensors = (
            ids.contiguous(),
            positions.expand(batch, -1).contiguous(),
            torch.arange(length - keep if 0 < keep < length else 0, length),
            *masks,
            *(tensor for own in pasts for tensor in own.tensors),
        )
        outputs = super().__call__(tensors, {})
        if outputs is NO_BACKEND:
            return NO_BACKEND
        logits, *states = outputs
        for layer, *own in zip(cache.layers, states[::2], states[1::2], strict=True):
            append(layer, past, tuple(own))
        return self._outputs_of(logits, cache)

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
        slides = tuple(getattr(layer, "is_sliding", False) for layer in cache.layers)
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

    def _outputs_of(self, logits: torch.Tensor, cache: Any) -> Any:
        return self._output_type(logits=logits, **{self._cache_name: cache})
