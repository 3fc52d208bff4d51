"""Selection of entries by name, pattern, file and library."""

import fnmatch
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from passnet.data.capture.catalog import canonical_name, libraries, library, names_of, unknown_entry
from passnet.data.capture.record import entry_file, is_file, split_entry
from passnet.errors import InputError, did_you_mean, neighbours

HUB = "hub"


def resolve(patterns: Sequence[str], whole_libraries: Sequence[str] = ()) -> list[str]:
    """Return the selected entries, each once, in the order of their selectors.

    Args:
        patterns: `library/entry`, also with shell wildcards, in other case, and without the ending
            Model (`transformers/bert`); the same with the path of a catalog file as library;
            `path/to/file.py:function`; `hub/owner/name`; `hub/list.txt`, a repository a line.
        whole_libraries: libraries, or paths of catalog files, that are selected whole.

    Raises:
        InputError: a selector fits nothing; the text lists similar names.
    """
    if HUB in whole_libraries:
        raise InputError("the hub cannot be captured as a whole; name repositories of it")
    selected = [canonical_name(name) for name in whole_libraries]
    names = {name: names_of(name) for name in selected}
    entries = [entry for name in selected for entry in names[name]]
    for pattern in patterns:
        entries += _matching(pattern, names)
    return list(dict.fromkeys(entries))


def _matching(pattern: str, names: dict[str, list[str]]) -> list[str]:
    """Return the entries that match; `names` caches those of the libraries read so far."""
    file = entry_file(pattern)
    if file is not None and not file.is_file():
        raise InputError(f"{file}: no such file{did_you_mean(str(file), neighbours(file))}")
    if is_file(pattern):
        return [f"{Path(str(file)).resolve()}:{pattern.rpartition(':')[2]}"]
    prefix, name = split_entry(pattern)
    if not name:
        raise InputError(
            f"{pattern!r} names no entry: give LIBRARY/ENTRY, or --catalog {pattern} for all of a "
            "library"
            if pattern in libraries() or pattern.endswith(".py")
            else f"no entry {pattern!r}: give LIBRARY/ENTRY of {', '.join(libraries())}, "
            f"path/to/catalog.py/ENTRY or path/to/file.py:function"
            f"{did_you_mean(pattern, libraries())}"
        )
    prefix = canonical_name(prefix)
    pattern = f"{prefix}/{name}"
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
