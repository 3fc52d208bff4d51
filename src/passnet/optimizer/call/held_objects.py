"""Containers and tensors that a net holds outside of its parameters and buffers.

Attributes of modules are followed through dicts, lists, tuples and the attributes of plain objects,
such as a configuration. Sets, closures, globals and objects of torch and C++ are not looked into.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

OF_MODULES = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks")
"""Dicts of a module that are watched by themselves."""

_OF_TORCH = frozenset(vars(torch.nn.Module()))
"""Attributes of every module, whose containers are of torch."""

OF_TRANSFORMERS = frozenset(
    {"generation_config", "_previous_max_cache_length", "_output_capturing_hooks_installed"}
)
"""Attributes that transformers sets in a model, and outputs do not depend on."""

MOST = 20_000
"""The most objects that are looked at; a net that holds more is watched in these alone."""

_OPAQUE = (torch.nn.Module, type, FunctionType, MethodType, ModuleType, torch.Generator)


@dataclass(slots=True)
class HeldObjects:
    """Mutable containers and tensors by their paths, such as `blocks.0.scales[1]`."""

    containers: dict[str, dict[Any, Any] | list[Any]] = field(default_factory=dict)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)


def held_by(net: torch.nn.Module) -> HeldObjects:
    """Return the containers and tensors that the attributes of a net's modules hold.

    Examples:
        >>> net = torch.nn.Identity()
        >>> net.scales = [1.0, (torch.ones(2),)]
        >>> held = held_by(net)
        >>> list(held.containers), list(held.tensors)
        (['scales'], ['scales[1][0]'])
    """
    held, seen = HeldObjects(), {id(module) for module in net.modules()}
    weights = {id(tensor) for tensor in (*net.parameters(), *net.buffers())}
    for path, module in net.named_modules():
        for name, value in vars(module).items():
            if name not in _OF_TORCH | OF_TRANSFORMERS:
                _add(f"{path}.{name}" if path else name, value, held, seen, weights)
    return held


def _add(path: str, value: Any, held: HeldObjects, seen: set[int], weights: set[int]) -> None:
    if isinstance(value, torch.Tensor):
        if id(value) not in weights and id(value) not in seen:
            held.tensors[path] = value
            seen.add(id(value))
        return
    if id(value) in seen or len(seen) > MOST or isinstance(value, _OPAQUE):
        return
    children = [*_children(value)]
    if children or isinstance(value, (dict, list)):
        seen.add(id(value))
    if isinstance(value, (dict, list)):
        held.containers[path] = value
    elif children and not isinstance(value, tuple):
        held.containers[path] = vars(value)
    for step, child in children:
        _add(path + step, child, held, seen, weights)


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", child) for key, child in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{number}]", child) for number, child in enumerate(value))
    elif (
        isinstance(getattr(value, "__dict__", None), dict)
        and type(value).__module__.partition(".")[0] != "torch"
    ):
        yield from ((f".{name}", child) for name, child in vars(value).items())
