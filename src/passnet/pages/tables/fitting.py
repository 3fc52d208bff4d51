"""The columns of a table that fit a width, and how wide each is."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len

SHORT_CELL = 30
"""Most letters of a cell that never breaks over lines."""

LONG_COLUMN = 24
"""Fewest letters of a column whose cells break."""

Column = Sequence[str]
"""The head of a column, and its cells."""


def fitting_widths(columns: Sequence[Column], least: Sequence[int], width: int) -> dict[int, int]:
    """Return the widths of the columns that fit a width, by their numbers.

    Args:
        columns: the columns of a table; the first always stays.
        least: numbers of the columns to leave out first, in this order; after them columns are left
            out from the right.
        width: letters of a line, the rules between columns included.

    Examples:
        >>> fitting_widths([["name", "a"], ["ms", "1.5"], ["error", "0.1"]], [1], 19)
        {0: 4, 2: 5}
    """
    kept = dict.fromkeys(range(len(columns)))
    leaving = [*least, *(number for number in reversed(kept) if number not in least)]
    ranges = [_range(column, width // 2) for column in columns]
    for number in leaving:
        if _total(ranges[each][0] for each in kept) <= width or len(kept) == 1:
            break
        if number != 0:
            del kept[number]
    spare = width - _total(ranges[each][0] for each in kept)
    widths = {}
    for index, number in enumerate(kept):
        needed, most = ranges[number]
        more = max(min(most - needed, spare // (len(kept) - index)), min(spare, 0))
        widths[number], spare = needed + more, spare - more
    return widths


def _total(widths: Iterable[int]) -> int:
    """Return the width of a table whose columns have these widths."""
    return 1 + sum(width + 3 for width in widths)


def _range(column: Column, longest_word: int) -> tuple[int, int]:
    """Return the least width at which no number and no name of a column breaks, and the width of
    its longest line. In running text, words longer than `longest_word` break.
    """
    head, *cells = column
    lines = [line for cell in cells for line in cell.splitlines()]
    longest = max(map(cell_len, lines), default=0)
    words = max(map(cell_len, head.split()), default=0)
    if longest > SHORT_CELL and any(" " in line for line in lines):
        word = max(cell_len(word) for line in lines for word in line.split())
        longest_part = max(min(word, longest_word), LONG_COLUMN)
    else:
        longest_part = longest
    return max(words, longest_part), max(cell_len(head), longest)
