"""Libraries of strangers as orders for the judge: every claim is checked, and nothing runs.

The judge measures anew, so their times and verdicts do not count.
"""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from passnet.errors import InputError
from passnet.passes.files import MAX_FILES, Files, read_files
from passnet.passes.folder import MAX_FOLDER_BYTES, hash_folders
from passnet.passes.library.entries import (
    ENTRIES,
    PASS_FOLDER,
    RECORD_FILE,
    PassEntry,
    entry_names,
    has_digest,
    read_record,
)
from passnet.passes.library.kernels_layout import BUILD, LIBRARY
from passnet.passes.library.store import PassOrder, entry_range

MAX_PATHS = 200_000
"""Most files and folders of a library that is imported."""


def foreign_orders(folder: Path) -> list[PassOrder]:
    """Return the passes of a library or of a repository of `kernels`, each once.

    Raises:
        InputError: for the first entry that is not what its record says, or a link.
    """
    orders: dict[tuple[str, str], PassOrder] = {}
    num_bytes = 0
    for library in _libraries(folder):
        for name in entry_names(library):
            path = library / ENTRIES / name
            entry = read_record(path / RECORD_FILE)
            if not has_digest(entry, name):
                raise InputError(
                    f"{path}: its record has another SHA-256 than its name, so it was changed; "
                    "nothing was imported"
                )
            if entry.code_hash:
                files = _checked_files(path / PASS_FOLDER, entry)
                orders[entry.range, entry.code_hash] = entry, entry_range(entry), files
                num_bytes += sum(map(len, files.values()))
            if num_bytes > MAX_FOLDER_BYTES:
                raise InputError(f"{folder}: more than {MAX_FOLDER_BYTES} bytes of passes")
    if not orders:
        raise InputError(f"{folder}: no pass in it to import")
    return list(orders.values())


def _libraries(folder: Path) -> list[Path]:
    """Return the libraries in a folder; raise InputError for a link in it."""
    build = folder / BUILD
    if (folder / ENTRIES).is_dir() or not build.is_dir():
        _refuse_links(folder / ENTRIES)
        return [folder]
    _refuse_links(build)
    libraries = [path / LIBRARY for path in sorted(build.iterdir())]
    found = [path for path in libraries if (path / ENTRIES).is_dir()]
    if not found:
        raise InputError(f"{folder}: no library of passes in any {BUILD}/VARIANT/{LIBRARY}")
    return found


def _refuse_links(root: Path) -> None:
    """Raise InputError for a link at or below a path."""
    num_paths = 0
    for path in _walk(root):
        num_paths += 1
        if path.is_symlink():
            raise InputError(f"{path}: a link, which an import does not follow; put a copy there")
        if num_paths > MAX_PATHS:
            raise InputError(f"{root}: more than {MAX_PATHS} files; name the folder of one library")


def _walk(root: Path) -> Iterator[Path]:
    yield root
    for parent, folders, names in os.walk(root):
        yield from (Path(parent, name) for name in (*folders, *names))


def _checked_files(path: Path, entry: PassEntry) -> Files:
    """Return the files of a pass folder; raise InputError unless all of it is of the record."""
    if not path.is_dir():
        raise InputError(f"{path}: missing, though the record names its files; nothing was imported")
    names = {each.name for each in islice(path.iterdir(), MAX_FILES + 1)}
    if len(names) > MAX_FILES:
        raise InputError(f"{path}: more than {MAX_FILES} files; nothing was imported")
    files = read_files(path)
    others = sorted(names - files.keys() - {"__pycache__"})
    if others:
        raise InputError(
            f"{path / others[0]}: no file that a pass folder may hold; nothing was imported"
        )
    if hash_folders([path]) != entry.code_hash:
        raise InputError(
            f"{path}: its files have another SHA-256 than the record says, so they were changed; "
            "nothing was imported"
        )
    return files
