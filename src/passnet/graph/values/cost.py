"""A graph's cost, and its outputs on the CPU: what decides whether a variant runs."""

import itertools
import math
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from passnet.errors import GraphError, boundary
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, retarget
from passnet.graph.text.meta import DTYPE_BYTES
from passnet.graph.values.fake import infer_shapes
from passnet.graph.values.inputs import InputKind, make_inputs

MAX_RUN_BYTES = 2**30
MAX_RUN_FLOPS = 4 * 10**9
"""Largest graph to run: ResNet-18 on one image, some four seconds on one core in float16."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A graph's memory (arguments and largest value), and FLOPs of products and convolutions."""

    num_bytes: int
    num_flops: int

    @property
    def is_small(self) -> bool:
        """Return whether the graph is small enough to run."""
        return self.num_bytes <= MAX_RUN_BYTES and self.num_flops <= MAX_RUN_FLOPS


def cost(graph: Graph) -> Cost:
    """Return a graph's cost, from shapes alone; raise GraphError if an op refuses them."""
    counter = FlopCounterMode(display=False)
    with counter:
        shapes = infer_shapes(graph, "graph")
    sizes = [
        math.prod(value.shape) * DTYPE_BYTES.get(value.dtype, 1)
        for value in itertools.chain(*shapes)
        if value.shape is not None and value.dtype is not None and -1 not in value.shape
    ]
    arguments = sum(spec.num_elements * DTYPE_BYTES[spec.dtype] for spec in graph.tensors)
    return Cost(arguments + max(sizes, default=0), counter.get_total_flops())


def finite_outputs(graph: Graph) -> list[torch.Tensor]:
    """Run a graph on replayed inputs; return where float outputs are finite."""
    module = build(retarget(graph, "cpu").program)
    arguments = torch_arguments(graph, "recorded", seed=0)
    with boundary(GraphError, "running on the CPU"), torch.no_grad():
        torch.manual_seed(0)
        outputs = torch.fx.Interpreter(module).run(*arguments)
    tensors = [output for output in outputs if isinstance(output, torch.Tensor)]
    return [tensor.isfinite() for tensor in tensors if tensor.is_floating_point()]


def torch_arguments(graph: Graph, kind: InputKind, seed: int) -> list[torch.Tensor | int]:
    """Return the values of `make_inputs` as CPU arguments for torch."""
    arguments: list[torch.Tensor | int] = []
    for array, spec in zip(make_inputs(graph, kind, seed), graph.tensors, strict=True):
        if not isinstance(array, int):
            array = torch.from_numpy(array).view(getattr(torch, spec.dtype))
        arguments.append(array)
    return arguments
