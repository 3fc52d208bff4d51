"""The catalog: nets that can be captured by name, LIBRARY/NET.

    timm, torchvision  nets for images and video
    transformers       language and multimodal nets
    hub                repositories of the Hugging Face hub
    file               functions and catalogs in Python files

A library is a module that meets `Library`; a Python file with `names()` and `build(name)` is a
catalog as well. Nets have the initial weights of their library: nothing is downloaded.
"""

import fnmatch
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import torch

from passnet.data.capture.catalog.file import build_function, load_catalog
from passnet.data.capture.known_nets import LIBRARIES, RECIPES, remember_nets
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net
from passnet.data.capture.record import entry_file, is_file, split_entry
from passnet.errors import InputError, did_you_mean, neighbours

T = TypeVar("T")

HUB = "hub"

MAX_REASON_CHARACTERS = 300

RECIPE_FOLDER = Path(__file__).parents[5] / "recipes" / "catalog"


class Library(Protocol):
    """The interface of a library's module; `ADDS` describes its nets, `PACKAGES` are on PyPI."""

    ADDS: str
    PACKAGES: tuple[str, ...]

    def names(self) -> Sequence[str]:
        """Return its entries, always in the same order."""
        ...

    def build(self, name: str) -> Net:
        """Build the net of an entry, with its inputs."""
        ...


def libraries() -> list[str]:
    """Return the names of all libraries: the package's, and the recipes of a checkout."""
    return [*LIBRARIES, *(name for name in RECIPES if _recipe(name).is_file())]


def canonical_name(name: str) -> str:
    """Return the name of a library in records: of a catalog file, its absolute path."""
    if not name.endswith(".py"):
        return name
    path = Path(name).resolve()
    return path.stem if path == _recipe(path.stem) else str(path)


def _recipe(name: str) -> Path:
    return RECIPE_FOLDER / f"{name}.py"


def library(name: str) -> Library:
    """Return the module of a library, installed or not, or of a catalog file."""
    if name in LIBRARIES:
        return cast(Library, importlib.import_module(f"{__name__}.{name}"))
    if name.endswith(".py"):
        return cast(Library, load_catalog(Path(name)))
    if name not in RECIPES:
        raise InputError(
            f"no library {name!r} in the catalog; give one of {', '.join(libraries())}, "
            "hub/owner/name, path/to/file.py:function or path/to/catalog.py/name"
            f"{did_you_mean(name, libraries())}"
        )
    if not _recipe(name).is_file():
        raise InputError(
            f"the catalog of {name} is not part of the installed package; use passnet from a "
            f"checkout of its source, which has recipes/catalog/{name}.py"
        )
    return cast(Library, load_catalog(_recipe(name)))


def names_of(name: str) -> list[str]:
    """Return the entries of a library, each as `library/entry`; shells can then complete them."""
    try:
        entries = [f"{name}/{entry}" for entry in library(name).names()]
        remember_nets(name, entries)
        return entries
    except ModuleNotFoundError as cause:
        is_ours = name in LIBRARIES or name in RECIPES
        extra = f"'passnet[{name.replace('_', '-')}]'" if is_ours else " ".join(packages_of(name))
        raise InputError(
            f"the nets of {name} cannot be imported ({cause}); install them with: "
            f"pip install {extra or cause.name}"
        ) from cause
    except InputError:
        raise
    except Exception as cause:  # boundary: a library raises anything while it is imported
        kind = "" if isinstance(cause, ImportError) else f"{type(cause).__name__}: "
        text = f"{kind}{' '.join(str(cause).split())[:MAX_REASON_CHARACTERS]}"
        packages = " and ".join(packages_of(name)) or "its packages"
        raise InputError(
            f"the nets of {name} cannot be imported ({text}); install builds of "
            f"{packages} that fit torch {torch.__version__}"
        ) from cause


def listed(
    package: str, entries: Iterable[str], load: Callable[[str], Any] = import_with_torchvision
) -> Callable[[], list[str]]:
    """Return a library's `names` function: the given entries, if `load` can import the package."""

    def names() -> list[str]:
        load(package)
        return list(entries)

    return names


def unknown_entry(entry: str, entries: Iterable[str]) -> str:
    """Return the text of an error about an unknown entry, with similar names."""
    name, is_whole, _ = entry.partition("/")
    command = f"passnet extract --list{f' --catalog {name}' if is_whole else ''}"
    hint = did_you_mean(entry, entries) or f"; see `{command}`"
    return f"no entry {entry!r} in the catalog{hint}"


def row_of(table: Mapping[str, T], name: str) -> T:
    """Return the row of an entry in a table."""
    if name not in table:
        raise ValueError(unknown_entry(name, table))
    return table[name]


def packages_of(entry: str) -> tuple[str, ...]:
    """Return the packages whose versions decide an entry's graphs; none for a user's own net."""
    try:
        return () if is_file(entry) else library(split_entry(entry)[0]).PACKAGES
    except InputError:
        return ()


def build_entry(
    entry: str, train: bool = False, weights: AbstractContextManager[Any] | None = None
) -> Net:
    """Build the net of an entry (LIBRARY/NET, PATH.py/NET or PATH.py:FUNCTION); the same every
    time. `weights` is the context to build it in, such as one that makes fake weights.

    Raises:
        InputError: there is no such entry.
        Exception: whatever its library, or its file, raises.
    """
    torch.manual_seed(0)
    with weights or nullcontext():
        if is_file(entry):
            net = build_function(entry)
        else:
            library_name, name = split_entry(entry)
            net = library(library_name).build(name)
        if isinstance(net.module, torch.nn.Module):
            net.module.train(train)
    return net


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


def _nameless(pattern: str) -> str:
    """Return the text of an error about a library or a file without an entry."""
    if pattern in libraries():
        command = f"passnet extract --list --catalog {pattern}"
        return f"{pattern} is a library: give {pattern}/ENTRY; `{command}` lists them"
    if pattern.endswith(".py"):
        return f"{pattern}: give {pattern}:FUNCTION, or {pattern}/ENTRY of a file with a catalog"
    return (
        f"no entry {pattern!r}: give LIBRARY/ENTRY of {', '.join(libraries())}, "
        f"path/to/catalog.py/ENTRY or path/to/file.py:function{did_you_mean(pattern, libraries())}"
    )


def _matching(pattern: str, names: dict[str, list[str]]) -> list[str]:
    """Return the entries that match; `names` caches the libraries read so far."""
    file = entry_file(pattern)
    if file is not None and not file.is_file():
        raise InputError(f"{file}: no such file{did_you_mean(str(file), neighbours(file))}")
    if is_file(pattern):
        return [f"{Path(str(file)).resolve()}:{pattern.rpartition(':')[2]}"]
    path, colon, function = pattern.rpartition(":")
    if colon:
        raise InputError(f"{path}: no Python file; give path/to/file.py:{function or 'function'}")
    prefix, name = split_entry(pattern)
    if not name:
        raise InputError(_nameless(pattern))
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
