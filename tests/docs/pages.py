"""The commands and the Python blocks of the README and of every page of docs/, in their order.

A block without a language holds commands, one a line; `text` is what a command prints, or a layout.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "training" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_VARIABLES = re.compile(r"^(?:[A-Z_]+=\S+ )+")


@dataclass(frozen=True)
class Command:
    """A command line of a page, split into words; without the variables before it."""

    page: Path
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return shlex.join(self.words)


Step = Command | str
"""A command, or the text of a Python block."""


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a page in a language; "" is a block of commands."""
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [body for each, body in found if each == language]


def steps(page: Path) -> list[Step]:
    """Return what a page has its readers run, in order."""
    found: list[Step] = []
    for language, body in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            found.append(body)
        elif language == "":
            found += _commands(page, body)
    return found


def _commands(page: Path, body: str) -> list[Command]:
    lines = [_VARIABLES.sub("", line) for line in body.replace("\\\n", " ").splitlines()]
    split = [tuple(shlex.split(line, comments=True)) for line in lines]
    return [Command(page, words) for words in split if words]


def commands(page: Path) -> list[Command]:
    """Return the commands of a page, in order."""
    return [step for step in steps(page) if isinstance(step, Command)]


def all_commands() -> list[Command]:
    """Return the commands of passnet on all pages."""
    return [each for page in PAGES for each in commands(page) if each.words[0] == "passnet"]
