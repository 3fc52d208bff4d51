"""A graph's cost, its outputs on the CPU, and the ops that the CPU does not implement."""

import itertools
import math
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.flop_counter import FlopCounterMode

from passnet.errors import GraphError, boundary
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, retarget
from passnet.graph.text.meta import DTYPE_BYTES
from passnet.graph.values.fake import fake_input, fake_mode, infer_shapes, restored_state
from passnet.graph.values.inputs import InputKind, make_inputs

MAX_RUN_BYTES = 2**30
MAX_RUN_FLOPS = 4 * 10**9
"""Largest graph to run: ResNet-18 on one image, some four seconds on one core in float16."""

MAX_PROBE_FLOPS = 10**9
"""Largest op to try alone."""


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


def missing_kernels(graph: Graph) -> dict[int, str]:
    """Return the ops, by number, that the CPU does not implement in their dtypes, with the reason.

    Of the calls of an op in the same dtypes, ranks and modes, the smallest is run alone, on zeros.
    An op that is too large in all of its calls counts as implemented.
    """
    calls = _Calls(graph)
    reasons: dict[int, str] = {}
    for same in calls.by_kind.values():
        num_bytes, num_flops, _, node, arguments = min(same, key=itemgetter(0, 1))
        if num_bytes > MAX_RUN_BYTES or num_flops > MAX_PROBE_FLOPS:
            continue
        args, kwargs = tree_map_only(
            torch.Tensor, lambda value: torch.zeros(value.shape, dtype=value.dtype), arguments
        )
        try:
            with boundary(GraphError, "running on zeros"), restored_state(), torch.no_grad():
                getattr(calls, node.op)(node.target, args, kwargs)
        except GraphError as error:  # an op may refuse zeros, which says nothing of its dtypes
            if isinstance(error.__cause__, NotImplementedError):
                reasons |= {number: str(error.__cause__) for _, _, number, _, _ in same}
    return reasons


class _Calls(torch.fx.Interpreter):
    """A run under fake tensors that keeps the calls of each op in the same dtypes, ranks and modes
    (words and truth values): the bytes of values, the FLOPs, the number of the op, its node and the
    arguments.
    """

    def __init__(self, graph: Graph) -> None:
        program = retarget(graph, "cpu").program
        super().__init__(build(program))
        self.by_kind: dict[Any, list[tuple[int, int, int, torch.fx.Node, Any]]] = {}
        self.counter = FlopCounterMode(display=False)
        running = boundary(GraphError, "running under fake tensors")
        with running, restored_state(), fake_mode(), self.counter, torch.no_grad():
            pairs = zip(graph.tensors, program.params, strict=True)
            self.run(*[fake_input(spec, param.annotation) for spec, param in pairs])

    def run_node(self, n: torch.fx.Node) -> Any:
        if "custom" not in n.meta:
            return super().run_node(n)
        arguments = self.fetch_args_kwargs_from_env(n)
        before = self.counter.get_total_flops()
        value = super().run_node(n)
        values = [
            leaf for leaf in tree_leaves((arguments, value)) if isinstance(leaf, torch.Tensor)
        ]
        if all(isinstance(size, int) for tensor in values for size in tensor.shape):
            num_bytes = sum(tensor.numel() * tensor.element_size() for tensor in values)
            num_flops = self.counter.get_total_flops() - before
            call = (num_bytes, num_flops, n.meta["custom"]["op"], n, arguments)
            forms = [(tensor.dtype, tensor.ndim) for tensor in values]
            modes = [leaf for leaf in tree_leaves(arguments) if isinstance(leaf, (str, bool))]
            kind = (n.op, n.target, *forms, *n.kwargs, *modes)
            self.by_kind.setdefault(kind, []).append(call)
        return value


def torch_arguments(graph: Graph, kind: InputKind, seed: int) -> list[torch.Tensor | int]:
    """Return the values of `make_inputs` as CPU arguments for torch."""
    arguments: list[torch.Tensor | int] = []
    for array, spec in zip(make_inputs(graph, kind, seed), graph.tensors, strict=True):
        if not isinstance(array, int):
            array = torch.from_numpy(array).view(getattr(torch, spec.dtype))
        arguments.append(array)
    return arguments
