"""Which entries of the catalog are meant: names, patterns, files, whole libraries."""

import fnmatch
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from passnet.data.capture.catalog import LIBRARIES, is_file, library, names_of, unknown_entry
from passnet.errors import InputError, did_you_mean, neighbours

HUB = "hub"


def resolve(patterns: Sequence[str], libraries: Sequence[str] = ()) -> list[str]:
    """The entries that are meant, each once, in the order in which they are named.

    Args:
        patterns: `library/entry`, also with the wildcards of a shell and in other case, and without
            the ending Model (`transformers/bert`); `path/to/file.py:function`;
            `hub/owner/name`, or `hub/list.txt` with a repository on each line.
        libraries: names of libraries of which every entry is meant.

    Raises:
        InputError: something is meant that does not exist; the text lists what is near.
    """
    if HUB in libraries:
        raise InputError("the hub cannot be captured as a whole; name repositories of it")
    names = {name: names_of(name) for name in libraries}
    entries = [entry for name in libraries for entry in names[name]]
    for pattern in patterns:
        entries += _matching(pattern, names)
    return list(dict.fromkeys(entries))


def _matching(pattern: str, names: dict[str, list[str]]) -> list[str]:
    """The entries that a pattern means; `names` are those of libraries, filled as they are read."""
    if is_file(pattern):
        path, _, function = pattern.rpartition(":")
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file{did_you_mean(path, neighbours(Path(path)))}")
        return [f"{Path(path).resolve()}:{function}"]
    prefix, _, name = pattern.partition("/")
    if not name:
        raise InputError(
            f"{pattern!r} names no entry: give LIBRARY/ENTRY, or --all {pattern} for all of a "
            "library"
            if pattern in LIBRARIES
            else f"no entry {pattern!r}: give LIBRARY/ENTRY of {', '.join(LIBRARIES)}, "
            f"or path/to/file.py:function{did_you_mean(pattern, LIBRARIES)}"
        )
    if prefix == HUB:
        hub: Any = library(HUB)
        return [f"{HUB}/{repository}" for repository in hub.repositories(name)]
    if prefix not in names:
        names[prefix] = names_of(prefix)
    if pattern in names[prefix]:
        return [pattern]
    if any(sign in name for sign in "*?["):
        matching = fnmatch.filter(names[prefix], pattern)
        if not matching:
            raise InputError(f"no entry of the catalog matches {pattern!r}")
        return matching
    plain = {_plain(entry): entry for entry in reversed(names[prefix])}
    for form in (_plain(pattern), _plain(pattern) + "model"):
        if form in plain:
            return [plain[form]]
    raise InputError(unknown_entry(pattern, names[prefix]))


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
