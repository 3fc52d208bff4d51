"""Numbers, strings and the like in the attributes of a net, as text: what a folder is made for."""

from collections.abc import Mapping
from typing import Any

import torch

from passnet.optimizer.call.held_objects import OF_TRANSFORMERS, held_by
from passnet.optimizer.call.net_state import OF_COMPILERS, attributes_of
from passnet.optimizer.call.values import is_plain

_OF_FILES = {"_name_or_path", "name_or_path", "transformers_version", "architectures", "dtype"}
"""What saving or loading a model of transformers writes into its configuration."""

_OF_TORCH = frozenset(vars(torch.nn.Module())) - {"training"}


def plain_attributes(net: torch.nn.Module) -> dict[str, str]:
    """Return the plain values among the attributes of a net's modules, by path.

    >>> net = torch.nn.Identity()
    >>> net.scale = 2.5
    >>> plain_attributes(net)
    {'scale': '2.5', 'training': 'True'}
    """
    found: dict[str, str] = {}
    for path, own in attributes_of(net).items():
        _add(path, {f".{name}": value for name, value in own.items()}, found)
    for path, held in held_by(net).containers.items():
        if path.rpartition(".")[2] in _OF_FILES:
            continue
        pairs = held.items() if isinstance(held, Mapping) else enumerate(held)
        _add(path, {f"[{key!r}]": value for key, value in pairs}, found)
    return dict(sorted(found.items()))


def _add(path: str, entries: Mapping[str, Any], found: dict[str, str]) -> None:
    left_out = OF_COMPILERS | OF_TRANSFORMERS | _OF_FILES | _OF_TORCH
    for step, value in entries.items():
        if is_plain(value) and step.strip("[]'.") not in left_out:
            found[f"{path}{step}".removeprefix(".")] = repr(value)
