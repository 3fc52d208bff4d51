"""Names of the catalog that are known without its libraries, which take seconds to import."""

from collections.abc import Sequence
from contextlib import suppress

from passnet.core.records.folders import cache_folder

LIBRARIES = ("timm", "transformers", "torchvision", "hub")
"""The modules of `catalog`, imported on use."""

RECIPES = (
    "diffusers", "smp", "x_transformers", "vit_pytorch", "monai", "torch_geometric", "ultralytics",
    "open_clip", "neuralforecast", "kornia", "torch_rechub", "braindecode", "pypots", "torchaudio",
    "speechbrain", "torchrl", "torchani", "fair_esm", "litgpt", "zuko", "neuraloperator",
    "transformers_variants", "transformer_lens", "one_net_text", "asteroid", "peft",
    "torchtune", "torchscale", "pytorchcv", "birder", "one_net_sequences",
)  # fmt: skip
"""The libraries whose catalog is a file of `catalog.RECIPE_FOLDER`, which only a checkout has."""


def remember_nets(library: str, entries: Sequence[str]) -> None:
    """Keep the entries of a library of the catalog in the user's cache, if that can be written."""
    if library in (*LIBRARIES, *RECIPES):
        with suppress(OSError):
            (cache_folder("nets") / library).write_text("\n".join(entries), encoding="utf-8")


def known_nets(library: str) -> list[str]:
    """Return the entries of a library that were kept; none before it was first listed."""
    with suppress(OSError):
        return (cache_folder("nets") / library).read_text(encoding="utf-8").splitlines()
    return []
