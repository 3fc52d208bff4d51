"""A pass folder, inspected without running its code.

A folder holds `sorted_output_pass_rule_names.json`, the list of passes in the order in which they
apply, and for each name a `<name>.py` with `pattern`, `replacement_args` and `replacement_func`.
Other modules in it may be imported as `pass_dir.<module>`.
"""

import ast
import hashlib
import json
import os
import re
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tokenize import detect_encoding

from passnet.core.records.untrusted import read_untrusted, read_untrusted_text, untrusted_digest
from passnet.core.terminal.visible_text import visible
from passnet.errors import PassFolderError, is_exhausted, os_error_sentence
from passnet.graph.text.syntax import has_costly_braces

LIST_FILE = "sorted_output_pass_rule_names.json"
INPUT_FOLDER = "const_pass_dir"
INPUT_LIST_FILE = "sorted_input_pass_rule_names.json"
CALLABLES = ("pattern", "replacement_args", "replacement_func")
PACKAGE = "pass_dir"
_PLAIN = ("utf-8", "utf-8-sig", "iso-8859-1")
MAX_FILE_BYTES = 2**19
MAX_TEXT_BYTES = 2**21
MAX_FOLDER_BYTES = 2**28
MAX_FILES = 2000
MAX_NAME_BYTES = 200
"""Limits of a module, of all modules, of all files, of their number, and of a pass's name."""


@dataclass(frozen=True, slots=True)
class PassFile:
    """One pass: its name, its file, and the package it is imported from."""

    name: str
    path: Path
    package: str = PACKAGE

    @property
    def module(self) -> str:
        """Return the name it is imported as, without a dot of its own."""
        return f"{self.package}.{self.name.replace('.', '%')}"


@dataclass(frozen=True, slots=True)
class PassFolder:
    """A pass folder, as far as its text shows.

    `passes` in the order in which they apply; `unlisted` names files that look like passes but are
    not on the list; `code_hash` is SHA-256 over all its files and those of its input passes.
    """

    path: Path
    passes: tuple[PassFile, ...]
    unlisted: tuple[str, ...]
    code_hash: str


def is_pass_folder(path: Path) -> bool:
    """Return whether a folder holds a list of passes."""
    return (path / LIST_FILE).is_file()


@contextmanager
def _refused() -> Iterator[None]:
    """Turn what the OS refuses into a PassFolderError, unless the machine lacks something."""
    try:
        yield
    except OSError as cause:
        if is_exhausted(cause):
            raise
        raise PassFolderError(visible(os_error_sentence(cause))) from cause


@_refused()
def inspect_folder(path: Path) -> PassFolder:
    """Read a pass folder without running its code; raise PassFolderError if it is malformed."""
    if not path.is_dir():
        raise PassFolderError(f"{path}: no such folder")
    _files(path)
    names = _names(path / LIST_FILE)
    inputs = _input_passes(path)
    files = {file.name: file for file in inputs}
    files.update({name: PassFile(name, path / f"{name}.py") for name in names})
    for file in files.values():
        _check_pass(file)
    unnamed = [source for source in sorted(path.glob("*.py")) if source.stem not in files]
    unlisted = tuple(source.stem for source in unnamed if _looks_like_pass(source))
    beside = {file.path.parent for file in inputs if path not in file.path.parents}
    code_hash = hash_folders([path, *beside])
    return PassFolder(path.resolve(), tuple(files.values()), unlisted, code_hash)


def _names(path: Path) -> list[str]:
    if not path.exists():
        raise PassFolderError(f"{path}: missing; write a JSON list of pass names")
    try:
        value = json.loads(read_untrusted_text(path, MAX_FILE_BYTES, PassFolderError))
    except (ValueError, RecursionError) as cause:
        raise PassFolderError(f"{path}: not a JSON list of pass names: {cause}") from cause
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise PassFolderError(f"{path}: expected a JSON list of pass names")
    for name in value:
        is_name = re.fullmatch(r"[\w.+-]+( [\w.+-]+)*", name) and not name.endswith(".py")
        if not is_name or len(name.encode()) > MAX_NAME_BYTES:
            raise PassFolderError(
                f"{path}: {name[:MAX_NAME_BYTES]!r} is no name of a pass; give that of its file, "
                "without .py, of letters, digits, _ . + - and spaces between, of up to "
                f"{MAX_NAME_BYTES} bytes"
            )
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
        raise PassFolderError(f"{path}: missing, though the list names {file.name}")
    alias = path.with_name(file.module.rpartition(".")[2])
    if alias.name != file.name and (alias.exists() or Path(f"{alias}.py").exists()):
        raise PassFolderError(
            f"{path}: is imported as {alias.name}, as is what else has that name; rename one"
        )
    _, tree = read_source(path)
    names = _bound(tree)
    missing = [name for name in CALLABLES if name not in names]
    if missing and not _may_bind_any(tree):
        raise PassFolderError(missing_callable(path, missing[0]))


def missing_callable(path: Path, name: str) -> str:
    """Return the error text for a pass without one of its functions."""
    return f"{path}: defines no {name}; a pass needs {', '.join(CALLABLES)}"


def read_source(path: Path) -> tuple[bytes, ast.Module]:
    """Return a module's text and syntax tree; raise PassFolderError if it cannot be read."""
    text = read_untrusted(path, MAX_FILE_BYTES, PassFolderError)
    try:
        encoding, _ = detect_encoding(BytesIO(text).readline)
        num_braces = text.count(b"{") if encoding in _PLAIN else len(text)  # others may hide them
        if has_costly_braces(num_braces, len(text)):
            raise PassFolderError(f"{path}: too many braces for its length; divide it")
        return text, ast.parse(text)  # bytes, so that a declared encoding counts as in Python
    except SyntaxError as cause:
        raise PassFolderError(f"{path}:{cause.lineno}: not Python: {cause.msg}") from cause
    except PassFolderError:
        raise
    except (RecursionError, MemoryError, ValueError, LookupError) as cause:
        why = str(cause) or "out of memory"
        raise PassFolderError(f"{path}: cannot be read: {why}") from cause


def _check_size(path: Path) -> int:
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise PassFolderError(f"{path}: larger than {MAX_FILE_BYTES} bytes; divide it")
    return size


def _looks_like_pass(path: Path) -> bool:
    """Return whether an unlisted file binds the functions of a pass."""
    try:
        _, tree = read_source(path)
    except PassFolderError:
        return False
    return _bound(tree).issuperset(CALLABLES)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_BINDERS = {"exec", "globals", "locals", "vars", "setattr", "__dict__", "*"}
"""Names that may bind others invisibly: functions, an attribute, an import of all."""


def _bound(tree: ast.Module) -> set[str]:
    """Return the names that a module binds at its top level or declares global."""
    names: set[str] = set()
    remaining: list[ast.AST] = [*tree.body]
    while remaining:
        node = remaining.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names.update(alias.asname or alias.name for alias in aliases)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
        if not isinstance(node, _SCOPES):
            remaining += ast.iter_child_nodes(node)
    return names.union(*(node.names for node in ast.walk(tree) if isinstance(node, ast.Global)))


def _may_bind_any(tree: ast.Module) -> bool:
    """Return whether a module may bind names that only running it shows."""
    texts = {
        text
        for node in ast.walk(tree)
        for text in (getattr(node, "id", None), getattr(node, "attr", None))
        if isinstance(text, str)
    }
    aliases = [node.name for node in ast.walk(tree) if isinstance(node, ast.alias)]
    return not _BINDERS.isdisjoint(texts | {*aliases})


@_refused()
def hash_folders(folders: Sequence[Path]) -> str:
    """Return a SHA-256 over names and contents of all files and links below some folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in _files(folder):
            digest.update(str(path.relative_to(folder)).encode() + b"\0")
            if path.is_symlink():
                digest.update(b"link" + os.fsencode(path.readlink()) + b"\0")
            else:
                digest.update(untrusted_digest(path, PassFolderError))
    return digest.hexdigest()


def packed_folder(path: Path, above: Path) -> bytes:
    """Return a pass folder and its input passes as a tar archive, by their paths below a folder."""
    inputs = path.parent / INPUT_FOLDER
    content = BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for folder in (path, inputs) if (inputs / INPUT_LIST_FILE).is_file() else (path,):
            for file in _files(folder):
                archive.add(file, file.relative_to(above), recursive=False)
    return content.getvalue()


def unpack_folder(content: bytes, above: Path) -> None:
    """Write the files of `packed_folder` below a folder."""
    with tarfile.open(fileobj=BytesIO(content)) as archive:
        archive.extractall(above, filter="tar")


def _files(folder: Path) -> list[Path]:
    """Return all files and links below a folder, sorted, within limits and without bytecode."""
    files: list[Path] = []
    num_bytes, num_text_bytes = 0, 0
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(parent, name)
            if not name.isascii() and os.fsencode(name).decode(errors="replace") != name:
                raise PassFolderError(f"{visible(str(path))}: its name is not UTF-8; rename it")
            if path.is_symlink():
                if not _leads_into(path, folder):
                    raise PassFolderError(f"{path}: links out of the folder; put a copy there")
            elif path.is_dir() or (path.suffix == ".pyc" and path.parent.name == "__pycache__"):
                continue
            elif not path.is_file():
                raise PassFolderError(f"{path}: a device, pipe or socket; remove it")
            else:
                num_bytes += path.stat().st_size
                if path.suffix == ".py" or name in (LIST_FILE, INPUT_LIST_FILE):
                    num_text_bytes += _check_size(path)
            files.append(path)
        for most, number, unit in (
            (MAX_FILES, len(files), "files"),
            (MAX_FOLDER_BYTES, num_bytes, "bytes"),
            (MAX_TEXT_BYTES, num_text_bytes, "bytes of Python"),
        ):
            if number > most:
                raise PassFolderError(f"{folder}: more than {most} {unit}; leave some of them out")
    return sorted(files)


def _leads_into(link: Path, folder: Path) -> bool:
    try:
        return link.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # RuntimeError: links that go round
        return False
