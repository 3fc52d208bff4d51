"""A pass folder, looked at without running any of it.

A folder holds `sorted_output_pass_rule_names.json`, the list of passes in the order in which they
apply, and for each name a `<name>.py` with `pattern`, `replacement_args` and `replacement_func`.
Other modules in it may be imported as `pass_dir.<module>`.
"""

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
    files = {file.name: file for file in inputs}
    files.update({name: PassFile(name, path / f"{name}.py") for name in names})
    for file in files.values():
        _check_pass(file)
    sources = [
        source for source in sorted(path.glob("*.py")) if _bound(source).issuperset(CALLABLES)
    ]
    unlisted = tuple(source.stem for source in sources if source.stem not in files)
    beside = {file.path.parent for file in inputs if path not in file.path.parents}
    code_hash = hash_folders([path, *beside])
    return PassFolder(path.resolve(), tuple(files.values()), unlisted, code_hash)


def _names(path: Path) -> list[str]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as cause:
        raise PassFolderError(
            f"{path.parent}: holds no {path.name}; write a JSON list of the pass names into it"
        ) from cause
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as cause:
        raise PassFolderError(f"{path}: not a JSON list of pass names: {cause}") from cause
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
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


def _check_pass(file: PassFile) -> None:
    path = file.path
    if not path.is_file():
        raise PassFolderError(
            f"{path.parent}: the list names {file.name}, but there is no {path.name}"
        )
    names = _bound(path)
    missing = [name for name in CALLABLES if name not in names]
    if missing:
        raise PassFolderError(
            f"{path}: defines no {missing[0]}; a pass needs {', '.join(CALLABLES)}"
        )


def read_source(path: Path) -> tuple[bytes, ast.Module]:
    """The text of a module of a pass folder, and its syntax tree.

    Raises:
        PassFolderError: it cannot be read, is too large, or is not Python.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise PassFolderError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        text = path.read_bytes()
        return text, ast.parse(text)  # bytes, so that a declared encoding counts as in Python
    except SyntaxError as cause:
        raise PassFolderError(f"{path}:{cause.lineno}: not Python: {cause.msg}") from cause
    except (OSError, RecursionError, MemoryError, ValueError) as cause:
        raise PassFolderError(f"{path}: cannot be read: {cause}") from cause


def _bound(path: Path) -> set[str]:
    """The names that a module binds at its top level."""
    _, tree = read_source(path)
    names: set[str] = set()
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names.update(alias.asname or alias.name for alias in aliases)
            case _:
                nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
                names.update(node.id for node in nodes if isinstance(node.ctx, ast.Store))
    return names


def hash_folders(folders: Sequence[Path]) -> str:
    """SHA-256 over the names and contents of all files below some folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(folder)).encode() + b"\0")
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
