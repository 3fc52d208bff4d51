"""The graphs of a task as text: every op with shapes, strides, bytes, least time, and kernel."""

import math
from collections.abc import Mapping, Sequence
from functools import cache

from passnet.data.mine.cut import Parent, cut_range, inferred_specs, parent_of, single_assignment
from passnet.errors import CutError, FusionError, GraphError
from passnet.graph.spec import Graph, Ref, TensorSpec, op_refs
from passnet.graph.text.meta import DTYPE_BYTES
from passnet.graph.text.render import render_statement
from passnet.graph.values.cost import cost
from passnet.graph.values.effects import may_alias
from passnet.graph.values.fake import ValueShape, infer_shapes
from passnet.inductor.fusion import fusion_plan
from passnet.judge.processes.machine_rates import machine_rates
from passnet.judge.task import Task, TaskGraph


def graph_text(graph: TaskGraph, number: int, total: int) -> str:
    """Return a graph of a task as text for an author, or raise GraphError without its shapes."""
    program, tensors = graph.graph.program, graph.graph.tensors
    single = Graph(single_assignment(program), tensors)
    specs = inferred_specs(single)
    results, sizes = infer_shapes(single), _sizes(specs)
    costs = _op_costs(single, specs, results)
    try:
        kernels: Sequence[frozenset[int]] = [kernel.ops for kernel in fusion_plan(single).kernels]
        plan = f"Inductor would make {len(kernels)} kernels"
    except FusionError:
        kernels, plan = (), "Inductor cannot lower it"
    lines = [
        f"graph {number} of {total}: {len(tensors)} arguments, {len(single.program.ops)} ops",
        *(f"  {spec.name}: {_shape_text(spec)}" for spec in tensors),
        "op | KiB | floor us | Inductor's kernel | statement   # makes",
    ]
    for index, (op, (num_bytes, time_us)) in enumerate(zip(single.program.ops, costs, strict=True)):
        own = ",".join(str(kernel) for kernel, ops in enumerate(kernels) if index in ops)
        makes = ", ".join(map(_shape_text, results[index]))
        lines.append(
            f"{index} | {num_bytes / 1024:.1f} | {time_us:.1f} | {own or '–'} | "
            f"{render_statement(op)}   # {makes}"
        )
    lines.append(f"returns {', '.join(getattr(arg, 'name', str(arg)) for arg in program.outputs)}")
    op_by_op_us = sum(time_us for _, time_us in costs)
    lines.append(
        f"{plan}; op by op at least {op_by_op_us:.1f} us, in one kernel at least "
        f"{_one_kernel_us(single, sizes):.1f} us to read the arguments and write the results"
    )
    return "\n".join(lines)


def one_kernel_us(graph: Graph) -> float:
    """Return the least microseconds to read a graph's arguments and write its results."""
    single = Graph(single_assignment(graph.program), graph.tensors)
    return _one_kernel_us(single, _sizes(inferred_specs(single)))


def op_times_us(graph: Graph) -> list[float]:
    """Return the least microseconds of each op alone, on one thread of this machine."""
    single = Graph(single_assignment(graph.program), graph.tensors)
    specs = inferred_specs(single)
    return [time_us for _, time_us in _op_costs(single, specs, infer_shapes(single))]


def _op_costs(
    single: Graph, specs: Mapping[str, TensorSpec], results: Sequence[Sequence[ValueShape]]
) -> list[tuple[int, float]]:
    parent, sizes = parent_of(single.program, specs), _sizes(specs)
    operations_per_us = machine_rates().products["float32"] / 1e6
    costs = []
    for index, op in enumerate(single.program.ops):
        num_bytes = 0
        if not may_alias(op.target):
            num_bytes = sum(sizes.get(name, 0) for name in set(op_refs(op)))
            num_bytes += sum(map(_num_bytes, results[index]))
        arithmetic_us = _num_flops(parent, index) / operations_per_us
        costs.append((num_bytes, max(num_bytes / bytes_per_us(), arithmetic_us)))
    return costs


def _sizes(specs: Mapping[str, TensorSpec]) -> dict[str, int]:
    return {name: math.prod(spec.shape) * DTYPE_BYTES[spec.dtype] for name, spec in specs.items()}


def _one_kernel_us(single: Graph, sizes: Mapping[str, int]) -> float:
    ends = {spec.name for spec in single.tensors}
    ends |= {arg.name for arg in single.program.outputs if isinstance(arg, Ref)}
    return sum(sizes.get(name, 0) for name in ends) / bytes_per_us()


def _num_flops(parent: Parent, number: int) -> int:
    try:
        return cost(cut_range(parent, number, number + 1)).num_flops
    except (CutError, GraphError):
        return 0


def _num_bytes(value: ValueShape) -> int:
    if value.shape is None or value.dtype is None or -1 in value.shape:
        return 0
    return math.prod(value.shape) * DTYPE_BYTES.get(value.dtype, 1)


def _shape_text(value: ValueShape | TensorSpec) -> str:
    if value.shape is None:
        return "no tensor"
    stride = value.stride if isinstance(value, ValueShape) else None  # arguments are contiguous
    strides = f" strides {list(stride)}" if stride else ""
    return f"{value.dtype}{list(value.shape)}{strides}"


@cache
def bytes_per_us() -> float:
    """Return the bytes that this machine writes in a microsecond on one thread, at best."""
    _, written_per_s = machine_rates().of_memory(32 * 2**20)
    return written_per_s / 1e6


def variants_table(task: Task) -> str:
    """Return the graphs of a task as a table: equal arguments once, then the others."""
    graphs = [
        {spec.name: _shape_text(spec) for spec in graph.graph.tensors} for graph in task.graphs
    ]
    varying = list(dict.fromkeys(name for shapes in graphs for name in shapes))
    lines = []
    if len(graphs) > 1:
        same = [name for name in varying if len({shapes.get(name) for shapes in graphs}) == 1]
        varying = [name for name in varying if name not in same]
        if same:
            lines.append(
                "in all graphs: " + ", ".join(f"{name} {graphs[0][name]}" for name in same)
            )
    lines.append("| graph | " + " | ".join(varying) + " |")
    lines.append("|" + "---|" * (len(varying) + 1))
    for number, shapes in enumerate(graphs):
        cells = [shapes.get(name, "–") for name in varying]
        lines.append(f"| {number} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
