"""Commands of the README and of docs/ exist with these options, shortened too; nothing runs."""

import shlex

import click
import pytest

from passnet.cli import main
from tests.docs.pages import PAGES, Command, all_commands, commands, page_name, steps
from tests.docs.shorter import (
    BEFORE,
    BLOCKS_NOT_RUN,
    NOT_RUN,
    PROGRAMS_NOT_RUN,
    SHORTER,
    shortened,
)


def parsed(words: tuple[str, ...]) -> None:
    """Parse a command line without running it.

    Raises:
        click.UsageError: a command, an option, a choice or a required value is not right.
    """
    command: click.Command = main
    ctx = click.Context(main, info_name="passnet")
    rest = list(words[1:])
    while isinstance(command, click.Group):
        child = command.get_command(ctx, rest[0]) if rest else None
        if child is None and command.invoke_without_command:
            break
        if not rest:
            raise click.UsageError(f"{' '.join(words)} names no command")
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
    as_run = shortened(command.text)
    if as_run is not None:
        parsed(tuple(shlex.split(as_run)))


def test_every_shortening_is_used() -> None:
    texts = {
        page_name(page): [step.text if isinstance(step, Command) else step for step in steps(page)]
        for page in PAGES
    }
    every = [command.text for page in PAGES for command in commands(page)]
    run = [text for text in every if shortened(text) is not None]
    first = {next((start for start, _ in SHORTER if text.startswith(start)), "") for text in run}
    assert [start for start, _ in SHORTER if start not in first] == []
    assert [part for part, _ in NOT_RUN if not any(part in text for text in every)] == []
    in_blocks = "".join(step for page in PAGES for step in steps(page) if isinstance(step, str))
    assert [part for part, _ in BLOCKS_NOT_RUN if part not in in_blocks] == []
    for page, needed in BEFORE.items():
        assert [
            start for start, _ in needed if not any(t.startswith(start) for t in texts[page])
        ] == []


def test_every_line_of_a_block_of_commands_is_run_or_has_a_reason() -> None:
    """A block without a language holds nothing else; `text` is for what is printed."""
    programs = {command.words[0] for page in PAGES for command in commands(page)}
    assert programs == {"passnet", "python", *PROGRAMS_NOT_RUN}


@pytest.mark.parametrize(
    "line",
    ["passnet benhc run", "passnet bench run --no-such x", "passnet report", "passnet bench"],
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    with pytest.raises(click.UsageError):
        parsed(tuple(line.split()))
