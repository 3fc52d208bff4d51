"""Nets of the catalog captured again: on inputs of other sizes, or cast to another dtype."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from passnet.data.capture.capture import trace_graphs
from passnet.data.capture.catalog import build_entry
from passnet.data.capture.net import Net, NetInput, input_values
from passnet.data.capture.weights import FakeWeights, replace_weights
from passnet.errors import CaptureError, boundary
from passnet.graph.spec import Graph

MAX_INPUT_BYTES = 2 * 2**30
"""Most memory for the inputs of a net; the largest published shapes take 0.2 GB."""


@dataclass(frozen=True, slots=True)
class Recaptured:
    """The graphs of a net in the order of their discovery, and the sizes of its input axes."""

    graphs: tuple[Graph, ...]
    axes: dict[str, int]


def recapture(
    entry: str, sizes: Mapping[str, int], dtype: str | None = None, train: bool = False
) -> Recaptured:
    """Capture an entry on inputs of other sizes, with fake weights. `sizes` are by axis name, for
    all inputs with that axis; other axes stay. The net and its inputs are cast to `dtype` unless it
    is None. `train` captures the forward pass of training.

    Raises:
        InputError: there is no such entry.
        CaptureError: the net cannot be built, or refuses these inputs, or cannot be traced.
        GraphError: a graph of it cannot be stored.
    """
    return recapture_net(*fresh_net(entry, train), sizes, dtype)


def fresh_net(entry: str, train: bool = False) -> tuple[Net, FakeWeights]:
    """Build a net of the catalog for one `recapture_net`: nets keep tables between calls."""
    weights = FakeWeights()
    with boundary(CaptureError, f"building {entry}"):
        return build_entry(entry, train, weights), weights


def recapture_net(
    net: Net, weights: FakeWeights, sizes: Mapping[str, int], dtype: str | None = None
) -> Recaptured:
    """Capture a fresh net as `recapture` does; to be done once with each."""
    kind = None if dtype is None else getattr(torch, dtype)
    if kind is not None and isinstance(net.module, torch.nn.Module):
        # `Module.to` does not cast fake weights
        replace_weights(
            net.module,
            lambda weight: weight.detach().to(kind) if weight.dtype is torch.float32 else None,
        )
    resized: dict[tuple[int, tuple[str, ...]], Any] = {}  # an input given twice stays one tensor

    def resize(argument: NetInput) -> Any:
        key = (id(argument.value), argument.axes)
        if key not in resized:
            resized[key] = resized_value(argument, sizes, kind)
        return resized[key]

    args, kwargs = input_values(net, resize)
    graphs = trace_graphs(net.module, args, kwargs, weights.sample)
    return Recaptured(tuple(captured.graph for captured in graphs), axis_sizes(net))


def axis_sizes(net: Net) -> dict[str, int]:
    """Return the size of each named axis in the first input that has it; digits are no names."""
    sizes: dict[str, int] = {}
    for argument in (*net.args, *net.kwargs.values()):
        if isinstance(argument.value, torch.Tensor):
            for axis, size in zip(argument.axes, argument.value.shape, strict=False):
                if not axis.isdigit():
                    sizes.setdefault(axis, size)
    return sizes


def resized_value(
    argument: NetInput, sizes: Mapping[str, int], dtype: torch.dtype | None = None
) -> Any:
    """Return an argument with named axes repeated or cut off to sizes, and floats cast."""
    value = argument.value
    if not isinstance(value, torch.Tensor):
        return value
    shape = list(value.shape)
    for dim, axis in enumerate(argument.axes):
        shape[dim] = sizes.get(axis, shape[dim])
    num_bytes = math.prod(shape) * value.element_size()
    if num_bytes > MAX_INPUT_BYTES:
        raise CaptureError(f"an input would take {num_bytes} bytes, above {MAX_INPUT_BYTES}")
    for dim, size in enumerate(shape):
        old = value.shape[dim]
        if old == 0 and size:
            raise CaptureError(f"axis {argument.axes[dim]} has no elements that could be repeated")
        if size != old:
            value = value.index_select(dim, torch.arange(size) % old)
    return value.to(dtype) if dtype is not None and value.dtype is torch.float32 else value
