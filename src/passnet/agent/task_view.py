"""A graph as an author sees it: every op with shapes, bytes, the least time, and its kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from passnet.errors import CutError, FusionError, GraphError
from passnet.graph.effects import may_alias
from passnet.graph.fake import ValueShape, infer_shapes
from passnet.graph.meta import DTYPE_BYTES
from passnet.graph.render import render_statement
from passnet.graph.spec import Graph, op_refs
from passnet.judge.timing.roofline import peak_gflops, write_ms
from passnet.mine.cost import cost
from passnet.mine.cut import Parent, cut_range, inferred_specs, parent_of, single_assignment
from passnet.mine.fusion import fusion_plan
from passnet.suite.suite import SuiteGraph, Task

_PROBE_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class OpView:
    """An op of a graph.

    `num_bytes` are those it must read and write at least, 0 where it may be a view; `num_flops`
    multiplications and additions of products; `kernels` the numbers of Inductor's kernels that it
    is computed in, none for what costs nothing there.
    """

    text: str
    makes: tuple[str, ...]
    num_bytes: int
    num_flops: int
    kernels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GraphView:
    """A graph: its arguments in words, and its ops; `plan_error` tells why Inductor has no plan."""

    arguments: tuple[str, ...]
    ops: tuple[OpView, ...]
    num_kernels: int
    plan_error: str | None


def view_graph(graph: Graph) -> GraphView:
    """What there is to know about a graph without running it.

    Raises:
        GraphError: its shapes cannot be inferred.
    """
    single = Graph(single_assignment(graph.program), graph.tensors)
    made = infer_shapes(single)
    known = inferred_specs(single)
    parent = parent_of(single.program, known)
    kernels, plan_error = _kernels(single)
    sizes = {name: math.prod(item.shape) * DTYPE_BYTES[item.dtype] for name, item in known.items()}
    ops = []
    for number, op in enumerate(single.program.ops):
        read = sum(sizes.get(name, 0) for name in set(op_refs(op)))
        written = sum(_num_bytes(item) for item in made[number])
        num_bytes = 0 if may_alias(op.target) else read + written
        num_flops = _flops(parent, number)
        mine = tuple(place for place, held in enumerate(kernels) if number in held)
        makes = tuple(_form(item) for item in made[number])
        ops.append(OpView(render_statement(op), makes, num_bytes, num_flops, mine))
    arguments = tuple(f"{item.name}: {item.dtype}{list(item.shape)}" for item in graph.tensors)
    return GraphView(arguments, tuple(ops), len(kernels), plan_error)


def _kernels(graph: Graph) -> tuple[list[frozenset[int]], str | None]:
    try:
        return [item.ops for item in fusion_plan(graph).kernels], None
    except FusionError as cause:
        return [], str(cause)


def _flops(parent: Parent, number: int) -> int:
    try:
        return cost(cut_range(parent, number, number + 1)).num_flops
    except (CutError, GraphError):
        return 0


def _num_bytes(value: ValueShape) -> int:
    if value.shape is None or value.dtype is None or -1 in value.shape:
        return 0
    return math.prod(value.shape) * DTYPE_BYTES.get(value.dtype, 1)


def _form(value: ValueShape) -> str:
    return "no tensor" if value.shape is None else f"{value.dtype}{list(value.shape)}"


@cache
def bytes_per_us() -> float:
    """How many bytes this machine writes in a microsecond on one thread, at best."""
    return _PROBE_BYTES / (write_ms(_PROBE_BYTES) * 1e3)


def floor_us(op: OpView) -> float:
    """The least time of an op alone: its bytes at the machine's bandwidth, or its arithmetic."""
    arithmetic = op.num_flops / peak_gflops() / 1e3 if op.num_flops else 0.0
    return max(op.num_bytes / bytes_per_us(), arithmetic)


def graph_text(item: SuiteGraph, number: int, total: int) -> str:
    """A graph of a task for an author to read.

    Raises:
        GraphError: its shapes cannot be inferred.
    """
    view = view_graph(item.graph)
    program = item.graph.program
    lines = [
        f"graph {number} of {total}: {len(view.arguments)} arguments, {len(view.ops)} ops",
        *(f"  {text}" for text in view.arguments),
        "op | KiB | floor us | Inductor's kernel | statement   # makes",
    ]
    for place, op in enumerate(view.ops):
        kernel = ",".join(map(str, op.kernels)) or "–"
        lines.append(
            f"{place} | {op.num_bytes / 1024:.1f} | {floor_us(op):.1f} | {kernel} | "
            f"{op.text}   # {', '.join(op.makes)}"
        )
    returned = ", ".join(_returned(arg) for arg in program.outputs)
    once = _once(item.graph)
    lines.append(f"returns {returned}")
    total_us = sum(floor_us(op) for op in view.ops)
    plan = f"Inductor would make {view.num_kernels} kernels"
    if view.plan_error is not None:
        plan = "Inductor cannot lower it"
    lines.append(
        f"{plan}; op by op at least {total_us:.1f} us, in one kernel at least "
        f"{once / bytes_per_us():.1f} us to read the arguments and write the results"
    )
    return "\n".join(lines)


def _returned(arg: object) -> str:
    return getattr(arg, "name", str(arg))


def _once(graph: Graph) -> int:
    """The bytes of the arguments and of the results."""
    single = Graph(single_assignment(graph.program), graph.tensors)
    known = inferred_specs(single)
    names = {item.name for item in graph.tensors}
    names |= {arg.name for arg in single.program.outputs if hasattr(arg, "name")}  # type: ignore[attr-defined]
    kept = [known[name] for name in names if name in known]
    return sum(math.prod(item.shape) * DTYPE_BYTES[item.dtype] for item in kept)


def variants_table(task: Task) -> str:
    """The graphs of a task as a table: arguments that are the same in all once, then the others."""
    forms = [
        {spec.name: f"{spec.dtype}{list(spec.shape)}" for spec in item.graph.tensors}
        for item in task.graphs
    ]
    names = list(dict.fromkeys(name for form in forms for name in form))
    same = [name for name in names if len({form.get(name) for form in forms}) == 1]
    lines = []
    if same and len(task.graphs) > 1:
        lines.append("in all graphs: " + ", ".join(f"{name} {forms[0][name]}" for name in same))
    varying = [name for name in names if name not in same] if len(task.graphs) > 1 else names
    lines.append("| graph | " + " | ".join(varying) + " |")
    lines.append("|" + "---|" * (len(varying) + 1))
    for number, form in enumerate(forms):
        cells = [form.get(name, "–") for name in varying]
        lines.append(f"| {number} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
