"""Factories of input makers, from the configuration of a net: axes by name, sizes by setting."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import torch

from passnet.data.capture.net import NetInput, floats, ones, tokens

DEFAULT_SIZE = 224
"""Image size of nets whose configuration names none."""

DETECTION_SIZE = 640
_DETECTORS = ("Detection", "Detr", "YOLO", "Yolos", "DFine", "DETR", "GroundingDino")
"""Words in the names of classes that take such large images."""


class ConfigView:
    """The configuration of a net with its parts, and the arguments of the net."""

    def __init__(self, net: torch.nn.Module, config: Any) -> None:
        self.net, self.config = net, config
        self.class_name = type(net).__name__
        self.params = inspect.signature(net.forward).parameters
        self.family = str(config.model_type)

    def find(self, *keys: str, part: str = "", default: Any = None) -> Any:
        """Return the first configured setting of several, first in parts of this name."""
        parts = sorted(_parts(self.config), key=lambda named: bool(part) and part not in named[0])
        settings = (getattr(config, key, None) for _, config in parts for key in keys)
        return next((value for value in settings if value is not None), default)

    def text(self, key: str, default: Any = None) -> Any:
        """Return a setting of the text part of the configuration."""
        value = getattr(text_config(self.config), key, None)
        return self.find(key, part="text", default=default) if value is None else value

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of an image."""
        size = self.find("image_size", "img_size", "input_size", "pretrained_img_size",
                         part="vision")  # fmt: skip
        if size is None:
            is_detector = any(word in self.class_name for word in _DETECTORS)
            size = DETECTION_SIZE if is_detector else DEFAULT_SIZE
        if isinstance(size, Mapping):
            size = [size[key] for key in ("height", "width") if key in size]
        if isinstance(size, (list, tuple)):
            size = list(size)[-2:]
            return int(size[0]), int(size[-1])
        return int(size), int(size)

    @property
    def channels(self) -> int:
        """Channels of an image."""
        keys = ("num_channels", "in_channels", "in_chans", "num_input_channels")
        return int(self.find(*keys, part="vision", default=3))

    @property
    def patch(self) -> int:
        """Side of a patch of an image."""
        side = self.find("patch_size", part="vision", default=14)
        return int(side[-1] if isinstance(side, (list, tuple)) else side)


def text_config(config: Any) -> Any:
    """Return the text part of a configuration; of two, the encoder."""
    try:
        return config.get_text_config()
    except ValueError:
        return config.get_text_config(encoder=True)


def _parts(config: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    yield name, config
    for key, value in vars(config).items():
        if hasattr(value, "model_type") and hasattr(value, "to_dict"):
            yield from _parts(value, key)


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
    """Return a maker of normal random numbers; a star names an axis, "*width", by its size."""
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
