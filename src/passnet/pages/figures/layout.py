"""The layout of a drawn graph: boxes placed by Graphviz, or in plain rows without it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from passnet.errors import MeasureError

BoxKind: TypeAlias = Literal["input", "op", "output"]

CHARACTER_WIDTH = 6.7
"""Pixels of a character of a monospaced font of 11 pixels."""

BOLD_WIDTH = 7.2
LINE_HEIGHT = 14
PADDING = 8
GAP_X, GAP_Y = 18, 30
"""Pixels between boxes of a row, and between rows."""

LANE_GAP = 4
"""Pixels between long edges that run side by side."""

ABSENT = (
    "Graphviz is not installed, so graphs are laid out in plain rows; install it with "
    "`apt install graphviz`, or as https://graphviz.org/download says"
)
POINTS = 72.0
MAX_SECONDS = 60.0


@dataclass(slots=True)
class Box:
    """A box of a drawn graph; a layout sets `row`, `x` (its middle) and `top`, in pixels."""

    kind: BoxKind
    lines: tuple[str, ...]
    above: list[Box] = field(default_factory=list)
    """Boxes that its edges come from."""

    group: int | None = None
    """The number of the kernel that it is part of, if any."""

    heat: float | None = None
    """Its time, from 0 to 1 for the op that takes longest."""

    row: int = 0
    x: float = 0.0
    top: float = 0.0

    @property
    def width(self) -> float:
        """Its width in pixels."""
        title = len(self.lines[0]) * BOLD_WIDTH
        return max(title, *(len(line) * CHARACTER_WIDTH for line in self.lines)) + 2 * PADDING

    @property
    def height(self) -> float:
        """Its height in pixels."""
        return len(self.lines) * LINE_HEIGHT + PADDING


@dataclass(frozen=True, slots=True)
class Frame:
    """A rectangle around the boxes of a group, in pixels."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Placed:
    """The paths of edges, as in SVG, frames by group, and the size of the picture, in pixels."""

    paths: tuple[str, ...]
    frames: Mapping[int, Frame]
    width: float
    height: float


def place_in_rows(boxes: Sequence[Box]) -> Placed:
    """Place boxes in rows, each below the boxes that it reads; groups get no frames.

    An edge that passes rows runs down a lane to the right of their boxes.
    """
    rows = _rows(boxes)
    top = float(PADDING)
    for row in rows:
        height = max(box.height for box in row)
        row.sort(key=lambda box: _mean_x(box.above) if box.above else float("inf"))
        x = 0.0
        for box in row:
            box.x, box.top = x + box.width / 2, top + (height - box.height) / 2
            x += box.width + GAP_X
        joined = [box for box in row if box.above]
        shifts = [_mean_x(box.above) - box.x for box in joined] or [(GAP_X - x) / 2]
        for box in row:
            box.x += sum(shifts) / len(shifts)
        top += height + GAP_Y
    left = min(box.x - box.width / 2 for box in boxes)
    for box in boxes:
        box.x += PADDING - left
    rights = [max(box.x + box.width / 2 for box in row) for row in rows]
    paths, width, num_lanes = [], max(rights), 0
    for start, end in ((source, box) for box in boxes for source in box.above):
        passed = rights[start.row + 1 : end.row]
        lane_x = max(passed, default=0.0) + GAP_X + num_lanes * LANE_GAP
        paths.append(_edge(start, end, lane_x))
        if passed:
            num_lanes += 1
            width = max(width, lane_x)
    return Placed(tuple(paths), {}, width + PADDING, top - GAP_Y + PADDING)


def _rows(boxes: Sequence[Box]) -> list[list[Box]]:
    """Return boxes in rows: ops below all that they read, arguments above their first reader."""
    for box in boxes:
        if box.kind != "input":
            box.row = 1 + max((source.row for source in box.above), default=0)
    last = max(box.row for box in boxes)
    first_reader: dict[int, int] = {}
    for box in boxes:
        if box.kind == "output":
            box.row = last
        for source in box.above:
            first_reader[id(source)] = min(first_reader.get(id(source), last), box.row)
    rows: dict[int, list[Box]] = defaultdict(list)
    for box in boxes:
        if box.kind == "input":
            box.row = first_reader.get(id(box), 1) - 1
        rows[box.row].append(box)
    return [rows[row] for row in sorted(rows)]


def _mean_x(boxes: Sequence[Box]) -> float:
    return sum(box.x for box in boxes) / len(boxes)


def _edge(start: Box, end: Box, lane_x: float) -> str:
    """Return the path of an edge; one that passes rows runs down a lane to their right."""
    top, bottom, half = start.top + start.height, end.top, GAP_Y / 2
    if end.row - start.row <= 1:
        half = (bottom - top) / 2
        bends = f"{start.x:.1f} {top + half:.1f} "
    else:
        bends = (
            f"{start.x:.1f} {top + half:.1f} {lane_x:.1f} {top + half:.1f} {lane_x:.1f} "
            f"{top + GAP_Y:.1f}V{bottom - GAP_Y:.1f}C{lane_x:.1f} {bottom - half:.1f} "
        )
    return (
        f"M{start.x:.1f} {top:.1f}C{bends}{end.x:.1f} {bottom - half:.1f} {end.x:.1f} {bottom:.1f}"
    )


def has_dot() -> bool:
    """Return whether Graphviz is installed."""
    return shutil.which("dot") is not None


def place_by_dot(boxes: Sequence[Box]) -> Placed:
    """Place boxes by Graphviz, with a frame around each group.

    Raises:
        MeasureError: Graphviz fails, or takes more than `MAX_SECONDS`.
    """
    try:
        text = subprocess.run(
            ["dot", "-Tjson0"],
            input=_dot_source(boxes),
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError) as cause:
        raise MeasureError(f"Graphviz cannot lay out a graph: {cause}") from cause
    return _placed(boxes, json.loads(text))


def _dot_source(boxes: Sequence[Box]) -> str:
    """Return the graph for Graphviz: boxes by their numbers and sizes, without their texts."""
    numbers = {id(box): number for number, box in enumerate(boxes)}
    lines = [
        "digraph {",
        "graph [ranksep=0.24, nodesep=0.2, splines=spline, newrank=true, fontsize=9]",
        'node [shape=box, fixedsize=true, label=""]',
        "edge [arrowhead=none]",
    ]
    groups: dict[int, list[int]] = defaultdict(list)
    for number, box in enumerate(boxes):
        size = f"width={box.width / POINTS:.3f}, height={box.height / POINTS:.3f}"
        lines.append(f"n{number} [{size}]")
        if box.group is not None:
            groups[box.group].append(number)
        lines += [f"n{numbers[id(source)]} -> n{number}" for source in box.above]
    for group, members in groups.items():
        names = "; ".join(f"n{number}" for number in members)
        # the label only reserves room for that of the picture
        lines.append(f'subgraph cluster_{group} {{ margin=7; label="kernel"; {names} }}')
    return "\n".join([*lines, "}"])


def _placed(boxes: Sequence[Box], layout: dict[str, Any]) -> Placed:
    """Read a layout of Graphviz, whose y runs upwards from the bottom."""
    _, _, width, height = map(float, layout["bb"].split(","))
    frames: dict[int, Frame] = {}
    for part in layout.get("objects", ()):
        name = part["name"]
        if name.startswith("cluster_") and "bb" in part:
            left, bottom, right, top = map(float, part["bb"].split(","))
            frames[int(name.removeprefix("cluster_"))] = Frame(
                left + PADDING, height - top + PADDING, right - left, top - bottom
            )
        elif "pos" in part:
            box = boxes[int(name.removeprefix("n"))]
            x, y = map(float, part["pos"].split(","))
            box.x = x + PADDING
            box.top = height - y - box.height / 2 + PADDING
    paths = tuple(_spline(edge["pos"], height) for edge in layout.get("edges", ()) if "pos" in edge)
    return Placed(paths, frames, width + 2 * PADDING, height + 2 * PADDING)


def _spline(spline: str, height: float) -> str:
    """Return a spline of Graphviz as a path of SVG: a point, then curves of three points each."""
    pairs = [pair.split(",") for pair in spline.split() if not pair.startswith(("s,", "e,"))]
    texts = [f"{float(x) + PADDING:.1f} {height - float(y) + PADDING:.1f}" for x, y in pairs]
    return f"M{texts[0]}C{' '.join(texts[1:])}"
