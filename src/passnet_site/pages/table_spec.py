"""Tables and charts for the scripts of pages, which sort, filter and draw them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from passnet.pages.tables.tables import Table

ColumnKind: TypeAlias = Literal["text", "link", "number", "percent", "speedup", "tags", "code"]
"""The kind of a column's values: percent takes a share, link [words, target], speedup
[value, low, high], and tags a list of short texts."""

FilterKind: TypeAlias = Literal["", "choice", "words"]

DIGITS = 5
"""Significant digits of a number on a page."""


@dataclass(frozen=True)
class ColumnSpec:
    """A column of a table on a page."""

    title: str
    kind: ColumnKind = "text"
    filtered: FilterKind = ""
    digits: int = 3
    """Digits of numbers after the point."""

    width: int = 0
    """Pixels; 0 leaves the width to the page."""

    is_wide: bool = False
    """True for a column that narrow pages leave out."""

    hint: str = ""
    """The meaning of the head, in a sentence."""


def table_spec(
    columns: Sequence[ColumnSpec],
    rows: Iterable[Sequence[Any]],
    sort: tuple[int, bool] | None = None,
    height: int | None = None,
) -> dict[str, Any]:
    """Return a table for a page, column by column; repeated texts are given once.

    Args:
        columns: the columns.
        rows: rows with a value for each column.
        sort: the column to sort by at first, and True if the largest comes first.
        height: pixels from which on the table scrolls; needed for long tables.
    """
    by_column: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) or [()] * len(columns)
    return {
        "columns": [_column(spec, values) for spec, values in zip(columns, by_column, strict=True)],
        "sort": list(sort) if sort else None,
        "height": height,
    }


def _column(spec: ColumnSpec, values: Sequence[Any]) -> dict[str, Any]:
    column: dict[str, Any] = {
        "title": spec.title,
        "kind": spec.kind,
        "filter": spec.filtered,
        "digits": spec.digits,
        "width": spec.width,
        "wide": spec.is_wide,
        "hint": spec.hint,
    }
    if spec.kind in ("text", "code", "link") and len(values) > 8:
        keys = [msgspec.json.encode(value) for value in values]
        levels = dict(zip(keys, values, strict=True))
        if 2 * len(levels) < len(values):
            numbers = {key: number for number, key in enumerate(levels)}
            indices = [numbers[key] for key in keys]
            return {**column, "levels": list(levels.values()), "values": indices}
    return {**column, "values": short(values)}


def short(value: Any) -> Any:
    """Return a value with as many digits as a page can show."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, (tuple, list)):
        return [short(inner) for inner in value]
    return value


def of_text_table(table: Table) -> dict[str, Any]:
    """Return a table of texts for a page; columns of numbers are sorted as numbers."""
    columns = [
        ColumnSpec(head, "number" if _is_numeric(table, index) else "text")
        for index, head in enumerate(table.heads)
    ]
    return table_spec(columns, table.rows)


def _is_numeric(table: Table, index: int) -> bool:
    cells = [row[index] for row in table.rows if row[index] not in ("", "–")]
    return bool(cells) and all(_number(cell) is not None for cell in cells)


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace(",", "").removesuffix("%").strip())
    except ValueError:
        return None


def line_chart(
    series: Mapping[str, Sequence[Any]], x: dict[str, Any], y: dict[str, Any], **options: Any
) -> dict[str, Any]:
    """Return a chart for a page: a line through the points of each series."""
    named = [{"name": name, "points": short(points)} for name, points in series.items()]
    return {"kind": "lines", "series": named, "x": x, "y": y, **options}


def bar_chart(bars: Mapping[str, int], label: str, x_label: str = "") -> dict[str, Any]:
    """Return a chart of bars for a page; horizontal ones without a label of the x axis."""
    values = {"labels": list(bars), "values": list(bars.values())}
    if not x_label:
        return {"kind": "bars", "horizontal": True, "label": label, **values}
    return {"kind": "bars", "horizontal": False, "label": label, "xLabel": x_label, **values}
