"""Makers of inputs, each described by the names of its axes and where their sizes come from."""

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
"""Makes one argument; None where the net is to be called without it."""

AxisSize: TypeAlias = int | Callable[[ConfigView], Any]
"""A size, or what reads it from a configuration; what reads a tuple gives the sizes of several
axes."""

CHANNELS: AxisSize = attrgetter("channels")
IMAGE_SIZE: AxisSize = attrgetter("size")
"""Height and width."""

PATCH_SIDE: AxisSize = attrgetter("patch")


def setting(key: str) -> AxisSize:
    """A setting that the configuration has."""
    return attrgetter(f"config.{key}")


def first_setting(*keys: str, part: str = "", default: int | None = None) -> AxisSize:
    """The first of these settings that the configuration or a part of it has, see `find`."""
    return lambda view: view.find(*keys, part=part, default=default)


def normal(axes: str, *sizes: AxisSize, scale: float = 1.0) -> InputMaker:
    """Normal random numbers.

    Args:
        axes: the names of the axes; the star of "*channels" names the axis by the digits of its
            size.
        sizes: of the axes in their order.
        scale: the standard deviation.
    """
    return lambda view: _shaped(partial(floats, scale=scale), axes, sizes, view)


def token_ids(axes: str, vocabulary: AxisSize, *sizes: AxisSize) -> InputMaker:
    """Random tokens of a vocabulary of that size; `axes` and `sizes` as for `normal`."""
    return lambda view: _shaped(partial(tokens, *_numbers(vocabulary, view)), axes, sizes, view)


def all_ones(axes: str, *sizes: AxisSize) -> InputMaker:
    """A mask that hides nothing; `axes` and `sizes` as for `normal`."""
    return lambda view: _shaped(ones, axes, sizes, view)


def filled_like(maker: InputMaker, number: int = 1) -> InputMaker:
    """One number for all that another maker makes: ones are a mask that hides nothing of it."""

    def make(view: ConfigView) -> NetInput | None:
        masked = maker(view)
        if masked is None:
            return None
        return NetInput(torch.from_numpy(np.full(masked.value.shape, number)), masked.axes)

    return make


def constant(value: Any, axes: str = "") -> InputMaker:
    """The same for every net: a tensor of these values if it has axes, else the value itself."""
    return lambda view: NetInput(
        torch.from_numpy(np.array(value)) if axes else value, tuple(axes.split())
    )


def omit(view: ConfigView) -> None:
    """Nothing: the net is called without the argument."""


def by_class(pattern: str, maker: InputMaker, otherwise: InputMaker) -> InputMaker:
    """One maker for the classes in whose names the pattern is found, another for the rest."""
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
