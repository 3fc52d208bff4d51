"""What a compiler would fuse: Inductor's plan for a graph, read before any code is made.

A graph is lowered once, under fake tensors, and stopped when Inductor has decided on its kernels.
Every kernel is traced back to the ops that it computes. Nothing is compiled, run or allocated.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from passnet.graph.build import build
from passnet.graph.device import retarget
from passnet.graph.effects import may_alias
from passnet.graph.spec import Graph
from passnet.mine.schedule import TargetDevice, schedule


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a plan: the ops that it computes, whether a library has it ready-made, and the
    op with which it begins: a graph that ends before that op has no such kernel.
    """

    ops: frozenset[int]
    is_extern: bool
    start: int


@dataclass(frozen=True, slots=True)
class FusionPlan:
    """The kernels of a graph of `num_ops` ops, in the order in which they would run.

    Ops that make no kernel (views, what is folded into constants) are in none.
    """

    num_ops: int
    kernels: tuple[Kernel, ...]

    def num_kernels(self) -> list[int]:
        """K(1), K(2), ...: how many kernels have begun with each prefix of the ops."""
        starts = sorted(kernel.start for kernel in self.kernels)
        counts = []
        begun = 0
        for place in range(self.num_ops):
            while begun < len(starts) and starts[begun] <= place:
                begun += 1
            counts.append(begun)
        return counts


def fusion_plan(graph: Graph, where: str = "graph", device: TargetDevice = "cpu") -> FusionPlan:
    """What Inductor would make of a graph.

    Args:
        graph: with the specs of its arguments.
        where: named in errors.
        device: "cpu", or "cuda", which needs no GPU (see `mine.simulated_gpu`).

    Raises:
        FusionError: Inductor cannot lower it.
        InputError: there is no such device.
    """
    program = retarget(graph, device, None if device == "cpu" else 0).program
    module = build(program, where)
    users = _users(module)  # before Inductor changes it
    scheduled = schedule(module, graph, device, where)
    parts = [part.node for node in scheduled for part in node.get_nodes()]
    stored = {_origin(buffer) for buffer in parts if buffer is not None} - {None}
    nodes = [node for node in scheduled if _is_launched(node)]
    kernels = []
    for node in nodes:
        parts = [part.node for part in node.get_nodes() if part.node is not None]
        kernels.append({op for buffer in parts for op in _ops_of(buffer, stored)})
    for op, kernel in _absorbed(users, [item.target for item in program.ops], kernels):
        kernels[kernel].add(op)
    known = [(ops, node) for ops, node in zip(kernels, nodes, strict=True) if ops]
    return FusionPlan(
        len(program.ops),
        tuple(
            Kernel(frozenset(ops), bool(node.is_extern()), _start(ops, node, known, users))
            for ops, node in known
        ),
    )


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


def _start(
    ops: set[int], node: Any, kernels: Sequence[tuple[set[int], Any]], users: dict[int, list[int]]
) -> int:
    """The op with which a kernel begins, in a graph that ends there.

    That is its first op, but for two kinds of ops that are elsewhere in a shorter graph: the bias
    of a product, which the library adds as long as no pointwise op follows; and what is computed
    in a later reduction from what another kernel made, which is computed there until it comes.
    """
    first = min(ops)
    if node.is_extern():
        return first
    others = [(held, other) for held, other in kernels if other is not node]
    libraries = [other for held, other in others if first in held and other.is_extern()]
    if libraries:  # the op is a call of the library and its bias
        has_other = len(ops) > 1 and any(_is_product(other) for other in libraries)
        return min(ops - {first}) if has_other else first
    sums = [max(numbers) for part in node.get_nodes() if part.is_reduction()
            if (numbers := _own_ops(part.node))]  # fmt: skip
    generated = {op for held, other in others if not other.is_extern() for op in held}
    held = {op for held, _ in kernels for op in held}
    if sums and first < min(sums) and _reads(first, generated, held, users):
        return min(sums)
    return first


def _is_product(node: Any) -> bool:
    """Whether a kernel is a matrix product of the library."""
    products = (torch.ops.aten.mm, torch.ops.aten.addmm)
    targets = [getattr(item.target, "overloadpacket", None) for item in node.node.get_origins()]
    return any(target in products for target in targets)


def _reads(op: int, made: set[int], held: set[int], users: dict[int, list[int]]) -> bool:
    """Whether an op reads what one of `made` computes, directly or through ops that no kernel has
    (views).
    """
    waiting = [op]
    while waiting:
        user = waiting.pop()
        for source in [item for item, found in users.items() if user in found]:
            if source in made:
                return True
            if source not in held:
                waiting.append(source)
    return False


def _users(module: torch.fx.GraphModule) -> dict[int, list[int]]:
    """The ops that use the result of each op, directly."""
    return {
        op: [number for user in node.users if (number := _op(user)) is not None]
        for node in module.graph.nodes
        if (op := _op(node)) is not None
    }


def _origin(buffer: Any) -> torch.fx.Node | None:
    """The node of the lowered graph whose result a buffer holds."""
    return getattr(buffer, "origin_node", None)


def _is_launched(node: Any) -> bool:
    """Whether a node of the schedule is a kernel: not one of the results of a call that has many,
    and not memory that others fill.
    """
    from torch._inductor.ir import MultiOutput
    from torch._inductor.scheduler import NopKernelSchedulerNode

    return not isinstance(node, NopKernelSchedulerNode) and not isinstance(node.node, MultiOutput)


def _ops_of(buffer: Any, stored: set[torch.fx.Node | None]) -> Iterator[int]:
    """The ops that are computed where a buffer is filled.

    These are the op of its own node and, back along the data, of all nodes whose results are stored
    nowhere: they are computed where they are used. Views compute nothing. A part of a reduction has
    no node of its own; it belongs to the last op that it was made for.
    """
    own = _origin(buffer)
    if own is None:
        numbers = _own_ops(buffer)
        yield from numbers[:0] if not numbers else [max(numbers)]
        return
    waiting, seen = [own], {own}
    while waiting:
        node = waiting.pop()
        if not _is_view(node):
            yield from _ops_at(node)
        fresh = [item for item in node.all_input_nodes if item not in seen and item not in stored]
        seen.update(fresh)
        waiting += fresh


def _own_ops(buffer: Any) -> list[int]:
    """The ops that a buffer was made for."""
    own = _origin(buffer)
    origins = buffer.get_origins() if own is None else [own]
    return [number for item in origins for number in _ops_at(item)]


def _ops_at(node: torch.fx.Node) -> list[int]:
    """The op of a node of the lowered graph, as a list of at most one.

    A node that Inductor put in place of others has none of its own. It computes the first op that
    is told of those that use it, or where none does (an argument is written) the last before it.
    """
    number = _op(node)
    if number is not None:
        return [number]
    if node.op != "call_function":
        return []
    for step, choose in (("users", min), ("all_input_nodes", max)):
        waiting, seen, found = [node], {node}, []
        while waiting:
            for item in getattr(waiting.pop(), step):
                number = _op(item)
                if number is not None:
                    found.append(number)
                elif item not in seen:
                    seen.add(item)
                    waiting.append(item)
        if found:
            return [choose(found)]
    return []


def _is_view(node: torch.fx.Node) -> bool:
    """Whether a node of the lowered graph only looks at memory in another way."""
    packet = getattr(node.target, "overloadpacket", None)
    aten = torch.ops.aten
    is_list = packet in (aten.split, aten.split_with_sizes, aten.unbind)
    is_part = node.target is operator.getitem
    return is_list or is_part or getattr(node.target, "is_view", False)


def _op(node: torch.fx.Node) -> int | None:
    return (node.meta.get("custom") or {}).get("op")
