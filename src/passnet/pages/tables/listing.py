"""Graphs and tasks as readable lines: arguments, ops, and the shapes of results."""

from collections.abc import Iterator
from typing import Any

from passnet.core.terminal.counts import counted
from passnet.graph.spec import Graph
from passnet.graph.text.render import render_program, render_statement
from passnet.graph.values.fake import ValueShape, infer_shapes
from passnet.judge.task import Task


def list_graph(graph: Graph, where: str, shapes: bool = True) -> Iterator[str]:
    """Yield lines that show a graph; with shapes, which need torch, also the outputs of every op.

    Raises:
        GraphError: the shapes cannot be inferred.
    """
    values = infer_shapes(graph, where) if shapes else None
    yield (
        f"{counted(len(graph.program.params), 'argument')}, {counted(len(graph.program.ops), 'op')}"
    )
    for spec in graph.tensors:
        has_moments = spec.mean is not None and spec.std is not None
        moments = f"  mean {spec.mean:.3g}, std {spec.std:.3g}" if has_moments else ""
        yield f"  {spec.name}: {_form(spec.dtype, spec.shape)}{moments}"
    for number, op in enumerate(graph.program.ops):
        text = render_statement(op)
        if values is not None:
            text = f"{text}   # {', '.join(_shape(value) for value in values[number])}"
        yield f"{number:5}  {text}"
    yield f"returns {counted(len(graph.program.outputs), 'value')}"


def graph_facts(graph: Graph, name: str) -> dict[str, Any]:
    """Return a graph for JSON: its name, its program as text, and its arguments."""
    program = render_program(graph.program)
    return {"graph": name, "program": program, "arguments": graph.tensors}


def list_task(task: Task) -> Iterator[str]:
    """Yield lines that show a task: its first graph whole, and the arguments of all its graphs.

    Raises:
        GraphError: shapes cannot be inferred.
    """
    nets = {graph.source.net for graph in task.graphs if graph.source}
    yield f"{task.name}: {counted(len(task.graphs), 'graph')} of {counted(len(nets), 'net')}"
    first = task.graphs[0]
    yield f"{first.name}:"
    yield from list_graph(first.graph, first.name)
    yield "all graphs:"
    for graph in task.graphs:
        forms = ", ".join(_form(spec.dtype, spec.shape) for spec in graph.graph.tensors)
        yield f"  {graph.name}: {forms}"


def _form(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype}{list(shape)}"


def _shape(value: ValueShape) -> str:
    if value.shape is None or value.dtype is None:
        return "no tensor"
    return _form(value.dtype, value.shape)
