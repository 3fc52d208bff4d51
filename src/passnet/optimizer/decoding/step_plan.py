"""Sizes and arguments for which a step of a decoder is compared and timed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from passnet.errors import InputError, boundary
from passnet.optimizer.call.sizes import CallSizes
from passnet.optimizer.compare.fresh_values import ArgumentSet, NumberBounds
from passnet.optimizer.decoding.step import DecoderStep, masks_of
from passnet.optimizer.record import SizeRange

MOST_BATCH, MOST_LENGTH, MOST_PAST = 8, 512, 4096
"""The greatest sizes that are served unless others are asked for."""

MOST_NEW = 32
"""The most tokens of a step of an encoder-decoder, whose prompts are no steps."""

SOURCE = 64
"""The length of a usual source."""

BLOCK = 128
"""Places that a cache grows by, so that few steps copy it."""


@dataclass(frozen=True)
class StepPlan:
    """The sizes of steps: batch, length, past, and as a decoder has them window, source, logits.

    `heads` are for each layer the number of heads of its keys and values, and their sizes, then the
    same of the source; `source` is the usual length of that, and `output_type` the class of the
    decoder's outputs.
    """

    step: DecoderStep
    ranges: tuple[SizeRange, ...]
    heads: tuple[tuple[int, int, int], ...]
    vocabulary: int
    window: int
    num_positions: int
    dtype: torch.dtype
    output_type: type
    source: int = SOURCE

    @property
    def bounds(self) -> NumberBounds:
        """The ids and positions that eager torch takes."""
        num_tensors = self.step.num_first + 2 * len(self.heads)
        positions = 0, self.num_positions - 1
        return (0, self.vocabulary - 1), positions, *[None] * (num_tensors - 2)

    def sizes(
        self, batch: int, length: int, past: int, keep: int = 1, source: int | None = None
    ) -> CallSizes:
        """Return the sizes of a step, within the ranges."""
        sizes = {
            "batch": batch,
            "length": length,
            "past": past,
            "window": min(past, self.window),
            "source": self.source if source is None else source,
            "logits": min(keep, length),
        }
        return tuple(min(max(sizes[r.name], r.low), r.high) for r in self.ranges)

    @property
    def traced(self) -> CallSizes:
        """The sizes of the example."""
        return tuple(size_range.example for size_range in self.ranges)

    @property
    def measured(self) -> list[CallSizes]:
        """The sizes for which times are taken, the ones that tell most first.

        They are a step of one token, prompts, then steps of longer pasts and of several rows.
        """
        batch, length, past = (r.high for r in self.ranges[:3])
        measured = [self.sizes(1, 1, min(BLOCK, past))]
        if not self.step.has_source:
            measured += [self.sizes(1, n, 0) for n in (16, 128, 512) if n <= length]
        measured += [self.sizes(1, 1, n) for n in (4 * BLOCK, 16 * BLOCK) if n <= past]
        measured += [self.sizes(n, 1, BLOCK) for n in (4, batch) if n <= batch]
        if self.step.has_source:
            measured.append(self.sizes(1, 1, BLOCK, source=8 * self.source))
        else:
            measured.append(self.sizes(min(4, batch), min(64, length), 0))
        return list(dict.fromkeys(measured))

    @property
    def compared(self) -> list[CallSizes]:
        """The sizes for comparisons besides the example's, the cheapest first."""
        batch, length, past = (r.high for r in self.ranges[:3])
        compared = (
            *((1, 1, 0), (1, 1, 1, 1, 1), (1, 1, BLOCK), (batch, 1, 7), (1, 7, 0), (3, 5, 9, 5)),
            *((batch, 5, BLOCK, 3, 3), (1, 1, past, 1, 8 * self.source), (1, length, 0, length)),
        )
        return list(dict.fromkeys(self.sizes(*each) for each in compared))

    def example(self, sizes: CallSizes, seed: int = 0, empty: int = 0) -> list[torch.Tensor]:
        """Return arguments of these sizes, whose past ends in so many empty places."""
        of = {r.name: size for r, size in zip(self.ranges, sizes, strict=True)}
        batch, length, capacity = sizes[:3]
        window, source, keep = (of.get(name, 0) for name in ("window", "source", "logits"))
        past = max(min(capacity - empty, self.num_positions - length), 0)
        random = torch.Generator().manual_seed(seed)
        ids = torch.randint(self.vocabulary, (batch, length), generator=random)
        new = torch.arange(past, past + length)
        slots = torch.full((capacity,), -1)
        slots[:past] = torch.arange(past)
        held = min(window, past)
        own = torch.full((window,), -1)
        own[:held] = torch.arange(past - held, past)
        kinds = self.step.kinds
        masks = masks_of(
            kinds, None, [own if kind else slots for kind in kinds], new, self.window, batch
        )
        tensors = [ids, new[None].repeat(batch, 1)]
        tensors += [torch.arange(length - keep, length)] if self.step.keeps else []
        tensors += masks
        if self.step.masks_source:
            tensors.append(torch.ones(batch, 1, 1, source, dtype=torch.bool))
        lengths = [window if is_sliding else capacity for is_sliding in self.step.slides]
        lengths += [source] * (len(self.heads) - len(lengths))
        for capacity, (heads, of_keys, of_values) in zip(lengths, self.heads, strict=True):
            for size in (of_keys, of_values):
                shape = batch, heads, capacity, size
                tensors.append(torch.randn(shape, generator=random).to(self.dtype))
        return tensors

    def draws(self, sizes: CallSizes, seed: int) -> Iterator[ArgumentSet]:
        """Yield other arguments of these sizes: other tokens, ends of the vocabulary, padding."""
        yield ArgumentSet("usual", "", self.example(sizes, seed + 1))
        yield ArgumentSet("usual", "with room in its cache", self.example(sizes, seed + 2, 3))
        ends = self.example(sizes, seed + 3)
        ends[0].fill_(self.vocabulary - 1)
        ends[0][0, 0] = 0
        yield ArgumentSet("usual", "with the ends of its vocabulary", ends)
        padded = self.example(sizes, seed + 4)
        for number in range(2 + self.step.keeps, self.step.num_first, 2):
            past = padded[number]
            past[-1, ..., : past.shape[-1] // 2] = False  # each token attends to itself still
        yield ArgumentSet("usual", "with padding", padded)
        if self.step.counts:
            return
        far = self.example(sizes, seed + 5)
        far[1] = (far[1] + self.num_positions // 2).clamp(max=self.num_positions - 1)
        yield ArgumentSet("usual", "at far positions", far)


def step_plan(net: Any, dynamic: Mapping[Any, Any] | None = None, source: int = SOURCE) -> StepPlan:
    """Return the plan of a decoder's steps, for sizes that a user may ask for.

    Of an encoder-decoder these are of the encoder's input; `source` is the usual length of its
    output.

    Raises:
        InputError: other sizes than batch and length are asked for, or the decoder fails.
    """
    dynamic = dynamic or {}
    if unknown := [name for name in dynamic if name not in ("batch", "length")]:
        raise InputError(f"dynamic: {unknown[0]!r} of a decoder; it has batch and length")
    step = DecoderStep(net)
    most = most_positions(net) or MOST_PAST
    length = 1, min(MOST_NEW if step.has_source else MOST_LENGTH, most)
    ends = {"batch": (1, MOST_BATCH), "length": length, "source": (1, max(MOST_LENGTH, source))}
    for name, value in dynamic.items():
        ends["source" if step.has_source and name == "length" else name] = value
    layers, output_type = _layers_of(net, step)
    heads = tuple((x.keys.shape[1], x.keys.shape[3], x.values.shape[3]) for x in layers)
    window = getattr(net.config, "sliding_window", None) or 0
    ranges = tuple(r for r in _ranges(step, len(heads), most, window, ends) if r.places)
    vocabulary = net.get_input_embeddings().num_embeddings
    own = window, most, net.dtype, output_type
    return StepPlan(step, ranges, heads, vocabulary, *own, source)


def most_positions(net: Any) -> int | None:
    """Return how many positions a decoder has at most; None of one without a bound."""
    names = ("max_position_embeddings", "max_target_positions")
    return next((n for name in names if (n := getattr(net.config, name, None))), None)


def _layers_of(net: Any, step: DecoderStep) -> tuple[list[Any], type]:
    """Return the layers of a cache that a call fills, then of a source, and the outputs' type."""
    from transformers.modeling_outputs import BaseModelOutput

    call: dict[str, Any] = {f"{step.prefix}input_ids": torch.zeros(1, 2, dtype=torch.long)}
    if step.has_source:
        size = net.get_encoder().config.hidden_size
        hidden: Any = torch.zeros(1, 2, size, dtype=net.dtype)
        call["encoder_outputs"] = BaseModelOutput(last_hidden_state=hidden)
    with torch.no_grad(), boundary(InputError, "a call of the decoder"):
        outputs = net(**call, use_cache=True)
    cache = outputs[step.cache_name]
    if not step.has_source:
        return cache.layers, type(outputs)
    count = len(step.slides)
    both = cache.self_attention_cache, cache.cross_attention_cache
    return [layer for each in both for layer in each.layers[:count]], type(outputs)


def _ranges(
    step: DecoderStep, num_layers: int, most: int, window: int, ends: Mapping[str, tuple[int, int]]
) -> list[SizeRange]:
    """Return the ranges of sizes, with the axes that have these."""
    first, stop = 2 + step.keeps, step.num_first + 2 * num_layers
    masks = [(first + 2 * n, is_sliding) for n, is_sliding in enumerate(step.kinds)]
    own = [
        (step.num_first + 2 * n + part, is_sliding)
        for n, is_sliding in enumerate(step.slides)
        for part in (0, 1)
    ]

    def past_of(is_sliding: bool) -> tuple[tuple[int, int], ...]:
        axes = [(number, 3) for number, kind in masks if kind == is_sliding]
        return (*axes, *((number, 2) for number, kind in own if kind == is_sliding))

    rows = [(number, 0) for number in (0, 1, *range(first, stop))]
    length = [(0, 1), (1, 1)]
    for number, _ in masks:
        length += [(number, 2), (number + 1, 2), (number + 1, 3)]
    source = [(step.num_first - 1, 3)] if step.masks_source else []
    source += [(number, 2) for number in range(step.num_first + len(own), stop)]
    return [
        SizeRange("batch", *ends["batch"], 2, tuple(rows)),
        SizeRange("length", *ends["length"], 5, tuple(length)),
        SizeRange("past", 0, min(most, MOST_PAST) + BLOCK, 9, past_of(False)),
        SizeRange("window", 0, window + BLOCK, 7, past_of(True)),
        SizeRange("source", *ends["source"], 11, tuple(source)),
        SizeRange("logits", 1, ends["length"][1], 3, ((2, 0),) if step.keeps else ()),
    ]
