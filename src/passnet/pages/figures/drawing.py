"""A graph as an SVG picture: arguments on top, ops below their inputs, outputs last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from passnet.graph.spec import Graph, Op, Ref, TensorSpec, op_refs, refs
from passnet.graph.text.render import render_arg
from passnet.graph.values.fake import ValueShape, infer_shapes
from passnet.pages.figures.layout import (
    BOLD_WIDTH,
    LINE_HEIGHT,
    PADDING,
    Box,
    BoxKind,
    Placed,
    has_dot,
    place_by_dot,
    place_in_rows,
)

FONT = "ui-monospace, monospace"
BOLD = ' font-weight="bold"'
TITLE_HEIGHT = 22
MAX_CHARACTERS = 44
MAX_ARGUMENTS = 24
"""A graph with more arguments is drawn without a box for every one."""

COLOURS: Mapping[BoxKind, tuple[str, str]] = {
    "input": ("#eef2f7", "#8aa0b8"),
    "op": ("#fff8e6", "#c9a227"),
    "output": ("#e9f5ec", "#5a9e6f"),
}
"""Fill and stroke."""

HEAT = ((255, 255, 255), (230, 110, 20))
"""The fill of an op that takes no time, and of the op that takes most."""

FRAME = ("#f2f0fa", "#7b68b5")
"""Fill and stroke of a fused kernel."""


@dataclass(frozen=True, slots=True)
class OpNote:
    """Facts about an op besides the graph; None where they are not known."""

    ms: float | None = None
    """Milliseconds that it takes."""

    kernel: int | None = None
    """The number of the kernel that it is part of."""


def draw(graph: Graph, title: str = "", notes: Sequence[OpNote] = ()) -> str:
    """Return a picture of a graph as SVG, with shape and dtype of every value.

    Graphviz lays it out if it is installed; else boxes lie in plain rows.

    Args:
        graph: the graph.
        title: a line above.
        notes: times and kernels of the ops; a note for each op, or none at all.

    Raises:
        GraphError: an op refuses its shapes.
        MeasureError: Graphviz fails.
        ValueError: the number of notes is not that of the ops.
    """
    if notes and len(notes) != len(graph.program.ops):
        raise ValueError(f"{len(notes)} notes for {len(graph.program.ops)} ops")
    boxes = _boxes(graph, notes)
    placed = place_by_dot(boxes) if has_dot() else place_in_rows(boxes)
    return _svg(boxes, placed, title)


def _boxes(graph: Graph, notes: Sequence[OpNote]) -> list[Box]:
    folded = _folded_arguments(graph)
    makers = {
        spec.name: Box("input", (spec.name, _signature(spec)))
        for spec in graph.tensors
        if spec.name not in folded
    }
    boxes = list(makers.values())
    all_notes = notes or [OpNote()] * len(graph.program.ops)
    times_ms = [note.ms for note in all_notes if note.ms is not None]
    most_ms, total_ms = max(times_ms, default=0.0), sum(times_ms)
    for op, values, note in zip(graph.program.ops, infer_shapes(graph), all_notes, strict=True):
        outputs = [_signature(value) for value in values if value.shape is not None]
        lines = [op.target, _literals(op), *outputs[:3], "..." if len(outputs) > 3 else ""]
        weights = [folded[name] for name in dict.fromkeys(op_refs(op)) if name in folded]
        lines += [f"reads {count} × {weight}" for weight, count in Counter(weights).items()]
        if note.ms is not None and total_ms:
            lines.append(f"{1e3 * note.ms:.1f} µs, {100 * note.ms / total_ms:.0f} %")
        box = Box("op", tuple(_short(line) for line in lines if line), group=note.kernel)
        if note.ms is not None and most_ms:
            box.heat = note.ms / most_ms
        box.above = [makers[name] for name in dict.fromkeys(op_refs(op)) if name in makers]
        if op.output is not None:
            makers[op.output] = box
        boxes.append(box)
    for arg in graph.program.outputs:
        above = [makers[name] for name in refs(arg) if name in makers]
        boxes.append(Box("output", ("output",), above))
    return boxes


def _folded_arguments(graph: Graph) -> dict[str, str]:
    """Return the arguments without a box, with their dtype and shape.

    In a graph with many arguments, a weight that only one op reads is a line in that op's box.
    """
    if len(graph.tensors) <= MAX_ARGUMENTS:
        return {}
    readers = Counter(name for op in graph.program.ops for name in dict.fromkeys(op_refs(op)))
    readers.update(name for arg in graph.program.outputs for name in refs(arg))
    return {
        spec.name: _signature(spec)
        for spec in graph.tensors
        if readers[spec.name] == 1 and spec.role == "weight" and spec is not graph.tensors[0]
    }


def _signature(tensor: TensorSpec | ValueShape) -> str:
    return f"{tensor.dtype} {'×'.join(map(str, tensor.shape or ())) or 'scalar'}"


def _literals(op: Op) -> str:
    literals = [render_arg(arg) for arg in op.args if not isinstance(arg, Ref)]
    literals += [f"{name}={render_arg(arg)}" for name, arg in op.kwargs if not isinstance(arg, Ref)]
    return ", ".join(literals)


def _short(line: str) -> str:
    return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…"


def _svg(boxes: Sequence[Box], placed: Placed, title: str) -> str:
    shift = TITLE_HEIGHT if title else 0
    width = max(placed.width, len(title) * BOLD_WIDTH + 2 * PADDING)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{placed.height + shift:.0f}" font-family="{FONT}" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    if title:
        parts.append(f'<text x="{PADDING}" y="18"{BOLD}>{escape(title)}</text>')
    parts.append(f'<g transform="translate(0 {shift})">')
    for number, frame in sorted(placed.frames.items()):
        parts.append(
            f'<g class="kernel"><path d="M{frame.left:.1f} {frame.top:.1f}h{frame.width:.1f}'
            f'v{frame.height:.1f}h{-frame.width:.1f}z" fill="{FRAME[0]}" stroke="{FRAME[1]}" '
            f'stroke-dasharray="4 3"/><text x="{frame.left + 5:.1f}" y="{frame.top + 10:.1f}" '
            f'font-size="9" fill="{FRAME[1]}">kernel {number + 1}</text></g>'
        )
    parts += [f'<path d="{path}" fill="none" stroke="#777"/>' for path in placed.paths]
    parts += map(_box, boxes)
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def _box(box: Box) -> str:
    fill, stroke = COLOURS[box.kind]
    if box.heat is not None:
        fill = _heat(box.heat)
    texts = "".join(
        f'<text x="{box.x:.1f}" y="{box.top + 13 + index * LINE_HEIGHT:.1f}" text-anchor="middle"'
        f"{'' if index else BOLD}>{escape(line)}</text>"
        for index, line in enumerate(box.lines)
    )
    return (
        f'<rect x="{box.x - box.width / 2:.1f}" y="{box.top:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="4" fill="{fill}" stroke="{stroke}"/>{texts}'
    )


def _heat(share: float) -> str:
    """Return a colour between the two of `HEAT`."""
    parts = (round(cold + (hot - cold) * share) for cold, hot in zip(*HEAT, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)
