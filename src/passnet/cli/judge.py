"""`passnet judge`: a group of commands, which other packages add."""

import click

from passnet.cli.terminal.groups import ExtensibleGroup


@click.group("judge", cls=ExtensibleGroup)
def judge_group() -> None:
    """Test the judge itself, or let it serve whoever trains an LLM."""
