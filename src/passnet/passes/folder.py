"""A pass folder, looked at without running any of it.

A folder holds `sorted_output_pass_rule_names.json`, the list of passes in the order in which they
apply, and for each name a `<name>.py` with `pattern`, `replacement_args` and `replacement_func`.
Other modules in it may be imported as `pass_dir.<module>`.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from passnet.errors import PassFolderError

LIST_FILE = "sorted_output_pass_rule_names.json"
INPUT_FOLDER = "const_pass_dir"
INPUT_LIST_FILE = "sorted_input_pass_rule_names.json"
CALLABLES = ("pattern", "replacement_args", "replacement_func")
PACKAGE = "pass_dir"
MAX_FILE_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class PassFile:
    """One pass: its name, its file, and the package it is imported from."""

    name: str
    path: Path
    package: str = PACKAGE


@dataclass(frozen=True, slots=True)
class PassFolder:
    """A pass folder as far as its text tells.

    `passes` in the order in which they apply; `unlisted` names files that look like passes but are
    not on the list; `code_hash` is SHA-256 over all its files and those of its input passes.
    """

    path: Path
    passes: tuple[PassFile, ...]
    unlisted: tuple[str, ...]
    code_hash: str


def is_pass_folder(path: Path) -> bool:
    """Whether a folder holds a list of passes."""
    return (path / LIST_FILE).is_file()


def inspect_folder(path: Path) -> PassFolder:
    """What a pass folder holds, without running any of it.

    Raises:
        PassFolderError: the list or a file on it is missing or malformed, a file is not Python, or
            a pass lacks one of its three functions.
    """
    if not path.is_dir():
        raise PassFolderError(f"{path}: no such folder")
    names = _names(path / LIST_FILE)
    inputs = _input_passes(path)
    files = {item.name: item for item in inputs}
    files.update({name: PassFile(name, path / f"{name}.py") for name in names})
    for item in files.values():
        _check_pass(item)
    listed = {f"{name}.py" for name in files}
    unlisted = []
    for source in sorted(path.glob("*.py")):
        defined = _defined(source)
        if source.name not in listed and all(name in defined for name in CALLABLES):
            unlisted.append(source.stem)
    beside = {item.path.parent for item in inputs if path not in item.path.parents}
    code_hash = hash_folders([path, *beside])
    return PassFolder(path.resolve(), tuple(files.values()), tuple(unlisted), code_hash)


def _names(path: Path) -> list[str]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as cause:
        raise PassFolderError(
            f"{path.parent}: holds no {path.name}; write a JSON list of the pass names into it"
        ) from cause
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as cause:
        raise PassFolderError(f"{path}: not a JSON list of pass names: {cause}") from cause
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise PassFolderError(f"{path}: expected a JSON list of pass names")
    for name in value:
        if not name.isidentifier():
            raise PassFolderError(f"{path}: {name!r} is no module name (give it without .py)")
        if value.count(name) > 1:
            raise PassFolderError(f"{path}: {name} is listed twice")
    return value


def _input_passes(path: Path) -> list[PassFile]:
    for folder in (path / INPUT_FOLDER, path.parent / INPUT_FOLDER):
        if (folder / INPUT_LIST_FILE).is_file():
            names = _names(folder / INPUT_LIST_FILE)
            return [PassFile(name, folder / f"{name}.py", INPUT_FOLDER) for name in names]
    return []


def _check_pass(item: PassFile) -> None:
    if not item.path.is_file():
        raise PassFolderError(
            f"{item.path.parent}: the list names {item.name}, but there is no {item.path.name}"
        )
    defined = _defined(item.path)
    missing = [name for name in CALLABLES if name not in defined]
    if missing:
        raise PassFolderError(
            f"{item.path}: defines no {missing[0]}; a pass needs {', '.join(CALLABLES)}"
        )


def _defined(path: Path) -> set[str]:
    """The names that a module binds at its top level."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise PassFolderError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        tree = ast.parse(path.read_bytes())
    except SyntaxError as cause:
        raise PassFolderError(f"{path}:{cause.lineno}: not Python: {cause.msg}") from cause
    except (OSError, UnicodeDecodeError, RecursionError, MemoryError, ValueError) as cause:
        raise PassFolderError(f"{path}: cannot be read: {cause}") from cause
    names: set[str] = set()
    for item in tree.body:
        if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
            names.add(item.name)
        elif isinstance(item, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in item.names)
        else:
            for node in ast.walk(item):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names.add(node.id)
    return names


def hash_folders(folders: Sequence[Path]) -> str:
    """SHA-256 over the names and contents of all files below some folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for item in sorted(folder.rglob("*")):
            if item.is_file() and "__pycache__" not in item.parts:
                digest.update(str(item.relative_to(folder)).encode() + b"\0")
                digest.update(hashlib.sha256(item.read_bytes()).digest())
    return digest.hexdigest()
