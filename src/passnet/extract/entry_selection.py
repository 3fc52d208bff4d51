"""Which entries of the catalog are meant: names, patterns, files, whole libraries."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

from passnet.errors import InputError, did_you_mean, neighbours
from passnet.extract.catalog import LIBRARIES, is_file, library, names_of, unknown_entry

HUB = "hub"


def resolve(wanted: Sequence[str], libraries: Sequence[str] = ()) -> list[str]:
    """The entries that are meant, each once, in the order in which they are named.

    Args:
        wanted: `library/entry`, also with the wildcards of a shell and in other case, and without
            the ending Model (`transformers/bert`); `path/to/file.py:function`;
            `hub/owner/name`, or `hub/list.txt` with a repository on each line.
        libraries: names of libraries of which every entry is meant.

    Raises:
        InputError: something is meant that does not exist; the text lists what is near.
    """
    found: list[str] = []
    names = {name: names_of(name) for name in libraries}
    for name in libraries:
        if name == HUB:
            raise InputError("the hub cannot be captured as a whole; name repositories of it")
        found += names[name]
    for item in wanted:
        found += _resolve(item, names)
    return list(dict.fromkeys(found))


def _resolve(item: str, names: dict[str, list[str]]) -> list[str]:
    if is_file(item):
        path, _, function = item.rpartition(":")
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file{did_you_mean(path, neighbours(Path(path)))}")
        return [f"{Path(path).resolve()}:{function}"]
    prefix, _, rest = item.partition("/")
    if not rest:
        raise InputError(
            f"{item!r} names no entry: give LIBRARY/ENTRY, or --all {item} for all of a library"
            if item in LIBRARIES
            else f"no entry {item!r}: give LIBRARY/ENTRY of {', '.join(LIBRARIES)}, "
            f"or path/to/file.py:function{did_you_mean(item, LIBRARIES)}"
        )
    if prefix == HUB:
        return [f"{HUB}/{name}" for name in _repositories(rest)]
    if prefix not in names:
        names[prefix] = names_of(prefix)
    known = names[prefix]
    if item in known:
        return [item]
    if any(sign in rest for sign in "*?["):
        matching = fnmatch.filter(known, item)
        if not matching:
            raise InputError(f"no entry of the catalog matches {item!r}")
        return matching
    plain = {_plain(name): name for name in reversed(known)}
    for form in (_plain(item), _plain(item) + "model"):
        if form in plain:
            return [plain[form]]
    raise InputError(unknown_entry(item, known))


def _repositories(rest: str) -> list[str]:
    path = Path(rest)
    if path.suffix == ".txt":
        from passnet.extract.catalog.hub import repositories

        return list(repositories(rest))
    library(HUB)
    return [rest]


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
