"""Everything that a net holds besides its parameters and buffers, found in one walk.

The walk goes from attributes, hooks and weights of modules through containers, objects (attributes,
slots, classes), functions (attributes, defaults, closures), methods, weak references and keys. A
mutable object without a container that can be compared makes the net `unseen`.

Not looked into: Python modules and so globals; `_QUIET`, `_LEAVES` and C++ of torch; functions of
`_LIBRARIES` and what their classes hold, except containers of classes of modules.
"""

import enum
import functools
import gc
import io
import itertools
import operator
import random
import re
import sys
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from types import FunctionType, MappingProxyType, MemberDescriptorType, MethodType
from typing import Any, TypeAlias

import numpy as np
import torch

from passnet.optimizer.call.values import is_plain, with_article

OF_MODULES = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks")
"""Dicts of a module that are watched by themselves."""

HOOKS = ("_forward_hooks", "_forward_pre_hooks")

OF_TORCH = frozenset(vars(torch.nn.Module()))
"""Attributes of every module, whose containers are of torch."""

OF_TRANSFORMERS = frozenset(
    {"generation_config", "_previous_max_cache_length", "_output_capturing_hooks_installed"}
)
"""Attributes that transformers sets in a model, and outputs do not depend on."""

OF_COMPILED = frozenset({"_is_torch_compile", "_compiled_call_impl"})
"""Attributes that `torch.compile` sets in a module, and outputs do not depend on."""

OF_WEIGHTS = frozenset({"_is_param", "_dynamo_static_input_type"})
"""Attributes that torch's compilers set in a tensor, and outputs do not depend on."""

OF_CLASSES = frozenset(
    {
        *("__annotations__", "__dataclass_fields__", "__dict__", "__doc__", "__module__"),
        *("__overloads__", "__slotnames__", "__weakref__", "_abc_impl", "__abstractmethods__"),
    }
)
"""Attributes that Python and torch's compilers set in a class, and outputs do not depend on."""

MOST = 20_000
"""The most objects that are looked at; a net that holds more runs unchanged."""

_STABLE = frozenset({"torch", "builtins", "numpy", "passnet", *sys.stdlib_module_names})
"""Packages whose classes nobody changes; those of modules of torch are watched all the same."""

_LIBRARIES = _STABLE | {
    *("accelerate", "diffusers", "einops", "huggingface_hub", "peft", "safetensors", "scipy"),
    *("timm", "torchaudio", "torchvision", "transformers"),
}
"""Packages whose functions keep no state that outputs depend on."""

_QUIET = (
    *("_thread", "abc", "asyncio", "concurrent", "dataclasses", "inspect", "logging"),
    *("multiprocessing", "passnet", "pathlib", "queue", "threading", "typing", "uuid", "zoneinfo"),
    *("torch.autograd", "torch.cuda", "torch.distributed", "torch.export", "torch.fx"),
    *("torch.jit", "torch.utils"),
)
"""Packages whose objects outputs do not depend on, or that do not change; and torch's private
ones.
"""

_LEAVES = (
    *(int, float, complex, str, bytes, range, slice, type(None), type(...), type(NotImplemented)),
    *(date, time, timedelta, tzinfo, Decimal, re.Pattern, np.generic, np.dtype, np.ufunc),
    *(operator.attrgetter, operator.itemgetter, operator.methodcaller, ContextVar),
    *(types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType),
    *(types.ClassMethodDescriptorType, types.GetSetDescriptorType, MemberDescriptorType),
    *(types.CodeType, types.GenericAlias, types.UnionType),
    *(torch.Generator, np.random.Generator, np.random.RandomState, io.IOBase),
    *(*random.Random.__mro__[:2], itertools.count),
)
"""Classes of values that do not change, and of those whose state `effects` compares."""

_UNCOPIED = (
    *(torch.jit.ScriptFunction, types.ModuleType, torch.finfo, torch.iinfo),
    *(torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch.library.CustomOpDef),
)
"""Classes of values that do not change, and that Python cannot copy."""

_STORAGES = (object, dict, list, tuple, set, frozenset, deque, OrderedDict, defaultdict)
"""Classes whose instances hold no more than items, attributes and slots."""

_OF_DECORATORS = ("__wrapped__", "registry")
"""Attributes in which decorators keep functions of others."""

_WITH_FUNCTION = (staticmethod, classmethod, property, functools.cached_property)
_PROXIES = (weakref.ProxyType, weakref.CallableProxyType)
_CACHED: type = type(functools.cache(len))

_OWN, _HIDDEN, _SHARED = range(3)
"""Levels of a walk: objects whose tensors count as weights; others; those that copies share."""


class HeldPlaces(Mapping[str, Any]):
    """What an object holds in places with names, as it is now: slots, defaults, a cell."""

    def __init__(self, owner: Any, names: tuple[str, ...]) -> None:
        self.owner, self.names = owner, names

    def __getitem__(self, name: str) -> Any:
        """Return the value of a place; KeyError where it is empty."""
        try:
            return getattr(self.owner, name)
        except (AttributeError, ValueError) as cause:  # the latter of a cell
            raise KeyError(name) from cause

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of places that have a value."""
        return (name for name in self.names if name in self)

    def __len__(self) -> int:
        """Return the number of places that have a value."""
        return sum(1 for _ in self)


class ScriptAttributes(Mapping[str, Any]):
    """The attributes of a scripted module, as they are now; of torch's own classes the mode."""

    def __init__(self, module: Any) -> None:
        self._module, kind = module._c, module._c._type()
        concrete: Any = torch._C.ConcreteModuleType.from_jit_type(kind)
        names = concrete.get_attributes()
        is_of_torch = kind.qualified_name().startswith("__torch__.torch.")
        used = ("training",) if is_of_torch else sorted(names)
        kept = (torch.Tensor, torch.ScriptModule)
        self._names = [name for name in used if name in names and not isinstance(self[name], kept)]

    def __getitem__(self, name: str) -> Any:
        """Return the value of an attribute."""
        return self._module.getattr(name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of attributes."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return the number of attributes."""
        return len(self._names)


Container: TypeAlias = "Mapping[Any, Any] | list[Any] | deque[Any] | set[Any]"
"""A dict, also of the attributes of an object, a list, deque or set, or other places."""


@dataclass(slots=True)
class HeldObjects:
    """The result of a walk, by paths such as `blocks.0.scales[1]`.

    Args:
        containers: the mutable containers.
        tensors: tensors that count as weights.
        objects: objects of classes that Python code can give another class.
        classes: the classes of objects, and others that are held.
        functions: the functions that were looked into.
        ignored: by the identity of a container, keys that outputs do not depend on.
        unseen: a clause that names an object whose changes nobody sees; None where there is none.
    """

    containers: dict[str, Container] = field(default_factory=dict)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)
    classes: dict[type, None] = field(default_factory=dict)
    functions: list[FunctionType] = field(default_factory=list)
    ignored: dict[int, frozenset[str]] = field(default_factory=dict)
    unseen: str | None = None


def held_by(net: torch.nn.Module, with_classes: bool = True) -> HeldObjects:
    """Return all objects that a net holds.

    `with_classes` also looks at classes and the objects that they hold.

    Examples:
        >>> net = torch.nn.Identity()
        >>> net.scales = [1.0, (torch.ones(2),)]
        >>> held = held_by(net)
        >>> list(held.containers), list(held.tensors)
        (['scales', 'scales[1][0]'], ['scales[1][0]'])
    """
    return _Walk(net, with_classes).held


def entries_of(container: Container) -> list[tuple[Any, Any]]:
    """Return pairs of keys and values.

    The keys of lists are positions, those of sets the members themselves.
    """
    if isinstance(container, OrderedDict):
        return [*OrderedDict.items(container)]
    if isinstance(container, dict):
        return [*dict.items(container)]  # a subclass may import or build its values
    if isinstance(container, Mapping):
        return [*container.items()]
    if isinstance(container, set):
        return [(member, member) for member in set.__iter__(container)]
    if isinstance(container, list):
        return [*enumerate(list.__iter__(container))]
    return [*enumerate(deque.__iter__(container))]


def uncopied(net: torch.nn.Module) -> dict[int, Any]:
    """Return attributes of modules that `copy.deepcopy` cannot copy, and that do not change.

    They are by their identities, as it takes them for copies that were made.
    """
    values = (value for module in net.modules() for value in vars(module).values())
    return {id(value): value for value in values if isinstance(value, _UNCOPIED)}


def ignored_attributes(module: torch.nn.Module) -> frozenset[str]:
    """Return the names of attributes of a module that outputs do not depend on."""
    is_of_transformers = any(_package(kind) == "transformers" for kind in type(module).__mro__)
    return OF_COMPILED | OF_TRANSFORMERS if is_of_transformers else OF_COMPILED


class _Walk:
    """One walk over what a net holds."""

    def __init__(self, net: torch.nn.Module, with_classes: bool) -> None:
        self.held, self._with_classes = HeldObjects(), with_classes
        modules = [*net.named_modules()]
        own = [*net.named_parameters(), *net.named_buffers()]
        self._seen: dict[int, Any] = {id(module): module for _, module in modules}
        self._seen |= {id(tensor): tensor for _, tensor in own}
        self._most = MOST + len(self._seen)
        self._waiting: tuple[list[tuple[str, Any]], ...] = ([], [], [])
        for path, module in modules:
            self._look_at_module(path, module)
        for path, tensor in own:
            self.held.ignored[id(vars(tensor))] = OF_WEIGHTS
            self._add(path, vars(tensor), _HIDDEN)
        for name in ("_global_forward_hooks", "_global_forward_pre_hooks"):
            hooks = enumerate(getattr(torch.nn.modules.module, name).values())
            self._push([(f"{name}[{number}]", hook) for number, hook in hooks], _SHARED)
        self._run()

    def _run(self) -> None:
        while any(self._waiting):
            level = next(level for level in range(3) if self._waiting[level])
            self._visit(*self._waiting[level].pop(), level)

    def _push(self, children: list[tuple[str, Any]], level: int) -> None:
        self._waiting[level].extend(reversed(children))

    def _look_at_module(self, path: str, module: torch.nn.Module) -> None:
        """Look at a module of the net, whose own dicts are watched by themselves."""
        prefix = f"{path}." if path else ""
        left_out = OF_TORCH | ignored_attributes(module)
        own = [(f"{prefix}{n}", x) for n, x in vars(module).items() if n not in left_out]
        self._push(own, _OWN)
        for name in HOOKS:
            hooks = enumerate(vars(module).get(name, {}).values())
            self._push([(f"{prefix}{name}[{number}]", hook) for number, hook in hooks], _HIDDEN)
        if names := _slots(type(module)) if not _is_quiet(type(module)) else ():
            self._add(path, HeldPlaces(module, names), _OWN)
        self._look_at_script(path, module)
        self._look_at_class(type(module))

    def _look_at_script(self, path: str, module: torch.nn.Module) -> None:
        if not isinstance(module, torch.jit.ScriptModule) or "_c" not in vars(module):
            return
        attributes = ScriptAttributes(module)
        if attributes:
            self.held.containers[self._free(f"{path}._c" if path else "_c")] = attributes
        for name, value in attributes.items():
            if isinstance(value, (torch.ScriptObject, torch.ScriptFunction)):
                self._refuse(f"{path}.{name}".removeprefix("."), type(value))

    def _free(self, path: str) -> str:
        """Return a path that no container has yet."""
        while path in self.held.containers:
            path += "'"
        return path

    def _refuse(self, path: str, kind: type) -> None:
        name = "numpy array" if issubclass(kind, np.ndarray) else kind.__name__
        clause = f"attribute {path} is {with_article(name)}, whose changes nobody sees"
        self.held.unseen = self.held.unseen or clause

    def _add(self, path: str, container: Container, level: int, step: str = ".{}") -> None:
        """Add a container and queue its items."""
        self.held.containers[self._free(path)] = container
        children, keys = [], []
        for number, (key, value) in enumerate(entries_of(container)):
            is_text = is_plain(key) or issubclass(type(key), type)
            place = (key if step == ".{}" else repr(key)) if is_text else f"{number}"
            children.append((path + step.format(place), value))
            if not is_text and key is not value:
                keys.append((f"{path}.keys()[{number}]", key))
        self._push(children, level)
        self._push(keys, max(level, _HIDDEN))

    def _visit(self, path: str, value: Any, level: int) -> None:
        kind = type(value)
        if is_plain(value) or issubclass(kind, types.ModuleType) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if len(self._seen) > self._most:
            self.held.unseen = f"the net holds more than {MOST:,} objects, too many to watch"
        elif issubclass(kind, torch.Tensor):
            if level == _OWN:
                self.held.tensors[path] = value
            self.held.ignored[id(vars(value))] = OF_WEIGHTS
            self._add(path, vars(value), max(level, _HIDDEN))
        elif issubclass(kind, type):
            self._look_at_class(value)
        elif issubclass(kind, torch.nn.Module):
            self._look_at_held_module(path, value, level)
        elif kind in (FunctionType, MethodType, _CACHED) or issubclass(kind, _WITH_FUNCTION):
            self._look_at_function(path, value)
        elif kind in (types.BuiltinFunctionType, types.MethodWrapperType):
            self._push([(f"{path}.__self__", value.__self__)], max(level, _HIDDEN))
        elif issubclass(kind, weakref.ref):
            self._push([(f"{path}()", value())], _SHARED)
        elif kind in _PROXIES:
            with suppress(ReferenceError):
                self._push([(f"{path}()", value.__getattribute__.__self__)], _SHARED)
        elif kind is MappingProxyType:
            self._push([(path, inner) for inner in gc.get_referents(value)], level)
        elif not _is_quiet(kind):
            self._look_at_object(path, value, level)

    def _look_at_object(self, path: str, value: Any, level: int) -> None:
        """Look at the items, attributes and slots of an object, and at its class."""
        kind = type(value)
        storage = _storage(kind)
        is_leaf = issubclass(storage, _LEAVES) or _package(kind) == "torch"
        if issubclass(kind, functools.partial):
            names = "func", "args", "keywords"
            self._push([(f"{path}.{name}", getattr(value, name)) for name in names], level)
        elif storage not in _STORAGES and not is_leaf:
            self._refuse(path, kind)
        if issubclass(kind, (dict, list, deque, set)):
            self._add(path, value, level, "[{}]")
        elif issubclass(kind, (tuple, frozenset)):
            base = tuple if issubclass(kind, tuple) else frozenset
            members = enumerate(base.__iter__(value))
            self._push([(f"{path}[{number}]", member) for number, member in members], level)
        names = _slots(kind) + ("default_factory",) * issubclass(kind, defaultdict)
        if names:
            self._add(path, HeldPlaces(value, names), level)
        own = _attributes(value)
        if own is not None:
            self._add(path, own, level)
        if kind.__flags__ & _HEAP_TYPE:
            self.held.objects[path] = value
            self._look_at_class(kind)

    def _look_at_held_module(self, path: str, module: torch.nn.Module, level: int) -> None:
        """Look at a module that is none of the net's: a tensor of it does not count as a weight."""
        if any(part._parameters or part._buffers for part in module.modules()):
            level = max(level, _HIDDEN)
        own = vars(module)
        self.held.containers[self._free(path)] = own
        self.held.ignored[id(own)] = ignored_attributes(module)
        left_out = OF_TORCH - {*OF_MODULES} | ignored_attributes(module)
        self._push([(f"{path}.{n}", x) for n, x in own.items() if n not in left_out], level)
        self._look_at_script(path, module)
        self.held.objects[path] = module
        self._look_at_class(type(module))

    def _look_at_function(self, path: str, value: Any) -> None:
        """Look at what functions hold besides their code, unless they are of libraries."""
        if isinstance(value, MethodType):
            self._push([(f"{path}.__self__", value.__self__)], _HIDDEN)
            self._push([(f"{path}.__func__", value.__func__)], _SHARED)
        elif not isinstance(value, FunctionType):
            names = "__func__", "fget", "fset", "func", "__wrapped__"
            inner = [(path, getattr(value, name, None)) for name in names]
            self._push(inner, _SHARED)
        elif home_of(value).partition(".")[0] in _LIBRARIES:  # of a decorator what it decorates
            own = vars(value)
            self._push([(path, own[name]) for name in _OF_DECORATORS if name in own], _SHARED)
        else:
            self.held.functions.append(value)
            self._add(path, vars(value), _SHARED)
            names = "__code__", "__defaults__", "__kwdefaults__"
            self._add(path, HeldPlaces(value, names), _SHARED)
            cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
            for name, cell in cells:
                if id(cell) not in self._seen and name != "__class__":
                    self._seen[id(cell)] = cell
                    self._add(f"{path}.{name}", HeldPlaces(cell, ("cell_contents",)), _SHARED)

    def _look_at_class(self, kind: type) -> None:
        """Note a class and its bases, and queue their attributes."""
        if kind in self.held.classes:
            return
        is_of_module = issubclass(kind, torch.nn.Module)
        for base in kind.__mro__ if self._with_classes else ():
            package = _package(base)
            if base in self.held.classes or (package in _STABLE and not is_of_module):
                continue
            if base is object:
                continue
            self.held.classes[base] = None
            if package in _STABLE or issubclass(base, enum.Enum):
                continue
            for name, value in [*vars(base).items()]:
                if package in _LIBRARIES:
                    is_container = isinstance(value, (dict, list, deque, set, tuple))
                    is_looked_at = is_of_module and is_container and name[:2] != "__"
                else:
                    is_looked_at = not isinstance(value, FunctionType) or _has_state(value)
                if is_looked_at and name not in OF_CLASSES:
                    self._push([(f"{base.__qualname__}.{name}", value)], _SHARED)


_HEAP_TYPE = 1 << 9
"""The flag of classes that can be changed: those of Python."""


def home_of(function: FunctionType) -> str:
    """Return the name of the Python module that has a function's code.

    Its attribute `__module__` may be a copy of another function's, as decorators make it.
    """
    return str(function.__globals__.get("__name__"))


def _package(value: Any) -> str:
    return str(getattr(value, "__module__", None)).partition(".")[0]


def _is_quiet(kind: type) -> bool:
    module = f"{kind.__module__}."
    return module.startswith(("torch._", *(f"{name}." for name in _QUIET)))


def _attributes(value: Any) -> dict[str, Any] | None:
    """Return the dict of an object's attributes, None where it has none."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return own if isinstance(own, dict) else None


def _has_state(function: FunctionType) -> bool:
    """Return whether a function of a class holds more than its code and plain defaults."""
    has_defaults = not is_plain(function.__defaults__) or bool(function.__kwdefaults__)
    has_cells = any(name != "__class__" for name in function.__code__.co_freevars)
    return has_defaults or has_cells or bool(vars(function))


@functools.lru_cache(4096)
def _slots(kind: type) -> tuple[str, ...]:
    """Return the names of the slots of a class and its bases."""
    return tuple(name for base in kind.__mro__ for name in _own_slots(base))


def _own_slots(kind: type) -> tuple[str, ...]:
    names = vars(kind).get("__slots__", ())
    prefix = f"_{kind.__name__.lstrip('_')}"
    all_names = [
        f"{prefix}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in ((names,) if isinstance(names, str) else names)
    ]
    own = vars(kind)
    return tuple(n for n in all_names if isinstance(own.get(n), MemberDescriptorType))


@functools.lru_cache(4096)
def _storage(kind: type) -> type:
    """Return the first class of C of whose state Python can list a part at most; else `object`.

    The others add to the size of an instance what slots, a dict and weak references take.
    """
    while kind not in _STORAGES and kind.__base__ is not None:
        base = kind.__base__
        num_places = len(_own_slots(kind))
        for offset in ("__dictoffset__", "__weakrefoffset__"):
            num_places += getattr(kind, offset) > 0 and not getattr(base, offset)
        is_of_python = kind.__basicsize__ - base.__basicsize__ == num_places * _POINTER_BYTES
        if not is_of_python or kind.__itemsize__ != base.__itemsize__:
            return kind
        kind = base
    return kind


_POINTER_BYTES = object.__basicsize__ // 2
