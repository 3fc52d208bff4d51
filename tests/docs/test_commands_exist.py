"""Every command of the README and of docs/ exists with these options; quick, nothing runs."""

import click
import pytest

from passnet.cli import main
from tests.docs.pages import Command, all_commands, page_name


def parsed(words: tuple[str, ...]) -> None:
    """Parse a command line without running it.

    Raises:
        click.UsageError: a command, an option, a choice or a required value is not right.
    """
    command: click.Command = main
    ctx = click.Context(main, info_name="passnet")
    rest = list(words[1:])
    while isinstance(command, click.Group):
        if not rest:
            raise click.UsageError(f"{' '.join(words)} names no command")
        child = command.get_command(ctx, rest[0])
        if child is None:
            raise click.UsageError(f"no command {rest[0]!r}")
        command, ctx = child, click.Context(child, parent=ctx, info_name=rest.pop(0))
    values, unused, _ = command.make_parser(ctx).parse_args(rest)
    if unused:
        raise click.UsageError(f"unexpected {unused}")
    for param in command.params:
        given = values.get(param.name)
        if param.required and given in (None, (), []):
            raise click.UsageError(f"{param.name} is missing")
        if isinstance(param.type, click.Choice) and given is not None:
            for word in given if isinstance(given, (list, tuple)) else [given]:
                param.type.convert(word, param, ctx)


@pytest.mark.parametrize("command", all_commands(), ids=lambda c: f"{page_name(c.page)}: {c.text}")
def test_a_documented_command_exists(command: Command) -> None:
    assert "…" not in command.words and "..." not in command.words, "write the command in full"
    parsed(command.words)


@pytest.mark.parametrize(
    "line",
    ["passnet benhc run", "passnet bench run --no-such x", "passnet report", "passnet bench"],
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    with pytest.raises(click.UsageError):
        parsed(tuple(line.split()))
