"""Tables as pages get them: columns of values, which the page sorts, filters and draws."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from passnet.pages.tables.tables import Table

ColumnKind: TypeAlias = Literal["text", "link", "number", "percent", "speedup", "tags", "code"]
"""text, code and number as they are; percent of a share; link of [words, target]; speedup of
[value, low, high], drawn as a bar beside its number; tags of a list of short texts."""

FilterKind: TypeAlias = Literal["", "choice", "words"]

DIGITS = 5
"""Significant digits of a number on a page."""


@dataclass(frozen=True)
class ColumnSpec:
    """A column.

    Args:
        title: its head.
        kind: how its values are shown.
        filtered: what filters it, above the table.
        digits: of numbers, after the point.
        width: in pixels; 0 leaves it to the page.
        is_wide: left out where the page is narrow.
        hint: what its head means, in a sentence.
    """

    title: str
    kind: ColumnKind = "text"
    filtered: FilterKind = ""
    digits: int = 3
    width: int = 0
    is_wide: bool = False
    hint: str = ""


def table_spec(
    columns: Sequence[ColumnSpec],
    rows: Iterable[Sequence[Any]],
    sort: tuple[int, bool] | None = None,
    height: int | None = None,
) -> dict[str, Any]:
    """Return a table for a page, column by column; repeated texts are given once.

    Args:
        columns: the columns.
        rows: a value for each of them.
        sort: the column to sort by at first, and whether the largest comes first.
        height: in pixels, from which on the table scrolls by itself; needed for long tables.
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
            return {
                **column,
                "levels": list(levels.values()),
                "values": [numbers[key] for key in keys],
            }
    return {**column, "values": [_short(value) for value in values]}


def _short(value: Any) -> Any:
    """Return a value with as many digits as a page can show."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, (tuple, list)):
        return [_short(inner) for inner in value]
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
