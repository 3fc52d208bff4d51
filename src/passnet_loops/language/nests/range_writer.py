"""The nests of a range in the loops language, from Inductor's loops.

Fused nodes share outer loops where their sizes agree and each reads the values that another stored
at the same outer position; otherwise they become separate nests. A value that is stored and read at
the same position needs a name and no memory.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import sympy

from passnet.inductor.loops import InductorLoops, LoopNode, LoopValue
from passnet_loops.language.language import LOW_FLOATS, Memory, Nest
from passnet_loops.language.nests.nest_printer import NestPrinter
from passnet_loops.language.nests.nest_values import (
    LoopSizes,
    NestPhase,
    NestPlan,
    ValueBuilder,
    loop_variables,
)
from passnet_loops.language.nests.range_memory import RangeMemory


def written_nests(
    loops: InductorLoops, memory: RangeMemory
) -> tuple[tuple[Memory, ...], tuple[Nest, ...]]:
    """Return the memory between the nests of a range, and the nests.

    Raises:
        InputError: The language cannot express them.
    """
    plans = [plan for group in loops.groups for plan in _split(group, memory)]
    nests = tuple(nest for plan in plans if (nest := NestPrinter(memory, plan).nest()).steps)
    return memory.between_nests(), nests


def _split(group: Sequence[LoopNode], memory: RangeMemory) -> Iterator[NestPlan]:
    """Yield the nests of fused nodes."""
    nest: NestPlan | None = None
    for number, node in enumerate(group):
        if nest is not None and not _fits(nest, node):
            yield nest
            nest = None
        if nest is None:
            nest = NestPlan(_outer_sizes(node, group[number + 1 :]))
        _add(nest, node, memory)
    if nest is not None:
        yield nest


def _outer_sizes(node: LoopNode, later: Sequence[LoopNode]) -> LoopSizes:
    sizes = _sizes(node)
    if node.inner:
        return sizes[: len(node.outer)]
    for later_node in later:
        outer = _sizes(later_node)[: len(later_node.outer)]
        if later_node.inner and sizes[: len(outer)] == outer:
            return outer
    return sizes


def _fits(nest: NestPlan, node: LoopNode) -> bool:
    depth = len(nest.outer)
    if _sizes(node)[:depth] != nest.outer or (node.inner and len(node.outer) != depth):
        return False
    variables = loop_variables(node, depth)
    for buffer, address in _loads(node):
        if buffer in nest.stored:
            expected = nest.stored[buffer][1]
            if sympy.expand(address.xreplace(variables) - expected) != 0:
                return False
    return True


def _add(nest: NestPlan, node: LoopNode, memory: RangeMemory) -> None:
    depth = len(nest.outer)
    inner = _sizes(node)[depth:]
    last = nest.phases[-1] if nest.phases else None
    if last is None or last.inner != inner or any(b in last.reductions for b, _ in _loads(node)):
        last = NestPhase(inner)
        nest.phases.append(last)
    builder = ValueBuilder(memory, nest, last, node)
    for store in node.stores:
        value = builder.node(store.value)
        address = sympy.expand(store.address.xreplace(builder.variables))
        dtype = memory.layout(store.buffer).dtype
        last.stores.append((store.buffer, address, value))
        if store.is_reduction:
            last.reductions.add(store.buffer)
        if dtype in LOW_FLOATS and value.dtype not in LOW_FLOATS:
            value = builder.cons(dtype, (value,), dtype)
        nest.stored[store.buffer] = (len(nest.phases) - 1, address, value)


def _sizes(node: LoopNode) -> LoopSizes:
    return tuple(size for _, size in (*node.outer, *node.inner))


def _loads(node: LoopNode) -> list[tuple[str, Any]]:
    """Return the buffers that a node reads, with the addresses."""
    waiting: list[Any] = [store.value for store in node.stores]
    waiting += [value for value, _ in node.picks.values()]
    loads, visited = [], set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, LoopValue) and id(value) not in visited:
            visited.add(id(value))
            if value.name == "load":
                loads.append((value.args[0], value.args[1]))
            else:
                waiting += value.args
    return loads
