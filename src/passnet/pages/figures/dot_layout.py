"""Boxes placed by Graphviz, whose program `dot` lays out graphs in layers with few crossings."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from passnet.errors import MeasureError
from passnet.pages.figures.boxes import PADDING, Box, Frame, Placed

PROGRAM = "dot"
ABSENT = (
    "Graphviz is not installed, so graphs are laid out in plain rows; install it with "
    "`apt install graphviz`, or as https://graphviz.org/download says"
)
POINTS = 72.0
MAX_SECONDS = 60.0


def has_dot() -> bool:
    """Whether Graphviz is installed."""
    return shutil.which(PROGRAM) is not None


def place_by_dot(boxes: Sequence[Box]) -> Placed:
    """Place boxes by Graphviz, those of a group in a frame of their own.

    Raises:
        MeasureError: it fails, or takes more than `MAX_SECONDS`.
    """
    numbers = {id(box): number for number, box in enumerate(boxes)}
    try:
        done = subprocess.run(
            [PROGRAM, "-Tjson0"],
            input=_source(boxes, numbers),
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as cause:
        raise MeasureError(f"Graphviz does not lay out a graph: {cause}") from cause
    return _placed(boxes, json.loads(done.stdout))


def _source(boxes: Sequence[Box], numbers: dict[int, int]) -> str:
    """The graph for Graphviz: boxes by their numbers and sizes, without any text of theirs."""
    lines = [
        "digraph {",
        "graph [ranksep=0.24, nodesep=0.2, splines=spline, newrank=true, fontsize=9]",
        'node [shape=box, fixedsize=true, label=""]',
        "edge [arrowhead=none]",
    ]
    groups: dict[int, list[int]] = defaultdict(list)
    for number, box in enumerate(boxes):
        lines.append(
            f"n{number} [width={box.width / POINTS:.3f}, height={box.height / POINTS:.3f}]"
        )
        if box.group is not None:
            groups[box.group].append(number)
        for source in box.above:
            lines.append(f"n{numbers[id(source)]} -> n{number}")
    for group, members in groups.items():
        names = "; ".join(f"n{number}" for number in members)
        # a label, of which only the room is used
        lines.append(f'subgraph cluster_{group} {{ margin=7; label="kernel"; {names} }}')
    return "\n".join([*lines, "}"])


def _placed(boxes: Sequence[Box], layout: dict[str, Any]) -> Placed:
    """What Graphviz says, whose y runs upwards from the bottom."""
    _, _, width, height = map(float, layout["bb"].split(","))
    frames: dict[int, Frame] = {}
    for item in layout.get("objects", ()):
        name = item["name"]
        if name.startswith("cluster_") and "bb" in item:
            left, bottom, right, top = map(float, item["bb"].split(","))
            frames[int(name.removeprefix("cluster_"))] = Frame(
                left + PADDING, height - top + PADDING, right - left, top - bottom
            )
        elif "pos" in item:
            box = boxes[int(name.removeprefix("n"))]
            x, y = map(float, item["pos"].split(","))
            box.x = x + PADDING
            box.top = height - y - box.height / 2 + PADDING
    paths = tuple(_path(edge["pos"], height) for edge in layout.get("edges", ()) if "pos" in edge)
    return Placed(paths, frames, width + 2 * PADDING, height + 2 * PADDING)


def _path(spline: str, height: float) -> str:
    """A spline of Graphviz as a path of SVG: a point, then cubic curves of three points each."""
    points = [
        tuple(map(float, pair.split(",")))
        for pair in spline.split()
        if not pair.startswith(("s,", "e,"))
    ]
    texts = [f"{x + PADDING:.1f} {height - y + PADDING:.1f}" for x, y in points]
    return f"M{texts[0]}C{' '.join(texts[1:])}"
