"""Groups of commands, which other packages extend by entry points."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import click

from passnet.errors import PassnetError, boundary, no_such

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "passnet.commands"
"""Entry-point group of commands: `name = "module:command"`, or `"group.name"` within a group."""


class AskingCommand(click.Command):
    """A command that offers similar options for an unknown one, and help by `-h` too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # of its own, as click keeps the names from its first context
        self.context_settings.setdefault("help_option_names", ["-h", "--help"])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as cause:
            known = [name for each in self.get_params(ctx) for name in each.opts if name[0] == "-"]
            raise click.UsageError(no_such("option", cause.option_name, known), ctx) from cause


class ExtensibleGroup(AskingCommand, click.Group):
    """A group of commands, which other packages may extend."""

    @property
    def prefix(self) -> str:
        """The beginning of the names of entry points that add a command to this group."""
        return f"{self.name}."

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, also from other packages."""
        return sorted({*self.commands, *_added(self.prefix)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command on first use; None where there is none of this name."""
        return self.below(cmd_name)

    def below(self, name: str) -> click.Command | None:
        """Return the command of a name; None where there is none."""
        if name in self.commands:
            return self.commands[name]
        entry = _added(self.prefix).get(name)
        return None if entry is None else _load(entry, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that `args` names; suggest similar names where there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as cause:
            missing = no_such("command", args[0], self.list_commands(ctx))
            raise click.UsageError(missing, ctx) from cause


def _added(prefix: str) -> Mapping[str, "EntryPoint"]:
    """Return the entry points of a group by the names of their commands."""
    from importlib.metadata import entry_points  # takes some 50 ms; most commands need none

    entries = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    names = {name: name.removeprefix(prefix) for name in entries if name.startswith(prefix)}
    return {short: entries[name] for name, short in names.items() if "." not in short}


def _load(entry: "EntryPoint", name: str) -> click.Command:
    """Import the command of an entry point; a command that says why where that fails."""
    package, words = entry.dist.name if entry.dist else entry.value, entry.name.replace(".", " ")
    try:
        with boundary(PassnetError, f"loading `passnet {words}` of the package {package}"):
            return entry.load()
    except PassnetError as cause:
        error = cause

    def explain() -> NoReturn:
        raise PassnetError(f"{error}; reinstall or uninstall {package}")

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(
        name, callback=explain, help=f"Broken: {error}.", context_settings=settings
    )
