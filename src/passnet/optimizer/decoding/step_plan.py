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

BLOCK = 128
"""Places that a cache grows by, so that few steps copy it."""


@dataclass(frozen=True)
class StepPlan:
    """The sizes of steps: batch, length, past, window if there is one, and logits to keep.

    `heads` are for each layer the number of heads of its keys and values, and their sizes;
    `output_type` is the class of the decoder's outputs.
    """

    step: DecoderStep
    ranges: tuple[SizeRange, ...]
    heads: tuple[tuple[int, int, int], ...]
    vocabulary: int
    window: int
    num_positions: int
    dtype: torch.dtype
    output_type: type

    @property
    def bounds(self) -> NumberBounds:
        """The ids and positions that eager torch takes."""
        num_tensors = 3 + 2 * len(self.step.kinds) + 2 * len(self.heads)
        positions = 0, self.num_positions - 1
        return (0, self.vocabulary - 1), positions, *[None] * (num_tensors - 2)

    def sizes(self, batch: int, length: int, past: int, keep: int = 1) -> CallSizes:
        """Return the sizes of a step, within the ranges."""
        window = [min(past, self.window)] if len(self.ranges) == 5 else []
        asked = (batch, length, past, *window, min(keep, length))
        return tuple(
            min(max(size, r.low), r.high) for size, r in zip(asked, self.ranges, strict=True)
        )

    @property
    def traced(self) -> CallSizes:
        """The sizes of the example."""
        return tuple(size_range.example for size_range in self.ranges)

    @property
    def measured(self) -> list[CallSizes]:
        """The sizes for which times are taken: steps of one token, then prompts."""
        batch, length, past = (r.high for r in self.ranges[:3])
        found = [self.sizes(1, 1, n) for n in (BLOCK, 4 * BLOCK, 16 * BLOCK) if n <= past]
        found += [self.sizes(n, 1, BLOCK) for n in (4, batch) if n <= batch]
        found += [self.sizes(1, n, 0) for n in (16, 128, 512) if n <= length]
        found.append(self.sizes(min(4, batch), min(64, length), 0))
        return list(dict.fromkeys(found))

    @property
    def compared(self) -> list[CallSizes]:
        """The sizes for comparisons besides the example's, the cheapest first."""
        batch, length, past = (r.high for r in self.ranges[:3])
        asked = (
            *((1, 1, 0), (1, 1, 1), (1, 1, BLOCK), (batch, 1, 7), (1, 7, 0), (3, 5, 9, 5)),
            *((batch, 5, BLOCK, 3), (1, 1, past), (1, length, 0, length)),
        )
        return list(dict.fromkeys(self.sizes(*each) for each in asked))

    def example(self, sizes: CallSizes, seed: int = 0, empty: int = 0) -> list[torch.Tensor]:
        """Return arguments of these sizes, whose past ends in so many empty places."""
        batch, length, places, *rest = sizes
        window, keep = (rest[0] if len(rest) > 1 else 0), rest[-1]
        past = max(places - empty, 0)
        random = torch.Generator().manual_seed(seed)
        ids = torch.randint(self.vocabulary, (batch, length), generator=random)
        new = torch.arange(past, past + length)
        slots = torch.full((places,), -1)
        slots[:past] = torch.arange(past)
        held = min(window, past)
        own = torch.full((window,), -1)
        own[:held] = torch.arange(past - held, past)
        kinds = self.step.kinds
        masks = masks_of(
            kinds, None, [own if kind else slots for kind in kinds], new, self.window, batch
        )
        positions = new.clamp(max=self.num_positions - 1)[None].repeat(batch, 1)
        tensors = [ids, positions, torch.arange(length - keep, length), *masks]
        for is_sliding, (heads, of_keys, of_values) in zip(
            self.step.slides, self.heads, strict=True
        ):
            for size in (of_keys, of_values):
                shape = batch, heads, window if is_sliding else places, size
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
        for number in range(3, 3 + 2 * len(self.step.kinds), 2):
            past = padded[number]
            past[-1, ..., : past.shape[-1] // 2] = False  # each token attends to itself still
        yield ArgumentSet("usual", "with padding", padded)
        far = self.example(sizes, seed + 5)
        far[1] = (far[1] + self.num_positions // 2).clamp(max=self.num_positions - 1)
        yield ArgumentSet("usual", "at far positions", far)


def step_plan(net: Any, asked: Mapping[Any, Any] | None = None) -> StepPlan:
    """Return the plan of a decoder's steps, for sizes that a user may ask for.

    Raises:
        InputError: other sizes than batch and length are asked for, or the decoder fails.
    """
    asked = asked or {}
    if other := [name for name in asked if name not in ("batch", "length")]:
        raise InputError(f"dynamic: {other[0]!r} of a decoder; it has batch and length")
    step = DecoderStep(net)
    most = getattr(net.config, "max_position_embeddings", None) or MOST_PAST
    lows = {"batch": 1, "length": 1}
    highs = {"batch": MOST_BATCH, "length": min(MOST_LENGTH, most)}
    for name, ends in asked.items():
        lows[name], highs[name] = ends
    with torch.no_grad(), boundary(InputError, "a call of the decoder"):
        outputs = net(input_ids=torch.zeros(1, 2, dtype=torch.long), use_cache=True)
    layers = outputs[step.cache_name].layers
    heads = tuple((x.keys.shape[1], x.keys.shape[3], x.values.shape[3]) for x in layers)
    kinds = len(step.kinds)
    of_masks = [(3 + 2 * k + part, step.kinds[k]) for k in range(kinds) for part in (0, 1)]
    of_layers = [
        (3 + 2 * kinds + 2 * n + part, is_sliding)
        for n, is_sliding in enumerate(step.slides)
        for part in (0, 1)
    ]
    numbers = [number for number, _ in (*of_masks, *of_layers)]

    def past_of(is_sliding: bool) -> tuple[tuple[int, int], ...]:
        masks = [(number, 3) for number, kind in of_masks[::2] if kind == is_sliding]
        return (*masks, *((number, 2) for number, kind in of_layers if kind == is_sliding))

    window = getattr(net.config, "sliding_window", None) or 0
    length = [(0, 1), (1, 1), *((number, 2) for number, _ in of_masks)]
    length += [(number, 3) for number, _ in of_masks[1::2]]
    rows = [(0, 0), (1, 0), *((number, 0) for number in numbers)]
    ranges = [
        SizeRange("batch", lows["batch"], highs["batch"], 2, tuple(rows)),
        SizeRange("length", lows["length"], highs["length"], 5, tuple(length)),
        SizeRange("past", 0, min(most, MOST_PAST) + BLOCK, 9, past_of(False)),
    ]
    if True in step.kinds:
        ranges.append(SizeRange("window", 0, window + BLOCK, 7, past_of(True)))
    ranges.append(SizeRange("logits", 1, highs["length"], 3, ((2, 0),)))
    kept = tuple(r for r in ranges if r.places)
    vocabulary = net.get_input_embeddings().num_embeddings
    own = window, most, net.dtype, type(outputs)
    return StepPlan(step, kept, heads, vocabulary, *own)
