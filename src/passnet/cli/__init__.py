"""The command line: one file a group of commands; what takes time to import, commands import."""

from passnet.cli.commands import main

__all__ = ["main"]
