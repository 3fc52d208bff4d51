"""A net of the catalog captured again: on inputs of other sizes, or cast to another dtype.

What changes with a size or a dtype in a graph is what changes in the net's own code, so that no
number has to be matched with a dimension, and no literal with a dtype.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from passnet.errors import CaptureError, boundary
from passnet.extract.capture import segment_graph
from passnet.extract.catalog import build_entry
from passnet.extract.net import Net, NetInput
from passnet.extract.trace import Segment, Trace
from passnet.extract.weights import FakeWeights
from passnet.graph.spec import Graph

MAX_INPUT_BYTES = 2 * 2**30
"""Most memory for the inputs of a net; the largest of the published shapes take 0.2 GB."""


@dataclass(frozen=True, slots=True)
class Recaptured:
    """The graphs of a net, in the order in which they were found, and the sizes of the axes that
    its inputs name.
    """

    graphs: tuple[Graph, ...]
    axes: dict[str, int]


def recapture(
    entry: str, sizes: Mapping[str, int], dtype: str | None = None, train: bool = False
) -> Recaptured:
    """Capture an entry of the catalog on inputs of other sizes, with weights that are not there.

    The net is built anew, as nets keep tables from one call to the next.

    Args:
        entry: of the catalog.
        sizes: name of an axis -> its size, for all inputs that have it; other axes stay.
        dtype: cast the net and its inputs to it; None leaves both as they are.
        train: capture the forward pass of training.

    Raises:
        InputError: there is no such entry.
        CaptureError: the net cannot be built, or refuses these inputs, or cannot be traced.
        GraphError: a graph of it cannot be stored.
    """
    weights = FakeWeights()
    torch.manual_seed(0)
    with boundary(CaptureError, f"building {entry}"), weights:
        net = build_entry(entry)
        if isinstance(net.module, torch.nn.Module):
            net.module.train(train)
    kind = None if dtype is None else getattr(torch, dtype)
    if kind is not None and isinstance(net.module, torch.nn.Module):
        _cast(net.module, kind)
    args = [resized_value(item, sizes, kind) for item in net.args]
    kwargs = {name: resized_value(item, sizes, kind) for name, item in net.kwargs.items()}
    graphs: list[Graph] = []

    def keep(segment: Segment) -> None:
        graphs.append(segment_graph(segment, weights.sample).graph)

    try:
        Trace(net.module, keep).run(args, kwargs)
    finally:
        torch._dynamo.reset()
    return Recaptured(tuple(graphs), axis_sizes(net))


def _cast(module: torch.nn.Module, dtype: torch.dtype) -> None:
    """Cast parameters and buffers of float32, which `Module.to` does not do to fake ones."""
    made: dict[int, torch.Tensor] = {}
    for part in module.modules():
        tables: tuple[dict[str, Any], ...] = (part._parameters, part._buffers)
        for table in tables:
            for name, value in table.items():
                if value is None or value.dtype is not torch.float32:
                    continue
                if id(value) not in made:
                    cast = value.detach().to(dtype)
                    is_parameter = isinstance(value, torch.nn.Parameter)
                    made[id(value)] = torch.nn.Parameter(cast) if is_parameter else cast
                table[name] = made[id(value)]


def axis_sizes(net: Net) -> dict[str, int]:
    """Name of an axis -> its size in the first input that has it.

    Sizes that mean nothing beyond themselves, which are named by their digits, are left out.
    """
    found: dict[str, int] = {}
    for item in (*net.args, *net.kwargs.values()):
        if isinstance(item.value, torch.Tensor):
            for axis, size in zip(item.axes, item.value.shape, strict=False):
                if not axis.isdigit():
                    found.setdefault(axis, size)
    return found


def resized_value(
    given: NetInput, sizes: Mapping[str, int], dtype: torch.dtype | None = None
) -> Any:
    """The value of an argument with other sizes along its named axes.

    What it holds is repeated, or its beginning taken, so that token ids stay within their
    vocabulary, masks hide nothing, and mean and standard deviation stay about the same. Floats of
    32 bits are cast to `dtype`.

    Raises:
        CaptureError: it would take more than `MAX_INPUT_BYTES`, or an axis without elements would
            have to grow.
    """
    value = given.value
    if not isinstance(value, torch.Tensor):
        return value
    shape = list(value.shape)
    for place, axis in enumerate(given.axes):
        shape[place] = sizes.get(axis, shape[place])
    num_bytes = math.prod(shape) * value.element_size()
    if num_bytes > MAX_INPUT_BYTES:
        raise CaptureError(f"an input would take {num_bytes} bytes, above {MAX_INPUT_BYTES}")
    for place, size in enumerate(shape):
        old = value.shape[place]
        if old == 0 and size:
            raise CaptureError(f"axis {given.axes[place]} has no elements that could be repeated")
        if size != old:
            value = value.index_select(place, torch.arange(size) % old)
    return value.to(dtype) if dtype is not None and value.dtype is torch.float32 else value
