"""Factories of input makers: axes by name, sizes from the configuration."""

import re
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import torch

from passnet.data.capture.catalog.transformers.config_view import ConfigView
from passnet.data.capture.net import NetInput, floats, ones, tokens

InputMaker: TypeAlias = Callable[[ConfigView], NetInput | None]
"""A maker of one argument; None where the net is called without it."""

AxisSize: TypeAlias = int | Callable[[ConfigView], Any]
"""A size, or a function that reads one, or the sizes of several axes, from a configuration."""

CHANNELS: AxisSize = attrgetter("channels")
IMAGE_SIZE: AxisSize = attrgetter("size")
"""Height and width."""

PATCH_SIDE: AxisSize = attrgetter("patch")


def setting(key: str) -> AxisSize:
    """Return a reader of a setting that the configuration has."""
    return attrgetter(f"config.{key}")


def first_setting(*keys: str, part: str = "", default: int | None = None) -> AxisSize:
    """Return a reader of the first configured setting of several, see `ConfigView.find`."""
    return lambda view: view.find(*keys, part=part, default=default)


def normal(axes: str, *sizes: AxisSize, scale: float = 1.0) -> InputMaker:
    """Return a maker of normal random numbers with standard deviation `scale`.

    `axes` names the axes of `sizes`; a star, as in "*channels", names an axis by the digits of its
    size.
    """
    return lambda view: _shaped(partial(floats, scale=scale), axes, sizes, view)


def token_ids(axes: str, vocabulary: AxisSize, *sizes: AxisSize) -> InputMaker:
    """Return a maker of random tokens; `axes` and `sizes` as for `normal`."""
    return lambda view: _shaped(partial(tokens, *_numbers(vocabulary, view)), axes, sizes, view)


def all_ones(axes: str, *sizes: AxisSize) -> InputMaker:
    """Return a maker of a mask that hides nothing; `axes` and `sizes` as for `normal`."""
    return lambda view: _shaped(ones, axes, sizes, view)


def filled_like(maker: InputMaker, number: int = 1) -> InputMaker:
    """Return a maker of a constant in the shape of another maker; ones hide nothing."""

    def make(view: ConfigView) -> NetInput | None:
        masked = maker(view)
        if masked is None:
            return None
        return NetInput(torch.from_numpy(np.full(masked.value.shape, number)), masked.axes)

    return make


def constant(value: Any, axes: str = "") -> InputMaker:
    """Return a maker of a fixed value: a tensor if it has axes, else the value itself."""
    return lambda view: NetInput(
        torch.from_numpy(np.array(value)) if axes else value, tuple(axes.split())
    )


def omit(view: ConfigView) -> None:
    """Omit the argument from the call."""


def by_class(pattern: str, maker: InputMaker, otherwise: InputMaker) -> InputMaker:
    """Return one maker for classes whose names match the pattern, another for the rest."""
    return lambda view: (maker if re.search(pattern, view.class_name) else otherwise)(view)


def _shaped(
    fill: Callable[..., NetInput], axes: str, sizes: tuple[AxisSize, ...], view: ConfigView
) -> NetInput:
    shape = [number for size in sizes for number in _numbers(size, view)]
    pairs = zip(axes.split(), map(str, shape), strict=True)
    names = tuple(digits if name.startswith("*") else name for name, digits in pairs)
    return fill(*shape, axes=names)


def _numbers(size: AxisSize, view: ConfigView) -> list[int]:
    number = size(view) if callable(size) else size
    return [int(part) for part in (number if isinstance(number, (tuple, list)) else (number,))]
