"""A graph as a picture: SVG with the arguments on top, ops below what they read, outputs last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from xml.sax.saxutils import escape

from passnet.graph.fake import infer_shapes
from passnet.graph.render import render_arg
from passnet.graph.spec import Graph, Op, Ref, op_refs, refs

NodeKind: TypeAlias = Literal["input", "op", "output", "bend"]

FONT = "ui-monospace, monospace"
CHARACTER_WIDTH = 6.7
"""Of a monospaced font of 11 pixels."""

BOLD_WIDTH = 7.2
LINE_HEIGHT = 14
PADDING = 8
BOLD = ' font-weight="bold"'
GAP_X = 18
GAP_Y = 30
MAX_CHARACTERS = 44
NUM_SWEEPS = 6
COLOURS: Mapping[NodeKind, tuple[str, str]] = {
    "input": ("#eef2f7", "#8aa0b8"),
    "op": ("#fff8e6", "#c9a227"),
    "output": ("#e9f5ec", "#5a9e6f"),
}
"""Fill and stroke."""


@dataclass(slots=True)
class _Node:
    """A box, or a bend of an edge that passes a row; `above` are those that its edges come from."""

    kind: NodeKind
    lines: tuple[str, ...]
    above: list[_Node] = field(default_factory=list)
    row: int = 0
    x: float = 0.0

    @property
    def width(self) -> float:
        """In pixels."""
        return max((len(line) for line in self.lines), default=0) * CHARACTER_WIDTH + 2 * PADDING

    @property
    def height(self) -> float:
        """In pixels."""
        return len(self.lines) * LINE_HEIGHT + PADDING if self.lines else 0


def draw(graph: Graph, title: str = "") -> str:
    """The SVG text of a picture of a graph, with shape and dtype of every value.

    Raises:
        GraphError: an op refuses the shapes it is given.
    """
    nodes = _nodes(graph)
    _set_rows(nodes)
    rows = _with_bends(nodes)
    _order(rows)
    _place(rows)
    return _svg(rows, title)


def _nodes(graph: Graph) -> list[_Node]:
    makers: dict[str, _Node] = {}
    nodes = []
    for spec in graph.tensors:
        node = _Node("input", (spec.name, f"{spec.dtype} {_shape(spec.shape)}"))
        makers[spec.name] = node
        nodes.append(node)
    for op, values in zip(graph.program.ops, infer_shapes(graph), strict=True):
        forms = [
            f"{value.dtype} {_shape(value.shape)}" for value in values if value.shape is not None
        ]
        lines = (op.target, _literals(op), *forms[:3], "..." if len(forms) > 3 else "")
        node = _Node("op", tuple(_short(line) for line in lines if line))
        node.above = [makers[name] for name in dict.fromkeys(op_refs(op)) if name in makers]
        if op.output is not None:
            makers[op.output] = node
        nodes.append(node)
    for arg in graph.program.outputs:
        above = [makers[name] for name in refs(arg) if name in makers]
        nodes.append(_Node("output", ("output",), above))
    return nodes


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "scalar"


def _literals(op: Op) -> str:
    """The arguments that are no values, in one line."""
    literals = [render_arg(arg) for arg in op.args if not isinstance(arg, Ref)]
    literals += [f"{name}={render_arg(arg)}" for name, arg in op.kwargs if not isinstance(arg, Ref)]
    return ", ".join(literals)


def _short(line: str) -> str:
    return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…"


def _set_rows(nodes: Sequence[_Node]) -> None:
    """Ops below all that they read; arguments right above their first reader."""
    for node in nodes:
        if node.kind != "input":
            node.row = 1 + max((source.row for source in node.above), default=0)
    last = max((node.row for node in nodes), default=0)
    first_reader: dict[int, int] = {}
    for node in nodes:
        if node.kind == "output":
            node.row = last
        for source in node.above:
            first_reader[id(source)] = min(first_reader.get(id(source), last), node.row)
    for node in nodes:
        if node.kind == "input":
            node.row = first_reader.get(id(node), 1) - 1


def _with_bends(nodes: Sequence[_Node]) -> list[list[_Node]]:
    """The nodes row by row; an edge over several rows gets a bend in each."""
    rows: dict[int, list[_Node]] = defaultdict(list)
    bends: dict[tuple[int, int], _Node] = {}
    for node in nodes:
        rows[node.row].append(node)
    for node in nodes:
        above = []
        for source in node.above:
            end = source
            for row in range(source.row + 1, node.row):
                if (id(source), row) not in bends:
                    bends[id(source), row] = _Node("bend", (), [end], row)
                    rows[row].append(bends[id(source), row])
                end = bends[id(source), row]
            above.append(end)
        node.above = above
    return [rows[row] for row in sorted(rows)]


def _order(rows: list[list[_Node]]) -> None:
    """Neighbours near what they are joined to: means of ranks, downwards and upwards in turn."""
    below: dict[int, list[_Node]] = defaultdict(list)
    for row in rows:
        for node in row:
            for source in node.above:
                below[id(source)].append(node)
    for sweep in range(NUM_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            ranks = {}
            for rank, node in enumerate(row):
                joined = node.above if down else below[id(node)]
                ranks[id(node)] = _mean_x(joined) if joined else rank
            row.sort(key=lambda node: ranks[id(node)])
            for rank, node in enumerate(row):
                node.x = rank - (len(row) - 1) / 2


def _mean_x(nodes: Sequence[_Node]) -> float:
    return sum(node.x for node in nodes) / len(nodes)


def _place(rows: list[list[_Node]]) -> None:
    """Rows side by side without overlap, each near the middle of what it is joined to."""
    for row in rows:
        x = 0.0
        for node in row:
            node.x = x + node.width / 2
            x += node.width + GAP_X
    for row in rows[1:]:
        shifts = [_mean_x(node.above) - node.x for node in row if node.above]
        shift = sum(shifts) / len(shifts) if shifts else 0.0
        for node in row:
            node.x += shift
    x = min(node.x - node.width / 2 for row in rows for node in row)
    for row in rows:
        for node in row:
            node.x += PADDING - x


def _svg(rows: Sequence[Sequence[_Node]], title: str) -> str:
    top = 28.0 if title else float(PADDING)
    tops = {}
    for row in rows:
        height = max(node.height for node in row)
        tops |= {id(node): top + (height - node.height) / 2 for node in row}
        top += height + GAP_Y
    nodes = [node for row in rows for node in row]
    width = max(node.x + node.width / 2 for node in nodes) + PADDING
    width = max(width, len(title) * BOLD_WIDTH + 2 * PADDING)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{top - 20:.0f}" '
        f'font-family="{FONT}" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    if title:
        parts.append(f'<text x="{PADDING}" y="18"{BOLD}>{escape(title)}</text>')
    parts += [_edge(source, node, tops) for node in nodes for source in node.above]
    parts += [_box(node, tops[id(node)]) for node in nodes if node.lines]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _edge(start: _Node, end: _Node, tops: Mapping[int, float]) -> str:
    y1, y2 = tops[id(start)] + start.height, tops[id(end)]
    middle = (y1 + y2) / 2
    path = f"M{start.x:.1f} {y1:.1f}C{start.x:.1f} {middle:.1f} {end.x:.1f} {middle:.1f}"
    return f'<path d="{path} {end.x:.1f} {y2:.1f}" fill="none" stroke="#777"/>'


def _box(node: _Node, top: float) -> str:
    fill, stroke = COLOURS[node.kind]
    texts = "".join(
        f'<text x="{node.x:.1f}" y="{top + 13 + index * LINE_HEIGHT:.1f}" text-anchor="middle"'
        f"{'' if index else BOLD}>{escape(line)}</text>"
        for index, line in enumerate(node.lines)
    )
    return (
        f'<rect x="{node.x - node.width / 2:.1f}" y="{top:.1f}" width="{node.width:.1f}" '
        f'height="{node.height:.1f}" rx="4" fill="{fill}" stroke="{stroke}"/>{texts}'
    )
