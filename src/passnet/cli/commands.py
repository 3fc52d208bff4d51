"""The command `passnet` and its groups."""

import codecs
import io
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from passnet.cli.terminal.exits import FAILURE, HELP, USAGE_ERROR, fail
from passnet.cli.terminal.groups import ExtensibleGroup
from passnet.cli.terminal.interruption import interruptible
from passnet.cli.terminal.output import say
from passnet.errors import InputError, PassnetError, os_error_sentence
from passnet.version import __version__

COMMANDS = {
    "agent": "passnet.cli.agent:agent",
    "bench": "passnet.cli.bench:bench",
    "dataset": "passnet.cli.data.dataset:dataset",
    "examples": "passnet.cli.examples:examples_group",
    "extract": "passnet.cli.data.extract:extract",
    "graph": "passnet.cli.graph:graph",
    "judge": "passnet.cli.judge:judge_group",
    "library": "passnet.cli.library:library_group",
    "optimize": "passnet.cli.optimize:optimize",
    "pass": "passnet.cli.passes:pass_group",
    "profile": "passnet.cli.profile:profile",
    "suite": "passnet.cli.suite:suite_group",
}
"""Commands by name, imported on use."""

ONLY_POSIX = ("fcntl", "grp", "pty", "pwd", "resource", "termios")
NEEDS_LINUX = "this command needs Linux ({}); lists of suites, scores and reports do not"

PLAIN = {"–": "-", "…": "...", "×": "x", "µ": "u"}

SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


class _Group(ExtensibleGroup):
    """A group whose commands end with one clear sentence where a PassnetError ends them, or the
    operating system refuses something.
    """

    prefix = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, also from other packages."""
        return sorted({*COMMANDS, *super().list_commands(ctx)})

    def below(self, name: str) -> click.Command | None:
        """Import a command on first use; None where there is none of this name."""
        if name not in COMMANDS:
            return super().below(name)
        module, attribute = COMMANDS[name].split(":")
        return getattr(import_module(module), attribute)

    def main(self, *args: Any, **options: Any) -> Any:
        options.setdefault("prog_name", "passnet")  # also for `python -m passnet.cli`
        if isinstance(sys.stdout, io.TextIOWrapper):
            codecs.register_error("plain", _plain)
            sys.stdout.reconfigure(errors="plain")
        try:
            return super().main(*args, **options)
        except OSError as cause:
            with suppress(OSError):
                say(f"passnet: {os_error_sentence(cause)}", err=True)
            sys.exit(USAGE_ERROR)
        except (ModuleNotFoundError, AttributeError) as cause:
            if not (lacking := _lacking(cause)):
                raise
            fail(lacking)

    def invoke(self, ctx: click.Context) -> Any:
        with interruptible() as interruption:
            try:
                return super().invoke(ctx)
            except BaseException as cause:
                if interruption.signal is not None:  # even if an error followed the interrupt
                    interruption.end()
                if not isinstance(cause, PassnetError):
                    raise
                say(f"passnet: {cause}", err=True)
                ctx.exit(USAGE_ERROR if isinstance(cause, InputError) else FAILURE)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Return what to print for characters that the encoding of an ASCII locale lacks."""
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    return "".join(PLAIN.get(character, "?") for character in lacking), error.end


def _lacking(cause: ModuleNotFoundError | AttributeError) -> str:
    """Return the sentence for what a command needs and this machine lacks; empty for a bug."""
    if isinstance(cause, AttributeError):
        return NEEDS_LINUX.format(cause) if cause.obj in (os, signal) else ""
    if cause.name == "torch":
        return "this command needs PyTorch, which is not installed: pip install torch"
    return NEEDS_LINUX.format(cause) if cause.name in ONLY_POSIX else ""


@click.group(cls=_Group, context_settings=SETTINGS, epilog=HELP)
@click.version_option(__version__)
def main() -> None:
    """Find graphs that a tensor compiler handles badly, and write and judge passes for them."""
