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
    made: dict[str, _Node] = {}
    nodes = []
    for item in graph.tensors:
        node = _Node("input", (item.name, f"{item.dtype} {_shape(item.shape)}"))
        made[item.name] = node
        nodes.append(node)
    for op, shapes in zip(graph.program.ops, infer_shapes(graph), strict=True):
        known = [f"{one.dtype} {_shape(one.shape)}" for one in shapes if one.shape is not None]
        lines = (op.target, *_literals(op), *known[:3], *(["..."] if len(known) > 3 else []))
        node = _Node("op", tuple(_short(line) for line in lines))
        node.above = [made[name] for name in dict.fromkeys(op_refs(op)) if name in made]
        if op.output is not None:
            made[op.output] = node
        nodes.append(node)
    for arg in graph.program.outputs:
        node = _Node("output", ("output",), [made[name] for name in refs(arg) if name in made])
        nodes.append(node)
    return nodes


def _shape(shape: Sequence[int] | None) -> str:
    return "×".join(str(size) for size in shape or ()) or "scalar"


def _literals(op: Op) -> list[str]:
    """The arguments that are no values, in one line."""
    given = [render_arg(arg) for arg in op.args if not isinstance(arg, Ref)]
    given += [f"{name}={render_arg(arg)}" for name, arg in op.kwargs if not isinstance(arg, Ref)]
    return [", ".join(given)] if given else []


def _short(line: str) -> str:
    return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…"


def _set_rows(nodes: Sequence[_Node]) -> None:
    """Ops below all that they read; arguments right above their first reader."""
    below: dict[int, int] = {}
    for node in nodes:
        if node.kind != "input":
            node.row = 1 + max((item.row for item in node.above), default=0)
    last = max((node.row for node in nodes), default=0)
    for node in nodes:
        if node.kind == "output":
            node.row = last
        for item in node.above:
            below[id(item)] = min(below.get(id(item), last), node.row)
    for node in nodes:
        if node.kind == "input":
            node.row = below.get(id(node), 1) - 1


def _with_bends(nodes: Sequence[_Node]) -> list[list[_Node]]:
    """The nodes row by row; an edge over several rows gets a bend in each."""
    rows: dict[int, list[_Node]] = defaultdict(list)
    bends: dict[tuple[int, int], _Node] = {}
    for node in nodes:
        rows[node.row].append(node)
    for node in nodes:
        above = []
        for item in node.above:
            for row in range(item.row + 1, node.row):
                key = (id(item), row)
                if key not in bends:
                    before = item if row == item.row + 1 else bends[id(item), row - 1]
                    bends[key] = _Node("bend", (), [before], row)
                    rows[row].append(bends[key])
            above.append(bends.get((id(item), node.row - 1), item))
        node.above = above
    return [rows[row] for row in sorted(rows)]


def _order(rows: list[list[_Node]]) -> None:
    """Neighbours near what they are joined to: means of places, downwards and upwards in turn."""
    below: dict[int, list[_Node]] = defaultdict(list)
    for row in rows:
        for node in row:
            for item in node.above:
                below[id(item)].append(node)
    for sweep in range(NUM_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            keys = {}
            for place, node in enumerate(row):
                joined = node.above if down else below[id(node)]
                keys[id(node)] = sum(item.x for item in joined) / len(joined) if joined else place
            row.sort(key=lambda node: keys[id(node)])
            for place, node in enumerate(row):
                node.x = place - (len(row) - 1) / 2


def _place(rows: list[list[_Node]]) -> None:
    """Rows side by side without overlap, each near the middle of what it is joined to."""
    for row in rows:
        left = 0.0
        for node in row:
            node.x = left + node.width / 2
            left += node.width + GAP_X
    for row in rows[1:]:
        shifts = [
            sum(item.x for item in node.above) / len(node.above) - node.x
            for node in row
            if node.above
        ]
        shift = sum(shifts) / len(shifts) if shifts else 0.0
        for node in row:
            node.x += shift
    left = min(node.x - node.width / 2 for row in rows for node in row)
    for row in rows:
        for node in row:
            node.x += PADDING - left


def _svg(rows: Sequence[Sequence[_Node]], title: str) -> str:
    top = 28.0 if title else float(PADDING)
    tops = {}
    for row in rows:
        height = max(node.height for node in row)
        for node in row:
            tops[id(node)] = top + (height - node.height) / 2
        top += height + GAP_Y
    width = max(node.x + node.width / 2 for row in rows for node in row) + PADDING
    width = max(width, len(title) * BOLD_WIDTH + 2 * PADDING)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{top - 20:.0f}" '
        f'font-family="{FONT}" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    if title:
        parts.append(f'<text x="{PADDING}" y="18" font-weight="bold">{escape(title)}</text>')
    nodes = [node for row in rows for node in row]
    parts += [_edge(item, node, tops) for node in nodes for item in node.above]
    parts += [_box(node, tops[id(node)]) for node in nodes if node.lines]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _edge(start: _Node, end: _Node, tops: Mapping[int, float]) -> str:
    y1, y2 = tops[id(start)] + start.height, tops[id(end)]
    middle = (y1 + y2) / 2
    path = f"M{start.x:.1f} {y1:.1f}C{start.x:.1f} {middle:.1f} {end.x:.1f} {middle:.1f}"
    return f'<path d="{path} {end.x:.1f} {y2:.1f}" fill="none" stroke="#777"/>'


def _box(node: _Node, top: float) -> str:
    fill, stroke = COLOURS[node.kind]
    left = node.x - node.width / 2
    weights = [' font-weight="bold"', *[""] * (len(node.lines) - 1)]
    texts = "".join(
        f'<text x="{node.x:.1f}" y="{top + 13 + place * LINE_HEIGHT:.1f}" text-anchor="middle"'
        f"{weight}>{escape(line)}</text>"
        for place, (line, weight) in enumerate(zip(node.lines, weights, strict=True))
    )
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{node.width:.1f}" height="{node.height:.1f}" '
        f'rx="4" fill="{fill}" stroke="{stroke}"/>{texts}'
    )
