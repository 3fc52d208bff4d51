"""The group of the commands `passnet judge`."""

import click


@click.group("judge")
def judge_group() -> None:
    """Test the judge itself, or let it serve whoever trains an LLM."""
