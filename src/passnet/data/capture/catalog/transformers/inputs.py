"""Inputs of a transformers net, made from its arguments and its configuration."""

import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from passnet.data.capture.catalog.transformers.arguments import MAKERS, REQUIRED
from passnet.data.capture.catalog.transformers.families import own_makers
from passnet.data.capture.catalog.transformers.input_factories import ConfigView
from passnet.data.capture.net import NetInput


def inputs(net: torch.nn.Module, config: Any) -> dict[str, NetInput]:
    """Return the inputs of a net by name."""
    view = ConfigView(net, config)
    arguments: dict[str, NetInput] = {}
    own = own_makers(view)
    for name, param in view.params.items():
        required = param.default is param.empty and param.kind is param.POSITIONAL_OR_KEYWORD
        maker = own.get(name, MAKERS.get(name) or (REQUIRED.get(name) if required else None))
        if maker is None and required:
            raise ValueError(f"no rule for the argument {name!r} of {view.class_name}")
        argument = maker(view) if maker is not None else None
        if argument is not None:
            arguments[name] = argument
    insert_placeholders(view, arguments)
    return arguments


_IMAGE_TOKENS = ("image_token_id", "image_token_index", "img_token_id")

MODALITIES = (
    (("pixel_values",), ("image_grid_thw", "image_sizes"), _IMAGE_TOKENS, "get_image_features"),
    (("input_features", "input_values"), ("input_features_mask",),
     ("audio_token_id", "audio_token_index"), "get_audio_features"),
)  # fmt: skip
"""Arguments, their companions, the settings that name their tokens, and the method for features."""


def omitted_inputs(net: torch.nn.Module, arguments: Mapping[str, NetInput]) -> tuple[str, ...]:
    """Return the images or sounds that a net takes besides text, and is called without."""
    params = inspect.signature(net.forward).parameters
    return tuple(
        names[0]
        for names, _, _, _ in MODALITIES
        if "input_ids" in arguments and set(names) & set(params) and not set(names) & set(arguments)
    )


def insert_placeholders(view: ConfigView, arguments: dict[str, NetInput]) -> None:
    """Put a placeholder before the text for each feature; without a working method, drop them."""
    if "input_ids" not in arguments:
        return
    for names, companions, keys, method in MODALITIES:
        token = view.find(*keys)
        make = getattr(view.net, method, None)
        make = getattr(getattr(view.net, "model", None), method, make)
        if not set(names) & set(arguments) or token is None or make is None:
            continue
        params = set(inspect.signature(make).parameters) - {"input_ids"}
        values = {name: arguments[name].value for name in arguments if name in params}
        try:
            with torch.no_grad():
                count = _num_vectors(make(**values))
        except Exception:  # noqa: BLE001 (boundary: a net whose defaults do not fit raises anything)
            for name in (*names, *companions):  # a net that reads can be called with text alone
                arguments.pop(name, None)
            continue
        ids = arguments["input_ids"].value.numpy()
        placeholders = np.full((ids.shape[0], count), int(token))
        ids = torch.from_numpy(np.concatenate([placeholders, ids], 1))
        arguments["input_ids"] = NetInput(ids, ("batch", "sequence"))
    ids = arguments["input_ids"].value.numpy()
    masks = {"attention_mask", "token_type_ids"} & set(arguments)
    masks |= {"mm_token_type_ids"} & (set(arguments) | set(view.params))
    for name in sorted(masks):
        mask = np.ones(ids.shape, np.int64)
        if name == "mm_token_type_ids":
            mask = (ids == int(view.find(*_IMAGE_TOKENS, default=-1))).astype(np.int64)
        arguments[name] = NetInput(torch.from_numpy(mask), ("batch", "sequence"))


def _num_vectors(features: Any) -> int:
    features = getattr(features, "pooler_output", features)
    if isinstance(features, (list, tuple)):
        return sum(map(_num_vectors, features))
    return math.prod(map(int, features.shape[:-1]))
