"""The judge's own source as text, for those who attack it: to be read, never to be changed."""

from functools import cache
from pathlib import Path

from passnet import judge
from passnet.errors import ActionError
from passnet.passes.files import Files, lines_of


@cache
def judge_source() -> Files:
    """The text of every file of the judge, by its path in the judge's folder."""
    root = Path(str(judge.__file__)).parent
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*.py"))
    }


def show_source(name: str = "", first: int = 1, last: int | None = None) -> str:
    """Lines of a file of the judge with their numbers, or without a name the list of its files.

    Raises:
        ActionError: no such file or lines.
    """
    files = judge_source()
    if not name:
        return "\n".join(f"{file}: {len(text.splitlines())} lines" for file, text in files.items())
    if name not in files:
        raise ActionError(f"the judge has no file {name[:100]!r}; call without a name for the list")
    return lines_of(name, files[name], first, last)
