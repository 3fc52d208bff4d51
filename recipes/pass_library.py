"""The library of passes that is shipped: the output of `compiler` for the blocks of common nets.

Run it with `python recipes/pass_library.py library`; it needs `pip install passnet[models]` and a
quiet machine for some minutes. The nets have random weights. `compiler` gets each of their ranges,
judged on one thread. Passes that win with the whole interval are exported with their trials, and so
with their hardware.
"""

import sys
import tempfile
from pathlib import Path

import torch

from passnet.data.capture.capture import capture_values
from passnet.data.capture.catalog import build_entry
from passnet.data.capture.net import input_values
from passnet.optimizer.choose.pass_choice import choose_passes
from passnet.passes.library.store import PassLibrary

NETS = (
    "timm/vit_tiny_patch16_224",
    "timm/convnext_atto",
    "timm/mobilenetv3_small_050",
    "timm/resnet18",
    "timm/mixer_s16_224",
    "transformers/BertModel",
)
"""Nets whose blocks others have too."""

BUDGET_S = 45.0
"""Seconds for the ranges of one net, those that take longest first."""


def main(out: Path) -> None:
    """Make the library in a new folder."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="passnet-library-") as folder:
        library = PassLibrary(Path(folder))
        for name in NETS:
            net = build_entry(name)
            args, kwargs = input_values(net)
            graphs = capture_values(net.module, *args, **kwargs)
            choice = choose_passes(graphs, library, ("compiler",), BUDGET_S)
            wins = sum(result.status == "wins" for result in choice.results)
            print(f"{name}: {len(choice.results)} ranges, {wins} passes that win", flush=True)
        library.export(out, [entry for entry in library.entries() if entry.saved_ms > 0])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
