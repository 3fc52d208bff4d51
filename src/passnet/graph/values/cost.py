"""Whether a variant runs: what a graph costs, and whether its outputs on the CPU are finite."""

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
"""A graph is run up to this size: ResNet-18 on one image, which takes some four seconds in float16
on one core of a CPU without float16 arithmetic."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a graph takes: the memory of its arguments and of the largest value that an op makes,
    and the floating-point operations of products and convolutions.
    """

    num_bytes: int
    num_flops: int

    @property
    def is_small(self) -> bool:
        """Whether it is run to see whether its outputs are finite."""
        return self.num_bytes <= MAX_RUN_BYTES and self.num_flops <= MAX_RUN_FLOPS


def cost(graph: Graph) -> Cost:
    """What a graph takes, from shapes alone.

    Raises:
        GraphError: an op refuses the shapes or dtypes that it is given.
    """
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
    """For each output that is a tensor of floats, where it is finite, run on the replayed inputs.

    Raises:
        GraphError: an op fails on the CPU.
    """
    module = build(retarget(graph, "cpu").program)
    arguments = torch_arguments(graph, "recorded", seed=0)
    with boundary(GraphError, "running on the CPU"), torch.no_grad():
        torch.manual_seed(0)
        outputs = torch.fx.Interpreter(module).run(*arguments)
    tensors = [output for output in outputs if isinstance(output, torch.Tensor)]
    return [tensor.isfinite() for tensor in tensors if tensor.is_floating_point()]


def torch_arguments(graph: Graph, kind: InputKind, seed: int) -> list[torch.Tensor | int]:
    """What `make_inputs` draws for a graph, as arguments for torch on the CPU."""
    arguments: list[torch.Tensor | int] = []
    for array, spec in zip(make_inputs(graph, kind, seed), graph.tensors, strict=True):
        if not isinstance(array, int):
            array = torch.from_numpy(array).view(getattr(torch, spec.dtype))
        arguments.append(array)
    return arguments
