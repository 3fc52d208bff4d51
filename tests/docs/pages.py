"""The commands and the Python blocks of the README and of every page of docs/."""

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
    """A command line of a page, split into words."""

    page: Path
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return shlex.join(self.words)


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the fenced blocks of a page in some languages; "" is a block without one."""
    text = page.read_text(encoding="utf-8")
    return [body for language, body in _BLOCK.findall(text) if language in languages]


def commands(page: Path, *programs: str) -> list[Command]:
    """Return the commands of a page that begin with a program's name, in order."""
    start = re.compile(rf"(\$ )?({'|'.join(programs or ('passnet',))}) ")
    found = []
    for block in blocks(page, "", "sh", "bash", "console"):
        for line in block.replace("\\\n", " ").splitlines():
            text = _VARIABLES.sub("", line)
            if start.match(text) and not text.startswith("passnet:"):
                words = shlex.split(text.removeprefix("$ "), comments=True)
                found.append(Command(page, tuple(words)))
    return found


def all_commands() -> list[Command]:
    return [command for page in PAGES for command in commands(page)]


def python_blocks(page: Path) -> list[str]:
    return blocks(page, "python")
