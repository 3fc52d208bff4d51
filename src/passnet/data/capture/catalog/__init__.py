"""The catalog: for every library that it knows, the entries, and a net for each.

    file                                          nets of the user's own, from a function in a file
    hub                                           repositories of the Hugging Face hub
    timm, torchvision, vit_pytorch                images and video
    transformers, x_transformers, litgpt          language and multimodal nets
    diffusers, open_clip, kornia, ultralytics     images made, matched and searched
    smp, monai                                    segmentation and medical images
    speechbrain, torchaudio, braindecode          speech and brain signals
    neuralforecast, pypots, torch_rechub          time series and recommendation
    torch_geometric, torchani, fair_esm           graphs, molecules and proteins
    torchrl, zuko, neuraloperator                 control, flows and differential equations

A library is one module, with `ADDS` (what its nets add to the dataset, in a sentence), `PACKAGES`
(what to install, by the names of PyPI), `names()` and `build(name)`. Nets are built from their
architecture alone, with weights as their library initialises them; nothing is downloaded.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar, cast

import torch

from passnet.data.capture.net import Net
from passnet.data.capture.torchvision_ops import import_with_torchvision
from passnet.errors import InputError, did_you_mean

T = TypeVar("T")

MAX_REASON_CHARACTERS = 300
"""Of what a library says that cannot be imported."""

LIBRARIES = (
    "timm", "transformers", "torchvision", "diffusers", "smp", "x_transformers", "vit_pytorch",
    "monai", "torch_geometric", "ultralytics", "open_clip", "neuralforecast", "kornia",
    "torch_rechub", "braindecode", "pypots", "torchaudio", "speechbrain", "torchrl", "torchani",
    "fair_esm", "litgpt", "zuko", "neuraloperator", "hub",
)  # fmt: skip
"""The modules of this folder that know the nets of a library, imported on use."""

LICENCES: dict[str, str] = {
    **dict.fromkeys(
        ("timm", "transformers", "diffusers", "monai", "neuralforecast", "kornia", "speechbrain",
         "litgpt"), "Apache-2.0"),
    **dict.fromkeys(
        ("segmentation-models-pytorch", "x-transformers", "vit-pytorch", "torch_geometric",
         "open_clip_torch", "torch-rechub", "torchrl", "torchani", "fair-esm", "zuko",
         "neuraloperator"), "MIT"),
    **dict.fromkeys(("torch", "torchvision", "braindecode", "pypots"), "BSD-3-Clause"),
    "torchaudio": "BSD-2-Clause",
    "ultralytics": "AGPL-3.0",
}  # fmt: skip
"""Package -> the licence of its code, as its metadata, or the file in its source, has it."""


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
    """The library of that name, which need not be installed.

    Raises:
        InputError: there is none.
    """
    if name not in LIBRARIES:
        raise InputError(
            f"no library {name!r} in the catalog; it has {', '.join(LIBRARIES)}, "
            f"or give path/to/file.py:function, or hub/owner/name{did_you_mean(name, LIBRARIES)}"
        )
    return cast(Library, importlib.import_module(f"{__name__}.{name}"))


def names_of(name: str) -> list[str]:
    """The entries of a library, each as `library/entry`.

    Raises:
        InputError: there is no such library, or what it needs is not installed, or broken.
    """
    try:
        return [f"{name}/{entry}" for entry in library(name).names()]
    except ModuleNotFoundError as cause:
        raise InputError(
            f"the nets of {name} cannot be imported ({cause}); "
            f"install them with: pip install 'passnet[{name.replace('_', '-')}]'"
        ) from cause
    except InputError:
        raise
    except Exception as cause:  # boundary: a library raises anything while it is imported
        raise InputError(
            f"the nets of {name} cannot be imported ({_import_failure(cause)}); install builds of "
            f"{' and '.join(packages_of(name))} that fit torch {torch.__version__}"
        ) from cause


def _import_failure(cause: Exception) -> str:
    """Why a library cannot be imported, on one line."""
    kind = "" if isinstance(cause, ImportError) else f"{type(cause).__name__}: "
    return f"{kind}{' '.join(str(cause).split())[:MAX_REASON_CHARACTERS]}"


def listed(
    package: str, entries: Iterable[str], load: Callable[[str], Any] = import_with_torchvision
) -> Callable[[], list[str]]:
    """The `names` of a library whose entries stand in a table: these, if `load` can import it."""

    def names() -> list[str]:
        load(package)
        return list(entries)

    return names


def unknown_entry(entry: str, entries: Iterable[str]) -> str:
    """That there is no such entry, with those whose names are near."""
    hint = did_you_mean(entry, entries) or "; see `passnet extract --list`"
    return f"no entry {entry!r} in the catalog{hint}"


def row_of(table: Mapping[str, T], name: str) -> T:
    """What a table of entries holds for one.

    Raises:
        ValueError: the table has no such entry.
    """
    if name not in table:
        raise ValueError(unknown_entry(name, table))
    return table[name]


def packages_of(entry: str) -> tuple[str, ...]:
    """The packages whose versions decide what an entry gives; none for a net of the user's own."""
    try:
        return () if is_file(entry) else library(entry.split("/", 1)[0]).PACKAGES
    except InputError:
        return ()


def build_entry(
    entry: str, train: bool = False, weights: AbstractContextManager[Any] | None = None
) -> Net:
    """The net of an entry of the catalog or of a file, with its inputs; the same every time.

    `train` puts it into the mode of training, not of evaluation; `weights` is the context to build
    it in, such as one that makes fake weights.

    Raises:
        InputError: there is no such entry.
        Exception: whatever its library, or its file, raises.
    """
    torch.manual_seed(0)
    with weights or nullcontext():
        if is_file(entry):
            from passnet.data.capture.catalog.file import build_function

            net = build_function(entry)
        else:
            library_name, _, name = entry.partition("/")
            net = library(library_name).build(name)
        if isinstance(net.module, torch.nn.Module):
            net.module.train(train)
    return net


def is_file(entry: str) -> bool:
    """Whether an entry is a function in a file: `path/to/file.py:function`."""
    return ".py:" in entry
