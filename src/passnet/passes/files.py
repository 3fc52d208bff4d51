"""The pass folder of an attempt as text: it holds nothing else, and no path leaves it."""

import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from passnet.core.records.serialise import make_folder, replace_file
from passnet.core.records.untrusted import read_untrusted_text
from passnet.core.terminal.visible_text import source_lines
from passnet.errors import ActionError, PassFolderError, boundary
from passnet.passes.folder import LIST_FILE, MAX_FILE_BYTES

Files: TypeAlias = dict[str, str]
"""The text of every file by its name."""

MAX_FILES = 64
MAX_FILE_CHARACTERS = 128 * 1024
MAX_FOLDER_CHARACTERS = 512 * 1024
MAX_SHOWN_CHARACTERS = 24_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\.(py|json|h|hpp|cpp|cu|cuh|txt|md)")


def check_name(name: str) -> None:
    """Raise an ActionError if a pass folder may not hold a file of this name."""
    if _NAME.fullmatch(name) is None:
        raise ActionError(
            f"{name[:100]!r} is no file name of the pass folder: give a plain name such as "
            f"FuseNorm.py or {LIST_FILE}, without a folder before it"
        )


def view(files: Mapping[str, str], name: str = "", first: int = 1, last: int | None = None) -> str:
    """Return numbered lines of a file (from 1; without `last` to the end), or the list of files."""
    if not name:
        if not files:
            return f"The pass folder is empty. Create {LIST_FILE} and a file a pass."
        return "\n".join(
            f"{file}: {len(source_lines(text))} lines, {len(text)} characters"
            for file, text in sorted(files.items())
        )
    return lines_of(name, _text(files, name), first, last)


def lines_of(name: str, text: str, first: int, last: int | None) -> str:
    """Return numbered lines of a text, cut to `MAX_SHOWN_CHARACTERS`; raise ActionError if none."""
    lines = source_lines(text)
    stop = len(lines) if last is None else min(last, len(lines))
    if first < 1 or (first > stop and lines):
        raise ActionError(f"{name} has {len(lines)} lines; there are no lines {first} to {last}")
    shown = "\n".join(f"{number:5}  {lines[number - 1]}" for number in range(first, stop + 1))
    if len(shown) > MAX_SHOWN_CHARACTERS:
        shown = shown[:MAX_SHOWN_CHARACTERS] + "\n… cut here; view fewer lines at a time"
    return shown


def created(files: Mapping[str, str], name: str, text: str) -> Files:
    """Return the folder with a file written; raise ActionError for a bad name or size."""
    check_name(name)
    with boundary(ActionError, f"encoding {name}"):
        text.encode()
    folder = {**files, name: text}
    if len(text) > MAX_FILE_CHARACTERS:
        raise ActionError(f"{name}: {len(text)} characters, more than {MAX_FILE_CHARACTERS}")
    if len(folder) > MAX_FILES or sum(map(len, folder.values())) > MAX_FOLDER_CHARACTERS:
        raise ActionError(
            f"{name}: the folder may hold {MAX_FILES} files and {MAX_FOLDER_CHARACTERS} "
            "characters; delete what is not needed"
        )
    return folder


def replaced(files: Mapping[str, str], name: str, old: str, new: str) -> Files:
    """Return the folder with the one `old` in a file replaced; else raise ActionError."""
    text = _text(files, name)
    count = text.count(old) if old else 0
    if count != 1:
        reason = "is empty" if not old else f"is in it {count} times"
        raise ActionError(f"{name}: the text to replace {reason}; give text that occurs once")
    return created(files, name, text.replace(old, new))


def deleted(files: Mapping[str, str], name: str) -> Files:
    """Return the folder without a file; raise ActionError if there is none."""
    _text(files, name)
    return {file: text for file, text in files.items() if file != name}


def _text(files: Mapping[str, str], name: str) -> str:
    check_name(name)
    if name not in files:
        raise ActionError(f"there is no {name}; the folder holds {', '.join(sorted(files)) or '–'}")
    return files[name]


def write_files(files: Mapping[str, str], folder: Path) -> None:
    """Write a pass folder out; raise ActionError for a name that it may not hold."""
    make_folder(folder)
    for name, text in files.items():
        check_name(name)
        replace_file(folder / name, text.encode(errors="surrogatepass"))


def read_files(folder: Path) -> Files:
    """Read the files of a pass folder with allowed names; raise PassFolderError for other text."""
    return {
        path.name: read_untrusted_text(path, MAX_FILE_BYTES, PassFolderError)
        for path in sorted(folder.iterdir())
        if not path.is_dir() and _NAME.fullmatch(path.name)
    }


def unguarded(files: Files) -> str | None:
    """Return the name of a pass without guards in a folder, or None.

    Examples:
        >>> names = '["A", "B"]'
        >>> unguarded({LIST_FILE: names, "A.py": "guards = ('x: float32',)", "B.py": "x = 1"})
        'B'
    """
    for name in json.loads(files[LIST_FILE]):
        named = {
            node.id if isinstance(node, ast.Name) else node.name
            for top in ast.parse(files[f"{name}.py"]).body
            for node in (top.targets if isinstance(top, ast.Assign) else [top])
            if isinstance(node, (ast.Name, ast.FunctionDef))
        }
        if named.isdisjoint(("guards", "guard")):
            return str(name)
    return None
