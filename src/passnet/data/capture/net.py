"""The nets of the catalog, and inputs for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
import torch

from passnet.data.capture.record import Domain


@dataclass(frozen=True, slots=True)
class NetInput:
    """One argument of a call; a size without meaning names its axis: ("batch", "3", "height")."""

    value: Any
    axes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Net:
    """A net that is ready to be captured, in evaluation mode. `task` is in the words of its
    library: "fill-mask"; `changes` differ from the entry's defaults: "num_hidden_layers 32 -> 4".
    """

    module: Callable[..., Any]
    args: tuple[NetInput, ...] = ()
    kwargs: Mapping[str, NetInput] = field(default_factory=dict)
    domain: Domain = "other"
    task: str = ""
    changes: tuple[str, ...] = ()


def input_values(
    net: Net, convert: Callable[[NetInput], Any] = attrgetter("value")
) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and named input values, each passed through `convert`."""
    args = [convert(argument) for argument in net.args]
    return args, {name: convert(argument) for name, argument in net.kwargs.items()}


def floats(*shape: int, axes: tuple[str, ...] = (), scale: float = 1.0, seed: int = 0) -> NetInput:
    """Return normal random numbers of mean 0 and standard deviation `scale`."""
    values = scale * _random(seed).standard_normal(shape, dtype=np.float32)
    return NetInput(torch.from_numpy(np.asarray(values, np.float32)), axes)


def image(batch: int, channels: int, height: int, width: int, seed: int = 0) -> NetInput:
    """Return images of normal random numbers; other images of one net take other seeds."""
    axes = ("batch", str(channels), "height", "width")
    return floats(batch, channels, height, width, axes=axes, seed=seed)


def integers(high: int, *shape: int, low: int = 0, axes: tuple[str, ...] = ()) -> NetInput:
    """Return random integers from `low` to below `high`."""
    return NetInput(torch.from_numpy(_random().integers(low, high, shape)), axes)


def tokens(vocabulary: int, *shape: int, axes: tuple[str, ...] = ("batch", "sequence")) -> NetInput:
    """Return token ids, without the first few, which often are special."""
    return integers(vocabulary, *shape, low=min(5, vocabulary - 1), axes=axes)


def ones(*shape: int, axes: tuple[str, ...] = ()) -> NetInput:
    """Return an attention mask that hides nothing."""
    return NetInput(torch.from_numpy(np.ones(shape, np.int64)), axes)


def _random(seed: int = 0) -> np.random.Generator:
    # Values come from numpy, which no tensor mode sees: they stay real where weights are fake.
    return np.random.default_rng(seed)
