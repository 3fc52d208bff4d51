"""Inductor's fusion plan for a graph under fake tensors, each kernel traced back to its ops."""

import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from passnet.graph.fx.build import build, op_number
from passnet.graph.spec import Graph, retarget
from passnet.graph.values.effects import may_alias
from passnet.inductor.schedule import TargetDevice, schedule

NextNodes: TypeAlias = Callable[[torch.fx.Node], Iterable[torch.fx.Node]]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a plan; a graph that ends before op `start` lacks it."""

    ops: frozenset[int]
    is_extern: bool
    start: int


@dataclass(frozen=True, slots=True)
class FusionPlan:
    """The kernels of a graph of `num_ops` ops, in order; views and folded ops are in none."""

    num_ops: int
    kernels: tuple[Kernel, ...]

    def num_kernels(self) -> list[int]:
        """Return K(1), K(2), ...: the kernels that have begun with each prefix of the ops."""
        starts = sorted(kernel.start for kernel in self.kernels)
        return [bisect_right(starts, op) for op in range(self.num_ops)]


def fusion_plan(graph: Graph, where: str = "graph", device: TargetDevice = "cpu") -> FusionPlan:
    """Return Inductor's fusion plan for a graph with specs; "cuda" needs no GPU.

    A graph that Inductor cannot lower is a FusionError, which names `where`.
    """
    program = retarget(graph, device, None if device == "cpu" else 0).program
    module = build(program, where)
    users = _users(module)  # before Inductor changes it
    scheduled = schedule(module, graph, device, where)
    stored = {
        getattr(buffer, "origin_node", None) for node in scheduled for buffer in _buffers(node)
    } - {None}
    nodes = [node for node in scheduled if _is_launched(node)]
    ops_of_nodes = [
        {op for buffer in _buffers(node) for op in _ops_of(buffer, stored)} for node in nodes
    ]
    for op, number in _absorbed(users, [op.target for op in program.ops], ops_of_nodes):
        ops_of_nodes[number].add(op)
    computed = [(ops, node) for ops, node in zip(ops_of_nodes, nodes, strict=True) if ops]
    kernels = tuple(
        Kernel(frozenset(ops), bool(node.is_extern()), _start(ops, node, computed, users))
        for ops, node in computed
    )
    return FusionPlan(len(program.ops), kernels)


def _absorbed(
    users: dict[int, list[int]], targets: Sequence[str], kernels: Sequence[set[int]]
) -> Iterator[tuple[int, int]]:
    """Yield absorbed ops, such as a sum in a product's call, but no views, with their kernels."""
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


def _start(
    ops: set[int], node: Any, kernels: Sequence[tuple[set[int], Any]], users: dict[int, list[int]]
) -> int:
    """Return a kernel's first op, but for ops that are elsewhere in a graph that ends there.

    These are a product's bias, which the library adds if no pointwise op follows, and reads of
    another kernel's results in a later reduction, which that kernel computes until it comes.
    """
    first = min(ops)
    if node.is_extern():
        return first
    libraries = [extern for held, extern in kernels if first in held and extern.is_extern()]
    if libraries:  # the op is a call of the library and its bias
        products = (torch.ops.aten.mm, torch.ops.aten.addmm)
        origins = [origin for extern in libraries for origin in extern.node.get_origins()]
        packets = [getattr(origin.target, "overloadpacket", None) for origin in origins]
        is_biased = len(ops) > 1 and any(packet in products for packet in packets)
        return min(ops - {first}) if is_biased else first
    sums = [max(numbers) for part in node.get_nodes() if part.is_reduction()
            if (numbers := _own_ops(part.node))]  # fmt: skip
    generated = {op for held, kernel in kernels if kernel is not node and not kernel.is_extern()
                 for op in held}  # fmt: skip
    in_kernels = {op for held, _ in kernels for op in held}
    if sums and first < min(sums) and _reads(first, generated, in_kernels, users):
        return min(sums)
    return first


def _reads(op: int, generated: set[int], in_kernels: set[int], users: dict[int, list[int]]) -> bool:
    """Return whether an op reads a result of `generated`, directly or through views."""
    sources = {op}
    while sources:
        sources = {op for op, readers in users.items() if not sources.isdisjoint(readers)}
        if not sources.isdisjoint(generated):
            return True
        sources -= in_kernels
    return False


def _users(module: torch.fx.GraphModule) -> dict[int, list[int]]:
    """Return the direct users of each op."""
    return {
        op: [number for user in node.users if (number := op_number(user)) is not None]
        for node in module.graph.nodes
        if (op := op_number(node)) is not None
    }


def _buffers(node: Any) -> list[Any]:
    """Return the buffers that a schedule node fills."""
    return [part.node for part in node.get_nodes() if part.node is not None]


def _is_launched(node: Any) -> bool:
    """Return whether a schedule node is a kernel, and not a result or memory that others fill."""
    from torch._inductor.ir import MultiOutput
    from torch._inductor.scheduler import NopKernelSchedulerNode

    return not isinstance(node, NopKernelSchedulerNode) and not isinstance(node.node, MultiOutput)


def _ops_of(buffer: Any, stored: set[torch.fx.Node | None]) -> list[int]:
    """Return the ops that are computed where a buffer is filled.

    These are its own op and, back along the data, all ops whose results are stored nowhere. A part
    of a reduction without a node belongs to the last op that it was made for.
    """
    own = getattr(buffer, "origin_node", None)
    if own is None:
        return sorted(_own_ops(buffer))[-1:]
    nodes = _reached(own, lambda node: set(node.all_input_nodes) - stored)
    return [op for node in nodes if not _is_view(node) for op in _ops_at(node)]


def _own_ops(buffer: Any) -> list[int]:
    """Return the ops that a buffer was made for."""
    own = getattr(buffer, "origin_node", None)
    origins = buffer.get_origins() if own is None else [own]
    return [number for origin in origins for number in _ops_at(origin)]


def _ops_at(node: torch.fx.Node) -> list[int]:
    """Return the op of a node of the lowered graph, as a list of at most one.

    A node that Inductor added counts for the first op that uses it, else for the last before it.
    """
    if (number := op_number(node)) is not None:
        return [number]
    if node.op != "call_function":
        return []
    later = sorted(_nearest_ops(node, lambda user: user.users))
    return later[:1] or sorted(_nearest_ops(node, lambda source: source.all_input_nodes))[-1:]


def _nearest_ops(node: torch.fx.Node, next_nodes: NextNodes) -> list[int]:
    """Return the nearest ops along the paths from a node without one."""
    reached = _reached(node, lambda step: next_nodes(step) if op_number(step) is None else ())
    return [number for step in reached if (number := op_number(step)) is not None]


def _reached(start: torch.fx.Node, next_nodes: NextNodes) -> set[torch.fx.Node]:
    """Return the nodes reachable from `start`, itself included."""
    waiting, reached = [start], {start}
    while waiting:
        new = set(next_nodes(waiting.pop())) - reached
        reached |= new
        waiting += new
    return reached


def _is_view(node: torch.fx.Node) -> bool:
    """Return whether a node of the lowered graph is a view."""
    packet = getattr(node.target, "overloadpacket", None)
    aten = torch.ops.aten
    is_list = packet in (aten.split, aten.split_with_sizes, aten.unbind)
    return is_list or node.target is operator.getitem or getattr(node.target, "is_view", False)
