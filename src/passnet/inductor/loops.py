"""Inductor's loops for a graph, read from its schedule before code is made."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any
from unittest.mock import patch

import sympy
import torch

from passnet.errors import AuthorError, boundary
from passnet.graph.fx.build import build, op_number
from passnet.graph.spec import Graph, retarget
from passnet.inductor.compiler import inductor_settings
from passnet.inductor.generated_code import DEVICE_SETTINGS, contiguous, fake_results, fake_tensor
from passnet.inductor.schedule import SETTINGS, lower
from passnet.inductor.simulated_gpu import DevicelessMode

READ_SETTINGS: dict[str, Any] = {"unroll_reductions_threshold": 1}
"""Settings that keep short reductions loops, so that ops give the same loops at any size."""


@dataclass(frozen=True, eq=False, slots=True)
class LoopValue:
    """A value in a loop: an Inductor op with its arguments, and the number of the graph's op."""

    name: str
    args: tuple[Any, ...]
    op: int | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A value stored in a buffer at an address; `is_reduction` if it is a reduction's result."""

    buffer: str
    address: Any
    value: LoopValue
    is_reduction: bool


@dataclass(frozen=True, slots=True)
class LoopNode:
    """A loop nest: outer and inner (reduction) variables with their sizes, and its stores.

    `picks` holds the values that address memory, each with the size of its axis.
    """

    outer: tuple[tuple[Any, int], ...]
    inner: tuple[tuple[Any, int], ...]
    stores: tuple[Stored, ...]
    picks: dict[Any, tuple[LoopValue, int]]


@dataclass(frozen=True, slots=True)
class Buffer:
    """Shape, strides and dtype of memory, and the number of the op whose result it holds."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    op: int | None = None


@dataclass
class InductorLoops:
    """The loops of a graph: groups of fused nodes, in their order of execution.

    `buffers` has every memory by name, arguments under the graph's; `outputs` name theirs.
    """

    buffers: dict[str, Buffer]
    groups: list[list[LoopNode]]
    outputs: list[tuple[str, Buffer]]


def inductor_loops(
    graph: Graph, strides: Mapping[str, tuple[int, ...]], options: Mapping[str, Any], where: str
) -> InductorLoops:
    """Return a graph's loops; raise AuthorError if Inductor cannot lower it or calls a library."""
    inputs = {}
    for spec in graph.tensors:
        stride = strides.get(spec.name, contiguous(spec.shape))
        inputs[spec.name] = Buffer(spec.shape, stride, spec.dtype)
    mode = DevicelessMode()
    settings = SETTINGS | DEVICE_SETTINGS["cpu"] | dict(options) | READ_SETTINGS
    with ExitStack() as stack:
        stack.enter_context(boundary(AuthorError, f"{where}: its loops cannot be read"))
        stack.enter_context(torch.no_grad())
        stack.enter_context(inductor_settings(settings))
        stack.enter_context(_marked_ops())
        module = build(retarget(graph, "cpu", None).program, where)
        with mode, torch.device("cpu"):
            fakes = [fake_tensor(buffer) for buffer in inputs.values()]
            fake_results(module, fakes, where)
        loops = lower(module, fakes, mode, lambda lowering: _read(lowering, inputs, where))
    if loops is None:
        raise AuthorError(f"{where}: there is nothing to compute")
    return loops


@contextmanager
def _marked_ops() -> Iterator[None]:
    """Mark values that are the result of an op of the graph, for the length of the block.

    Inductor's closures, which run when a loop is traced, are wrapped to note the op.
    """
    from torch._inductor import ir
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V

    original = GraphLowering.call_function

    def marking(self: Any, target: Any, args: Any, kwargs: Any) -> Any:
        result = original(self, target, args, kwargs)
        node = V.get_current_node()
        loops = getattr(getattr(result, "data", None), "data", None)
        op, users = op_number(node), map(op_number, node.users)
        if op is not None and isinstance(loops, ir.Pointwise) and op not in users:
            object.__setattr__(loops, "inner_fn", _marker(loops.inner_fn, op))
        return result

    with patch.object(GraphLowering, "call_function", marking):
        yield


def _marker(inner: Any, op: int) -> Any:
    def marked(*args: Any, **kwargs: Any) -> Any:
        from torch._inductor.index_propagation import IndexPropVar
        from torch._inductor.virtualized import OpsValue

        value = inner(*args, **kwargs)
        bare: Any = value
        while isinstance(bare, OpsValue | IndexPropVar):
            bare = bare.value
        node = getattr(bare, "node", None)
        if node is not None:
            node.meta["passnet_op"] = op
        return value

    return marked


def _read(lowering: Any, inputs: dict[str, Buffer], where: str) -> InductorLoops:
    from torch._inductor.scheduler import NopKernelSchedulerNode

    names = dict(zip(map(str, lowering.graph_input_names), inputs, strict=True))
    offsets: dict[str, int] = {}
    groups, buffers = [], dict(inputs)
    parts = [part for node in lowering.scheduler.nodes for part in node.get_nodes()]
    for part in parts:
        if part.node is not None:
            whole, offset = _whole_memory(part.node)
            if whole is not None:
                names[part.node.get_name()] = whole
                offsets[part.node.get_name()] = offset
    for node in lowering.scheduler.nodes:
        if node.is_extern() or node.is_template():
            raise AuthorError(f"{where}: a part of it calls a library")
        group = []
        for part in node.get_nodes():
            if part.node is None:
                raise AuthorError(f"{where}: a part of it is no loop")
            if part.node.get_name() not in names:
                buffers[part.node.get_name()] = _buffer(part.node)
            if hasattr(part.node, "get_default_sizes_body"):
                group.append(_loop_node(part.node, names, offsets))
            elif not isinstance(node, NopKernelSchedulerNode):
                raise AuthorError(f"{where}: a part of it is no loop")
        groups.append(group)
    outputs = []
    for output in lowering.graph_outputs:
        name = output.get_name()
        if names.get(name, name) in inputs:
            raise AuthorError(f"{where}: a result is an argument")
        if int(output.get_layout().offset):
            raise AuthorError(f"{where}: a result is a part of a buffer")
        layout = _buffer(output)
        whole = buffers.get(names.get(name, name))
        if whole is None or prod(whole.shape) != prod(layout.shape):
            raise AuthorError(f"{where}: a result is a part of a buffer")
        outputs.append((names.get(name, name), layout))
    return InductorLoops(buffers, groups, outputs)


def _whole_memory(node: Any) -> tuple[str | None, int]:
    """Return the memory that a buffer is part of, such as a concatenation's, and its offset."""
    from torch._inductor.ir import MutationLayoutSHOULDREMOVE, NonOwningLayout

    layout = getattr(node, "layout", None)
    if isinstance(layout, MutationLayoutSHOULDREMOVE):
        raise AuthorError("a loop that changes what another made")
    if not isinstance(layout, NonOwningLayout):
        return None, 0
    return layout.view.get_name(), int(layout.view.get_layout().offset)


def _buffer(node: Any) -> Buffer:
    origin = getattr(node, "origin_node", None)
    op = op_number(origin) if origin is not None else None
    return Buffer(
        tuple(int(size) for size in node.get_size()),
        tuple(int(step) for step in node.get_stride()),
        str(node.get_dtype()).removeprefix("torch."),
        op,
    )


def _loop_node(buffer: Any, names: Mapping[str, str], offsets: Mapping[str, int]) -> LoopNode:
    """Return the loop that fills a buffer, with the axes of its op."""
    from torch._inductor.virtualized import V

    (outer_sizes, inner_sizes), body, (outer_vars, inner_vars) = buffer.get_default_sizes_body()
    collector = _collector(names, offsets)
    outer = [sympy.Symbol(f"o{number}", integer=True) for number in range(len(outer_vars))]
    inner = [sympy.Symbol(f"r{number}", integer=True) for number in range(len(inner_vars))]
    args = (outer, inner) if buffer.get_reduction_type() else (outer,)
    with V.set_ops_handler(collector):
        body(*args)
    return LoopNode(
        tuple(zip(outer, map(int, outer_sizes), strict=True)),
        tuple(zip(inner, map(int, inner_sizes), strict=True)),
        tuple(collector.stores),
        collector.picks,
    )


def _collector(names: Mapping[str, str], offsets: Mapping[str, int]) -> Any:
    from torch._inductor.ops_handler import DefaultHandler
    from torch._inductor.virtualized import V

    class Collector(DefaultHandler):
        """A handler that keeps a loop's computation as a tree."""

        def __init__(self) -> None:
            self.stores: list[Stored] = []
            self.picks: dict[Any, tuple[LoopValue, int]] = {}

        def _default(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return LoopValue(name, (*args, *kwargs.values()), self._op())

        @staticmethod
        def _op() -> int | None:
            node: Any = V.interpreter.current_node
            return node.meta.get("passnet_op")

        def constant(self, value: Any, dtype: Any) -> Any:
            return LoopValue("constant", (value, str(dtype).removeprefix("torch.")))

        def load(self, name: str, index: Any) -> Any:
            address = index + offsets.get(name, 0)
            return LoopValue("load", (names.get(name, name), address), self._op())

        def store(self, name: str, index: Any, value: Any, mode: Any = None) -> None:
            if mode is not None:
                raise AuthorError(f"a store that {mode}s")
            self._store(name, index, value, is_reduction=False)

        def store_reduction(self, name: str, index: Any, value: Any) -> None:
            self._store(name, index, value, is_reduction=True)

        def _store(self, name: str, index: Any, value: Any, is_reduction: bool) -> None:
            address = index + offsets.get(name, 0)
            self.stores.append(Stored(names.get(name, name), address, value, is_reduction))

        def reduction(self, dtype: Any, src_dtype: Any, reduction_type: str, value: Any) -> Any:
            reduction = LoopValue("reduction", (reduction_type, value), self._op())
            if reduction_type in ("welford_reduce", "welford_combine", "online_softmax_reduce"):
                return tuple(LoopValue("part", (reduction, number)) for number in range(3))
            return reduction

        def index_expr(self, expr: Any, dtype: Any) -> Any:
            return LoopValue("index", (expr, str(dtype).removeprefix("torch.")))

        value_expr = index_expr

        def to_dtype(
            self, x: Any, dtype: Any, src_dtype: Any = None, use_compute_types: bool = True
        ) -> Any:
            return LoopValue("cast", (x, str(dtype).removeprefix("torch.")), self._op())

        def masked(self, mask: Any, body: Any, other: Any) -> Any:
            return LoopValue("masked", (mask, body(), other), self._op())

        def indirect_indexing(
            self, x: Any, size: Any, check: bool = True, wrap_neg: bool = True
        ) -> Any:
            symbol = sympy.Symbol(f"pick{len(self.picks)}", integer=True, nonnegative=True)
            self.picks[symbol] = (x, int(size))
            return symbol

        def output(self, *args: Any) -> None:
            return None

    return Collector()
