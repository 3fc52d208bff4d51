"""Tables on narrow terminals: blocks of columns, and no number in two pieces."""

import io

import pytest
from rich.console import Console

from passnet.cli.terminal.output import fitting_blocks
from passnet.pages.tables.tables import Table, print_table

NUMBERS = tuple(f"{1000.125 + number:.3f} – {2000.5 + number:.3f}" for number in range(9))
TABLE = Table("T", ("candidate", *(f"head {number}" for number in range(9))), [("a", *NUMBERS)])


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_wide_table_comes_in_blocks_with_whole_numbers(width: int) -> None:
    console = Console(width=width, file=io.StringIO())
    blocks = list(fitting_blocks(TABLE, width))
    for block in blocks:
        print_table(console, block)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert all(number in text for number in NUMBERS)
    assert [block.heads[0] for block in blocks] == ["candidate"] * len(blocks)
    assert [block.title for block in blocks] == ["T", *[""] * (len(blocks) - 1)]


def test_a_table_that_fits_is_one_block() -> None:
    assert list(fitting_blocks(TABLE, 300)) == [TABLE]
