"""A plain layout of boxes in rows, for where Graphviz is not installed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from passnet.pages.figures.boxes import PADDING, Box, Placed

GAP_X = 18
GAP_Y = 30
NUM_SWEEPS = 6


def place_in_rows(boxes: Sequence[Box]) -> Placed:
    """Place boxes in rows: each below all that it reads. Groups get no frames."""
    _set_rows(boxes)
    rows = _with_bends(boxes)
    _order(rows)
    _place(rows)
    top = float(PADDING)
    for row in rows:
        height = max(box.height for box in row)
        for box in row:
            box.top = top + (height - box.height) / 2
        top += height + GAP_Y
    everything = [box for row in rows for box in row]
    paths = [_path(source, box) for box in everything for source in box.above]
    width = max(box.x + box.width / 2 for box in everything) + PADDING
    return Placed(tuple(paths), {}, width, top - GAP_Y + PADDING)


def _path(start: Box, end: Box) -> str:
    y1, y2 = start.top + start.height, end.top
    middle = (y1 + y2) / 2
    path = f"M{start.x:.1f} {y1:.1f}C{start.x:.1f} {middle:.1f} {end.x:.1f} {middle:.1f}"
    return f"{path} {end.x:.1f} {y2:.1f}"


def _set_rows(boxes: Sequence[Box]) -> None:
    """Ops below all that they read; arguments right above their first reader."""
    for box in boxes:
        if box.kind != "input":
            box.row = 1 + max((source.row for source in box.above), default=0)
    last = max((box.row for box in boxes), default=0)
    first_reader: dict[int, int] = {}
    for box in boxes:
        if box.kind == "output":
            box.row = last
        for source in box.above:
            first_reader[id(source)] = min(first_reader.get(id(source), last), box.row)
    for box in boxes:
        if box.kind == "input":
            box.row = first_reader.get(id(box), 1) - 1


def _with_bends(boxes: Sequence[Box]) -> list[list[Box]]:
    """The boxes row by row; an edge over several rows gets a bend in each."""
    rows: dict[int, list[Box]] = defaultdict(list)
    bends: dict[tuple[int, int], Box] = {}
    for box in boxes:
        rows[box.row].append(box)
    for box in boxes:
        above = []
        for source in box.above:
            end = source
            for row in range(source.row + 1, box.row):
                if (id(source), row) not in bends:
                    bends[id(source), row] = Box("bend", (), [end], row)
                    rows[row].append(bends[id(source), row])
                end = bends[id(source), row]
            above.append(end)
        box.above = above
    return [rows[row] for row in sorted(rows)]


def _order(rows: list[list[Box]]) -> None:
    """Neighbours near what they are joined to: means of ranks, downwards and upwards in turn."""
    below: dict[int, list[Box]] = defaultdict(list)
    for row in rows:
        for box in row:
            for source in box.above:
                below[id(source)].append(box)
    for sweep in range(NUM_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            ranks = {}
            for rank, box in enumerate(row):
                joined = box.above if down else below[id(box)]
                ranks[id(box)] = _mean_x(joined) if joined else rank
            row.sort(key=lambda box: ranks[id(box)])
            for rank, box in enumerate(row):
                box.x = rank - (len(row) - 1) / 2


def _mean_x(boxes: Sequence[Box]) -> float:
    return sum(box.x for box in boxes) / len(boxes)


def _place(rows: list[list[Box]]) -> None:
    """Rows side by side without overlap, each near the middle of what it is joined to."""
    for row in rows:
        x = 0.0
        for box in row:
            box.x = x + box.width / 2
            x += box.width + GAP_X
    for row in rows[1:]:
        shifts = [_mean_x(box.above) - box.x for box in row if box.above]
        shift = sum(shifts) / len(shifts) if shifts else 0.0
        for box in row:
            box.x += shift
    x = min(box.x - box.width / 2 for row in rows for box in row)
    for row in rows:
        for box in row:
            box.x += PADDING - x
