"""Containers and tensors that a net holds outside of its parameters and buffers.

Attributes of modules are followed through dicts, lists, deques, tuples, partial functions, modules
without weights and the attributes of plain objects, such as a configuration; those of classes
through dicts, lists, deques and tuples. Python attributes of weights count, too. Sets, closures,
globals and objects of torch and C++ are not looked into.
"""

import sys
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

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

_OPAQUE = (type, FunctionType, MethodType, ModuleType, torch.Generator)


class SlotValues(Mapping[str, Any]):
    """The attributes of an object that has a place for each, by name, as they are now."""

    def __init__(self, value: object) -> None:
        self._value = value
        classes = type(value).__mro__
        self._names = [name for kind in classes for name in _slots(kind)]

    def __getitem__(self, name: str) -> Any:
        """Return the value of an attribute."""
        return getattr(self._value, name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of attributes that have a value."""
        return (name for name in self._names if hasattr(self._value, name))

    def __len__(self) -> int:
        """Return the number of attributes that have a value."""
        return sum(1 for _ in self)


Container: TypeAlias = "Mapping[Any, Any] | list[Any] | deque[Any]"
"""A dict, also of the attributes of an object, a list or a deque, or `SlotValues`."""


@dataclass(slots=True)
class HeldObjects:
    """Mutable containers and tensors by their paths, such as `blocks.0.scales[1]`."""

    containers: dict[str, Container] = field(default_factory=dict)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)


def held_by(net: torch.nn.Module, with_classes: bool = True) -> HeldObjects:
    """Return the containers and tensors that the attributes of a net's modules hold.

    Of what classes hold, which copies of a net share, they are the containers alone.

    Examples:
        >>> net = torch.nn.Identity()
        >>> net.scales = [1.0, (torch.ones(2),)]
        >>> held = held_by(net)
        >>> list(held.containers), list(held.tensors)
        (['scales'], ['scales[1][0]'])
    """
    held, of_classes = HeldObjects(), HeldObjects()
    seen = {id(module) for module in net.modules()}
    own = [*net.named_parameters(), *net.named_buffers()]
    weights = {id(tensor) for _, tensor in own}
    for path, module in net.named_modules():
        for name, value in vars(module).items():
            if name not in _OF_TORCH | OF_TRANSFORMERS:
                _add(f"{path}.{name}" if path else name, value, held, seen, weights)
    for path, tensor in own:
        if any(name[0] != "_" for name in vars(tensor)):
            held.containers[path] = vars(tensor)
    classes = [base for module in net.modules() for base in type(module).__mro__]
    for kind in dict.fromkeys(classes if with_classes else ()):
        if kind.__module__.partition(".")[0] not in ("torch", "builtins"):
            for name, value in vars(kind).items():
                if isinstance(value, (dict, list, deque, tuple)) and name[:2] != "__":
                    _add(f"{kind.__qualname__}.{name}", value, of_classes, seen, weights)
    held.containers |= of_classes.containers
    return held


def _add(path: str, value: Any, held: HeldObjects, seen: set[int], weights: set[int]) -> None:
    if isinstance(value, torch.Tensor):
        if id(value) not in weights and id(value) not in seen:
            held.tensors[path] = value
            seen.add(id(value))
        return
    if id(value) in seen or len(seen) > MOST or isinstance(value, _OPAQUE):
        return
    if isinstance(value, torch.nn.Module) and any(map(_has_weights, value.modules())):
        return
    children = [*_children(value)]
    is_container = isinstance(value, (dict, list, deque))
    if children or is_container:
        seen.add(id(value))
    if is_container:
        held.containers[path] = value
    elif children and isinstance(getattr(value, "__dict__", None), dict):
        held.containers[path] = vars(value)
    elif children and not isinstance(value, tuple):
        held.containers[path] = SlotValues(value)
    for step, child in children:
        _add(path + step, child, held, seen, weights)


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", child) for key, child in value.items())
    elif isinstance(value, (list, tuple, deque)):
        yield from ((f"[{number}]", child) for number, child in enumerate(value))
    elif isinstance(value, partial):
        yield from ((".func", value.func), (".args", value.args), (".keywords", value.keywords))
    elif isinstance(value, torch.nn.Module) or _is_object(value, "__dict__", {"torch"}):
        yield from ((f".{name}", child) for name, child in vars(value).items())
    elif _is_object(value, "__slots__", {"torch", *sys.stdlib_module_names}):  # paths keep more
        yield from ((f".{name}", child) for name, child in SlotValues(value).items())


def _has_weights(module: torch.nn.Module) -> bool:
    return bool(module._parameters or module._buffers)


def _is_object(value: Any, holds: str, others: Collection[str]) -> bool:
    """Return whether a value is an object with attributes, and not of other packages."""
    package = type(value).__module__.partition(".")[0]
    return package not in others and isinstance(
        getattr(value, holds, None), (dict, tuple, list, str)
    )


def _slots(kind: type) -> Iterator[str]:
    names = vars(kind).get("__slots__", ())
    for name in (names,) if isinstance(names, str) else names:
        if name not in ("__dict__", "__weakref__"):
            is_private = name.startswith("__") and not name.endswith("__")
            yield f"_{kind.__name__.lstrip('_')}{name}" if is_private else name
