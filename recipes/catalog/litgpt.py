"""litgpt: decoders of language in one file, in the shapes of many families."""

import contextlib
import importlib
import io
from typing import Any

from passnet.data.capture.mismatched_wheels import import_torchvision
from passnet.data.capture.net import Net, tokens

ADDS = "language models: forty families of decoders written as one, each in its published shape"
PACKAGES = ("litgpt",)

LAYERS, LENGTH, CONTEXT = 4, 32, 2048
_NAMING = ("name", "hf_config")
"""Settings that only name a shape, and change no graph."""


def _load(module: str) -> Any:
    import_torchvision()
    with contextlib.redirect_stdout(io.StringIO()):
        return importlib.import_module(module)


def names() -> list[str]:
    """Return shapes by name; of equal ones the first."""
    shapes: dict[str, str] = {}
    for settings in _load("litgpt.config").configs:
        shape = {key: value for key, value in settings.items() if key not in _NAMING}
        shapes.setdefault(repr(sorted(shape.items(), key=lambda item: item[0])), settings["name"])
    return sorted(shapes.values())


def build(name: str) -> Net:
    """Build a decoder of a shape with four layers, on 32 tokens."""
    module = _load("litgpt.model")
    whole = module.Config.from_name(name)
    settings = {"n_layer": min(LAYERS, whole.n_layer)}
    if whole.sliding_window_indices:
        settings["sliding_window_indices"] = whole.sliding_window_indices[: settings["n_layer"]]
    if whole.rope_indices:
        settings["rope_indices"] = whole.rope_indices[: settings["n_layer"]]
    settings["block_size"] = min(CONTEXT, whole.block_size)
    net = module.GPT(module.Config.from_name(name, **settings))
    changes = tuple(
        f"{key} {getattr(whole, key)} -> {value}"
        for key, value in settings.items()
        if getattr(whole, key) != value
    )
    text = tokens(whole.vocab_size, 1, LENGTH)
    return Net(net.eval(), (text,), domain="nlp", task="text-generation", changes=changes)
