"""The command `passnet` and its groups."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from passnet.cli.terminal.exits import FAILURE, HELP, USAGE_ERROR
from passnet.cli.terminal.interruption import interruptible
from passnet.errors import InputError, PassnetError, boundary, os_error_sentence
from passnet.version import __version__

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = {
    "agent": "passnet.cli.agent:agent",
    "bench": "passnet.cli.bench:bench",
    "dataset": "passnet.cli.data.dataset:dataset",
    "extract": "passnet.cli.data.extract:extract",
    "graph": "passnet.cli.graph:graph",
    "judge": "passnet.cli.judge:judge_group",
    "leaderboard": "passnet.cli.leaderboard:leaderboard_group",
    "library": "passnet.cli.library:library_group",
    "optimize": "passnet.cli.optimize_audit:optimize",
    "pass": "passnet.cli.passes:pass_group",
    "profile": "passnet.cli.profile:profile",
    "report": "passnet.cli.report:report",
    "suite": "passnet.cli.suite:suite_group",
}
"""Commands by name, imported on use."""

ENTRY_POINTS = "passnet.commands"
"""Entry-point group that adds commands of other packages: `name = "module:command"`."""

SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


class _Group(click.Group):
    """A group whose commands end with one clear sentence where a PassnetError ends them, or the
    operating system refuses something.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, also from other packages."""
        return sorted({*COMMANDS, *(entry.name for entry in _entry_points())})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command on first use; None where there is none of this name."""
        if cmd_name in COMMANDS:
            module, name = COMMANDS[cmd_name].split(":")
            return getattr(import_module(module), name)
        return next((_load(entry) for entry in _entry_points() if entry.name == cmd_name), None)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that `args` names; suggest similar names where there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as cause:
            names = self.list_commands(ctx)
            raise click.exceptions.NoSuchCommand(args[0], possibilities=names, ctx=ctx) from cause

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


def _entry_points() -> Iterable["EntryPoint"]:
    from importlib.metadata import entry_points  # takes some 50 ms; most commands need none

    return entry_points(group=ENTRY_POINTS)


def _load(entry: "EntryPoint") -> click.Command:
    """Import the command of an entry point; a command that says why where that fails."""
    package = entry.dist.name if entry.dist else entry.value
    try:
        with boundary(PassnetError, f"loading `passnet {entry.name}` of the package {package}"):
            return entry.load()
    except PassnetError as cause:
        error = cause

    def explain() -> NoReturn:
        raise PassnetError(f"{error}; reinstall or uninstall {package}")

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(
        entry.name, callback=explain, help=f"Broken: {error}.", context_settings=settings
    )


@click.group(cls=_Group, context_settings=SETTINGS, epilog=HELP)
@click.version_option(__version__)
def main() -> None:
    """Find graphs that a tensor compiler handles badly, and write and judge passes for them."""
