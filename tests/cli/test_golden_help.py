"""The help of every command, compared with `tests/golden/help.txt`.

To accept new texts: `PASSNET_REWRITE_GOLDEN=1 pytest tests/cli/test_golden_help.py`, then read the
diff that git shows.
"""

import difflib
import os

import click
from click.testing import CliRunner

from passnet.cli import main
from passnet.cli.agent import agent
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden" / "help.txt"


def help_texts(command: click.Command = main, path: tuple[str, ...] = ()) -> list[str]:
    """Return the help of a command and of all below it, 100 columns wide."""
    result = CliRunner().invoke(main, [*path, "--help"], terminal_width=100)
    texts = [f"$ passnet {' '.join([*path, '--help'])}\n{result.output}"]
    if isinstance(command, click.Group):
        context = click.Context(main)
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None, name
            texts += help_texts(member, (*path, name))
    return texts


def test_the_help_of_all_commands_is_as_it_was() -> None:
    text = "\n".join(help_texts())
    if os.environ.get("PASSNET_REWRITE_GOLDEN"):
        GOLDEN.write_text(text)
    lines = (GOLDEN.read_text().splitlines(), text.splitlines())
    diff = "\n".join(difflib.unified_diff(*lines, "tests/golden/help.txt", "now", lineterm="", n=1))
    assert not diff, f"\n{diff}\nread the docstring of this file to accept the new texts"


def test_a_command_that_is_called_by_itself_has_the_same_help() -> None:
    for command in (agent, agent.commands["run"]):
        assert "-h, --help" in CliRunner().invoke(command, ["-h"]).output
