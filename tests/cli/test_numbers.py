"""Numbers that a user gives: those of no sense are answered with one sentence, by every command."""

import re

import click
import pytest
from click.testing import CliRunner

from passnet.cli import main
from passnet.cli.terminal.parser import MAX_REAL, MAX_WHOLE, FiniteRange
from tests.cli.test_help import commands, options_of


def numeric_options() -> list[tuple[tuple[str, ...], str]]:
    """Each command with each of its options that takes a number."""
    kinds = (type(click.INT), type(click.FLOAT))
    return [
        (path, name)
        for path in commands()
        for name, option in options_of(path).items()
        if isinstance(option.type, kinds) and name.startswith("--")
    ]


def test_there_are_options_with_numbers():
    assert len(numeric_options()) > 40


@pytest.mark.parametrize(("path", "name"), numeric_options(), ids=lambda part: "".join(part))
def test_a_number_of_no_sense_is_refused_with_a_sentence(path: tuple[str, ...], name: str):
    option = options_of(path)[name]
    wrong = ["-1", "nan", "inf", "-inf", "1e400", str(10**30), "-1e9", "x", ""]
    kind = option.type
    assert isinstance(kind, (click.IntRange, FiniteRange)), "a number without a range"
    most = MAX_REAL if isinstance(kind, FiniteRange) else MAX_WHOLE
    assert kind.max is not None and (kind.max <= most or name == "--input-seed")
    if kind.min_open or kind.min == 1:
        wrong.append("0")
    if kind.min is not None and kind.min < 0:
        wrong.remove("-1")
    for text in wrong:
        values = [text] * option.nargs
        result = CliRunner().invoke(main, [*path, name, *values])
        assert result.exit_code == 2, (text, result.output)
        error = result.output.split("Error: ", 1)[1]
        assert error.startswith(f"Invalid value for '{name}") and error.count("\n") == 1, error


@pytest.mark.parametrize(("path", "name"), numeric_options(), ids=lambda part: "".join(part))
def test_bounds_are_plain_words(path: tuple[str, ...], name: str):
    extra = options_of(path)[name].get_help_extra(click.Context(main))
    number = r"-?[\d.]{1,5}"
    form = f"(above|at least) {number}(, (at most|below) {number})?|{number} to {number}"
    assert re.fullmatch(form, extra["range"]), extra


def test_numbers_of_a_range_are_taken():
    kind = FiniteRange(min_open=True)
    assert [kind.convert(text, None, None) for text in ("1e-9", "0.5", "1e9")] == [1e-9, 0.5, 1e9]
    for text in ("nan", "0", "1.1e9"):
        with pytest.raises(click.BadParameter):
            kind.convert(text, None, None)
