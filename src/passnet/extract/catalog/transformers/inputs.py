"""What a net of transformers is called with: made from its arguments and its configuration."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from passnet.extract.catalog.transformers.arguments import MAKERS
from passnet.extract.catalog.transformers.config_view import ConfigView
from passnet.extract.catalog.transformers.families import FAMILIES
from passnet.extract.catalog.transformers.required_arguments import REQUIRED
from passnet.extract.net import NetInput


def inputs(net: torch.nn.Module, config: Any) -> dict[str, NetInput]:
    """What to call a net with, by name.

    Raises:
        ValueError: forward takes something that is not known here how to make.
    """
    look = ConfigView(net, config)
    made: dict[str, NetInput] = {}
    own = FAMILIES.get(type(net).__name__) or FAMILIES.get(look.family, {})
    for name, param in look.params.items():
        required = param.default is param.empty and param.kind is param.POSITIONAL_OR_KEYWORD
        maker = own.get(name, MAKERS.get(name) or (REQUIRED.get(name) if required else None))
        if maker is None and required:
            raise ValueError(f"no rule for the argument {name!r} of {type(net).__name__}")
        given = maker(look) if maker is not None else None
        if given is not None:
            made[name] = given
    insert_placeholders(look, made)
    return made


PLACES = (
    (("pixel_values",), ("image_grid_thw", "image_sizes"),
     ("image_token_id", "image_token_index", "img_token_id"), "get_image_features"),
    (("input_features", "input_values"), ("input_features_mask",),
     ("audio_token_id", "audio_token_index"), "get_audio_features"),
)  # fmt: skip
"""Arguments that are not text, what goes with them, the settings that name their tokens, who makes
their features."""


def omitted_inputs(net: torch.nn.Module, made: Mapping[str, NetInput]) -> tuple[str, ...]:
    """The images or sounds that a net takes beside text, and is called without."""
    takes = inspect.signature(net.forward).parameters
    return tuple(
        names[0]
        for names, _, _, _ in PLACES
        if "input_ids" in made and set(names) & set(takes) and not set(names) & set(made)
    )


def insert_placeholders(look: ConfigView, made: dict[str, NetInput]) -> None:
    """Put as many placeholders before the text as the image, or sound, has features.

    The net is asked how many these are, by the method that it makes them with. Where that fails,
    what is not text is left out.
    """
    if "input_ids" not in made:
        return
    for names, beside, keys, method in PLACES:
        given = [name for name in names if name in made]
        token = look.find(*keys)
        ask = getattr(getattr(look.net, "model", None), method, getattr(look.net, method, None))
        if not given or token is None or ask is None:
            continue
        takes = inspect.signature(ask).parameters
        arguments = {
            name: made[name].value for name in made if name in takes and name != "input_ids"
        }
        try:
            with torch.no_grad():
                count = _rows(ask(**arguments))
        except Exception:  # noqa: BLE001 (boundary: a net whose defaults do not fit raises anything)
            for name in (*names, *beside):  # a net that reads text can be called with that alone
                made.pop(name, None)
            continue
        ids = made["input_ids"].value
        marks = torch.from_numpy(np.full((ids.shape[0], count), int(token)))
        ids = torch.from_numpy(np.concatenate([marks.numpy(), ids.numpy()], 1))
        made["input_ids"] = NetInput(ids, ("batch", "sequence"))
    ids = made["input_ids"].value
    for name in ("attention_mask", "token_type_ids", "mm_token_type_ids"):
        if name in made or (name == "mm_token_type_ids" and name in look.params):
            made[name] = _mask(look, ids, name)


def _mask(look: ConfigView, ids: torch.Tensor, name: str) -> NetInput:
    values = np.ones(ids.shape, np.int64)
    if name == "mm_token_type_ids":
        token = look.find(*PLACES[0][2], default=-1)
        values = (ids.numpy() == int(token)).astype(np.int64)
    return NetInput(torch.from_numpy(values), ("batch", "sequence"))


def _rows(features: Any) -> int:
    """Number of feature vectors in what a method of features returns."""
    if hasattr(features, "pooler_output"):
        features = features.pooler_output
    if isinstance(features, (list, tuple)):
        return sum(_rows(item) for item in features)
    count = 1
    for size in features.shape[:-1]:
        count *= int(size)
    return count
