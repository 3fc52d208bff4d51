"""The catalog: for every library that it knows, the entries, and a net for each.

A library is one module here, with `ADDS` (what its nets add to the dataset, in a sentence),
`PACKAGES` (what to install, by the names of PyPI), `names()` and `build(name)`. Nets are built from
their architecture alone, with weights as their library initialises them; nothing is downloaded.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Protocol, cast

from passnet.errors import InputError, did_you_mean
from passnet.extract.net import Net

LIBRARIES = {
    "timm": "passnet.extract.catalog.timm",
    "transformers": "passnet.extract.catalog.transformers",
    "torchvision": "passnet.extract.catalog.torchvision",
    "diffusers": "passnet.extract.catalog.diffusers",
    "smp": "passnet.extract.catalog.smp",
    "x_transformers": "passnet.extract.catalog.x_transformers",
    "vit_pytorch": "passnet.extract.catalog.vit_pytorch",
    "monai": "passnet.extract.catalog.monai",
    "torch_geometric": "passnet.extract.catalog.torch_geometric",
    "ultralytics": "passnet.extract.catalog.ultralytics",
    "open_clip": "passnet.extract.catalog.open_clip",
    "neuralforecast": "passnet.extract.catalog.neuralforecast",
    "kornia": "passnet.extract.catalog.kornia",
    "torch_rechub": "passnet.extract.catalog.torch_rechub",
    "hub": "passnet.extract.catalog.hub",
}
"""Name of a library -> the module that knows its nets, imported on use."""


class Library(Protocol):
    """What the module of a library offers."""

    ADDS: str
    PACKAGES: tuple[str, ...]

    def names(self) -> Sequence[str]:
        """Its entries, in an order that is the same every time.

        Raises:
            ImportError: the library is not installed.
        """
        ...

    def build(self, name: str) -> Net:
        """The net of an entry, with its inputs.

        Raises:
            Exception: whatever the library raises.
        """
        ...


def library(name: str) -> Library:
    """The library of that name.

    Raises:
        InputError: there is none, or what it needs is not installed.
    """
    if name not in LIBRARIES:
        raise InputError(
            f"no library {name!r} in the catalog; it has {', '.join(LIBRARIES)}, "
            f"or give path/to/file.py:function, or hub/owner/name{did_you_mean(name, LIBRARIES)}"
        )
    try:
        return cast(Library, importlib.import_module(LIBRARIES[name]))
    except ImportError as cause:
        raise InputError(not_installed(name, cause)) from cause


def names_of(name: str) -> list[str]:
    """The entries of a library, each as `library/entry`.

    Raises:
        InputError: there is no such library, or what it needs is not installed.
    """
    known = library(name)
    try:
        return [f"{name}/{entry}" for entry in known.names()]
    except ImportError as cause:
        raise InputError(not_installed(name, cause)) from cause


def not_installed(name: str, cause: ImportError) -> str:
    """What to do about a library that cannot be imported."""
    return (
        f"the nets of {name} cannot be imported ({cause}); "
        f"install them with: pip install 'passnet[{name.replace('_', '-')}]'"
    )


def unknown_entry(entry: str, known: Sequence[str]) -> str:
    """That there is no such entry, with those whose names are near."""
    hint = did_you_mean(entry, known) or "; see `passnet extract --list`"
    return f"no entry {entry!r} in the catalog{hint}"


def library_of(entry: str) -> Library | None:
    """The library of an entry; None for a net of the user's own.

    Raises:
        InputError: there is no such library, or what it needs is not installed.
    """
    return None if is_file(entry) else library(entry.split("/", 1)[0])


def packages_of(entry: str) -> tuple[str, ...]:
    """The packages whose versions decide what an entry gives."""
    try:
        known = library_of(entry)
    except InputError:
        return ()
    return known.PACKAGES if known else ()


def build_entry(entry: str) -> Net:
    """The net of an entry, with its inputs.

    Raises:
        InputError: there is no such entry.
        Exception: whatever its library, or its file, raises.
    """
    known = library_of(entry)
    if known is None:
        from passnet.extract.catalog.file import build_function

        return build_function(entry)
    return known.build(entry.split("/", 1)[1])


def is_file(entry: str) -> bool:
    """Whether an entry is a function in a file: `path/to/file.py:function`."""
    return ".py:" in entry
