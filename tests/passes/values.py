"""Arguments of a graph as tensors, and tensors as the judge stores them."""

import torch

from passnet.core.records.dtypes import Array
from passnet.graph.spec import Graph
from passnet.graph.values.inputs import InputValue


def tensors(graph: Graph, values: list[InputValue]) -> list[torch.Tensor | int]:
    """The arguments of a graph, fresh ones for each call."""
    return [
        value
        if isinstance(value, int)
        else torch.from_numpy(value.copy()).view(getattr(torch, spec.dtype))
        for spec, value in zip(graph.tensors, values, strict=True)
    ]


def stored(tensor: torch.Tensor) -> Array:
    """The storage of a tensor, bfloat16 as 16-bit integers."""
    plain = tensor.contiguous()
    return (plain.view(torch.uint16) if plain.dtype is torch.bfloat16 else plain).numpy()
