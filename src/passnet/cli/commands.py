"""The command `passnet` and its groups."""

import sys
from contextlib import suppress
from typing import Any

import click

from passnet.cli.agent import agent
from passnet.cli.bench import bench
from passnet.cli.dataset import dataset
from passnet.cli.exits import FAILURE, HELP, USAGE_ERROR
from passnet.cli.extract import extract
from passnet.cli.graph import graph
from passnet.cli.interruption import interruptible
from passnet.cli.judge import judge_group
from passnet.cli.leaderboard import leaderboard_group
from passnet.cli.library import library_group
from passnet.cli.optimize import optimize
from passnet.cli.passes import pass_group
from passnet.cli.profile import profile
from passnet.cli.report import report
from passnet.cli.score import score_group
from passnet.cli.suite import suite_group
from passnet.cli.train import train
from passnet.errors import InputError, PassnetError, os_error_sentence
from passnet.version import __version__

SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


class _Group(click.Group):
    """A group whose commands end with one clear sentence where a PassnetError ends them, or the
    operating system refuses something.
    """

    def main(self, *args: Any, **options: Any) -> Any:
        try:
            return super().main(*args, **options)
        except OSError as cause:
            with suppress(OSError):
                click.echo(f"passnet: {os_error_sentence(cause)}", err=True)
            sys.exit(USAGE_ERROR)

    def invoke(self, ctx: click.Context) -> Any:
        with interruptible() as interruption:
            try:
                return super().invoke(ctx)
            except (KeyboardInterrupt, PassnetError) as cause:
                if interruption.signal is not None:
                    interruption.end()
                if isinstance(cause, KeyboardInterrupt):
                    raise
                click.echo(f"passnet: {cause}", err=True)
                ctx.exit(USAGE_ERROR if isinstance(cause, InputError) else FAILURE)


@click.group(cls=_Group, context_settings=SETTINGS, epilog=HELP)
@click.version_option(__version__)
def main() -> None:
    """Find graphs that a tensor compiler handles badly, and write and judge passes for them."""


for _command in (extract, dataset, graph, pass_group, suite_group, bench, judge_group, agent,
                 optimize, library_group, train, profile, score_group, report,
                 leaderboard_group):  # fmt: skip
    main.add_command(_command)
