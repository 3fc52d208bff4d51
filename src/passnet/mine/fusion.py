"""What a compiler would fuse: Inductor's plan for a graph, read before any code is made.

A graph is lowered once, under fake tensors, and stopped when Inductor has decided on its kernels.
Every kernel is traced back to the ops that it computes. Nothing is compiled, run or allocated.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from passnet.errors import CutError, FusionError, boundary
from passnet.graph.build import build
from passnet.graph.device import retarget
from passnet.graph.effects import may_alias
from passnet.graph.fake import fake_input
from passnet.graph.spec import Graph
from passnet.mine.cut import cut, infer, single_assignment


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a plan: the ops that it computes, and whether a library has it ready-made."""

    ops: frozenset[int]
    is_extern: bool


@dataclass(frozen=True, slots=True)
class FusionPlan:
    """The kernels of a graph of `num_ops` ops, in the order in which they would run.

    Ops that make no kernel (views, what is folded into constants) are in none.
    """

    num_ops: int
    kernels: tuple[Kernel, ...]

    def num_kernels(self) -> list[int]:
        """K(1), K(2), ...: of how many kernels each prefix of the ops needs at least a part."""
        starts = sorted(min(kernel.ops) for kernel in self.kernels if kernel.ops)
        counts = []
        begun = 0
        for place in range(self.num_ops):
            while begun < len(starts) and starts[begun] <= place:
                begun += 1
            counts.append(begun)
        return counts


def fusion_plan(graph: Graph, where: str = "graph") -> FusionPlan:
    """What Inductor would make of a graph on a CPU.

    Args:
        graph: with the specs of its arguments.
        where: named in errors.

    Raises:
        FusionError: Inductor cannot lower it.
    """
    program = retarget(graph, "cpu").program
    module = build(program, where)
    users = _users(module)  # before Inductor changes it
    nodes = _schedule(module, graph, where)
    buffers = [part.node for node in nodes for part in node.get_nodes() if part.node is not None]
    stored = {_origin(buffer) for buffer in buffers} - {None}
    kernels = []
    for node in nodes:
        parts = [part.node for part in node.get_nodes() if part.node is not None]
        kernels.append({op for buffer in parts for op in _ops_of(buffer, stored)})
    for op, kernel in _absorbed(users, [item.target for item in program.ops], kernels):
        kernels[kernel].add(op)
    return FusionPlan(
        len(program.ops),
        tuple(
            Kernel(frozenset(ops), bool(node.is_extern()))
            for ops, node in zip(kernels, nodes, strict=True)
            if ops
        ),
    )


def prefix_kernels(graph: Graph, where: str = "graph") -> list[int | None]:
    """K(1), K(2), ... found the long way: every prefix is lowered by itself, and kernels counted.

    It is the published way but for stopping before code is made, and the reference for
    `FusionPlan.num_kernels`. A count is None where the prefix cannot be cut off: a value that
    crosses the cut is no tensor, or nothing crosses it.

    Raises:
        FusionError: Inductor cannot lower a prefix.
    """
    program = single_assignment(graph.program)
    single = Graph(program, graph.tensors)
    seen = infer(single)
    counts: list[int | None] = []
    for stop in range(1, len(program.ops) + 1):
        try:
            prefix = cut(program, 0, stop, seen)
        except CutError:
            counts.append(None)
            continue
        counts.append(len(fusion_plan(prefix, f"{where}[:{stop}]").kernels))
    return counts


def _absorbed(
    users: dict[int, list[int]], targets: Sequence[str], kernels: Sequence[set[int]]
) -> Iterator[tuple[int, int]]:
    """Ops that were made part of a later one, as a product and a sum of one library call; for each
    the number of the kernel in which that is.

    Views are not among them: they make no kernel by themselves.
    """
    first: dict[int, int] = {}
    for number, ops in enumerate(kernels):
        for op in ops:
            first.setdefault(op, number)
    for op in reversed(range(len(targets))):
        if op in first or may_alias(targets[op]):
            continue
        later = [first[user] for user in users.get(op, ()) if user in first]
        if later:
            first[op] = min(later)
            yield op, first[op]


def _users(module: torch.fx.GraphModule) -> dict[int, list[int]]:
    """The ops that use the result of each op, directly."""
    return {
        op: [number for user in node.users if (number := _op(user)) is not None]
        for node in module.graph.nodes
        if (op := _op(node)) is not None
    }


class _StopError(Exception):
    """Carries the schedule out of Inductor."""

    def __init__(self, scheduler: Any) -> None:
        super().__init__("scheduled")
        self.scheduler = scheduler


def _schedule(module: torch.fx.GraphModule, graph: Graph, where: str) -> list[Any]:
    """The kernels that Inductor decides on, in order."""
    from torch._guards import TracingContext, tracing
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode()
    annotations = {item.name: item.annotation for item in graph.program.params}
    with mode:
        inputs = [fake_input(item, annotations[item.name]) for item in graph.tensors]
    uncached = config.patch(fx_graph_cache=False)
    with boundary(FusionError, f"{where}: Inductor cannot lower it"):
        try:
            with torch.no_grad(), uncached, tracing(TracingContext(mode)), _stopping():
                compile_fx(module, inputs)
        except Exception as error:
            stop = _stop_in(error)
            if stop is None:
                raise
            return list(stop.scheduler.nodes)
    return []  # there is nothing to compute: all outputs are arguments, or views of them


@contextlib.contextmanager
def _stopping() -> Iterator[None]:
    """Lowering that ends as soon as the kernels are decided on."""
    from torch._inductor.graph import GraphLowering

    def stop(lowering: Any) -> Any:
        lowering.init_wrapper_code()
        lowering._update_scheduler()
        raise _StopError(lowering.scheduler)

    own = GraphLowering.codegen
    GraphLowering.codegen = stop  # type: ignore[method-assign]
    try:
        yield
    finally:
        GraphLowering.codegen = own  # type: ignore[method-assign]


def _stop_in(error: BaseException) -> _StopError | None:
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, _StopError):
        seen = seen.__cause__ or seen.__context__
    return seen


def _origin(buffer: Any) -> torch.fx.Node | None:
    """The node of the lowered graph whose result a buffer holds."""
    return getattr(buffer, "origin_node", None)


def _ops_of(buffer: Any, stored: set[torch.fx.Node | None]) -> Iterator[int]:
    """The ops that are computed where a buffer is filled.

    These are the op of its own node and, back along the data, of all nodes whose results are stored
    nowhere: they are computed where they are used. Views compute nothing. A part of a reduction has
    no node of its own; it belongs to the last op that it was made for.
    """
    own = _origin(buffer)
    if own is None:
        numbers = [number for item in buffer.get_origins() if (number := _op(item)) is not None]
        yield from numbers[:0] if not numbers else [max(numbers)]
        return
    waiting, seen = [own], {own}
    while waiting:
        node = waiting.pop()
        number = _op(node)
        if number is not None and not _is_view(node):
            yield number
        fresh = [item for item in node.all_input_nodes if item not in seen and item not in stored]
        seen.update(fresh)
        waiting += fresh


def _is_view(node: torch.fx.Node) -> bool:
    """Whether a node of the lowered graph only looks at memory in another way."""
    packet = getattr(node.target, "overloadpacket", None)
    aten = torch.ops.aten
    is_list = packet in (aten.split, aten.split_with_sizes, aten.unbind)
    is_part = node.target is operator.getitem
    return is_list or is_part or getattr(node.target, "is_view", False)


def _op(node: torch.fx.Node) -> int | None:
    return (node.meta.get("custom") or {}).get("op")
