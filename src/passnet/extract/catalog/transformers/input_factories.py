"""Makers of inputs, each described by the names of its axes and where their sizes come from."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import torch

from passnet.extract.catalog.transformers.config_view import ConfigView
from passnet.extract.net import NetInput, floats, ones, tokens

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

    def make(view: ConfigView) -> NetInput:
        shape, names = _shape_and_axes(axes, sizes, view)
        return floats(*shape, axes=names, scale=scale)

    return make


def token_ids(axes: str, vocabulary: AxisSize, *sizes: AxisSize) -> InputMaker:
    """Random tokens of a vocabulary of that size; `axes` and `sizes` as for `normal`."""

    def make(view: ConfigView) -> NetInput:
        shape, names = _shape_and_axes(axes, sizes, view)
        num_tokens = vocabulary if isinstance(vocabulary, int) else int(vocabulary(view))
        return tokens(num_tokens, *shape, axes=names)

    return make


def all_ones(axes: str, *sizes: AxisSize) -> InputMaker:
    """A mask that hides nothing; `axes` and `sizes` as for `normal`."""

    def make(view: ConfigView) -> NetInput:
        shape, names = _shape_and_axes(axes, sizes, view)
        return ones(*shape, axes=names)

    return make


def ones_like(maker: InputMaker) -> InputMaker:
    """A mask that hides nothing of what another maker makes."""

    def make(view: ConfigView) -> NetInput | None:
        masked = maker(view)
        return None if masked is None else ones(*masked.value.shape, axes=masked.axes)

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


def _shape_and_axes(
    axes: str, sizes: tuple[AxisSize, ...], view: ConfigView
) -> tuple[list[int], tuple[str, ...]]:
    shape: list[int] = []
    for size in sizes:
        number = size(view) if callable(size) else size
        shape += map(int, number if isinstance(number, (tuple, list)) else (number,))
    names = (
        str(size) if name.startswith("*") else name
        for name, size in zip(axes.split(), shape, strict=True)
    )
    return shape, tuple(names)
