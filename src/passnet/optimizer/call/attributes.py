"""A net's plain attributes and its code, as text by path: what a folder is made for."""

import dis
import enum
import hashlib
import inspect
import re
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property, partial, partialmethod
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import torch

from passnet.optimizer.call.held_objects import (
    HOOKS,
    OF_CLASSES,
    OF_COMPILED,
    OF_TORCH,
    OF_TRANSFORMERS,
    OF_WEIGHTS,
    entries_of,
    held_by,
    home_of,
)
from passnet.optimizer.call.net_state import CALLED, CAPTURES, attributes_of
from passnet.optimizer.call.values import is_plain

_OF_FILES = {
    *("_name_or_path", "name_or_path", "transformers_version", "architectures", "dtype"),
    "model_type",  # of the class, and once more in a file
}
"""What saving or loading a model of transformers writes into its configuration."""

_IGNORED = {
    *(OF_COMPILED | OF_WEIGHTS | OF_CLASSES | OF_TRANSFORMERS),
    *("_is_hf_initialized", "_use_kernels", "_weight_conversions", "_is_buffer", "persistent"),
}
"""Attributes that torch's compilers and transformers leave in a net, without effect on outputs."""

_STDLIB = sysconfig.get_paths()["stdlib"]
_INSTALLED = {"site-packages", "dist-packages"}
"""Folders of packages, whose globals are not followed: their versions stand for these."""

_MOST_DEPTH = 5
"""Levels of containers within each other that functions keep, as text."""


def plain_attributes(net: torch.nn.Module) -> dict[str, str]:
    """Return the plain values among the attributes of a net's modules, by path.

    >>> net = torch.nn.Identity()
    >>> net.scale = 2.5
    >>> plain_attributes(net)
    {'scale': '2.5', 'training': 'True'}
    """
    return {path: repr(value) for path, value in sorted(_attributes(net)) if is_plain(value)}


def code_of(net: torch.nn.Module) -> dict[str, str]:
    """Return digests of the code that calls of a net may run, by path.

    It has the classes of modules and of the objects that they hold, with methods and plain values;
    hooks; functions with their defaults, closures and globals; sets; and versions of packages, of
    which functions are taken without their globals. Python of the same minor version makes the
    same digests. Objects of C++ have the names of their types alone.

    >>> net = torch.nn.Identity()
    >>> net.act = torch.nn.functional.relu
    >>> code_of(net)["act"].partition(" of code ")[0]
    'function relu'
    """
    walk = _Walk()
    found = {}
    for path, module in net.named_modules(remove_duplicate=False):
        found[_joined(path, "__class__")] = walk.text(module.__class__)  # of a part: the net's
        for kind in HOOKS:
            found[_joined(path, kind)] = walk.hooks(vars(module).get(kind, {}))
        if isinstance(module, torch.jit.ScriptModule):
            found[_joined(path, "forward")] = _of_script(module)
    for kind in HOOKS:
        hooks = getattr(torch.nn.modules.module, f"_global{kind}")
        found[f"all modules.{kind}"] = walk.hooks(hooks)
    for path, value in _attributes(net):
        if not is_plain(value) and not isinstance(value, torch.Tensor):
            found[path] = walk.text(value)
    of_classes = walk.classes | {f"package {name}": _version_of(name) for name in walk.packages}
    return {
        path: text for path, text in (*sorted(found.items()), *sorted(of_classes.items())) if text
    }


def _attributes(net: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """Yield attributes of modules and items of the containers they hold, by path."""
    for path, own in attributes_of(net).items():
        left_out = _IGNORED | (OF_TORCH - {"training"}) | {"name_or_path"}
        yield from ((_joined(path, n), value) for n, value in own.items() if n not in left_out)
    held, configurations = held_by(net), list[str]()
    sets = tuple(f"{path}[" for path, own in held.containers.items() if isinstance(own, set))
    for path, own in held.containers.items():
        parent, _, name = path.rpartition(".")
        is_of_set = isinstance(own, set) or path.startswith(sets)  # whose text is its attribute's
        if is_of_set or (name in _OF_FILES and parent in configurations):
            continue
        entries, left_out = entries_of(own), _IGNORED | held.ignored.get(id(own), frozenset())
        if isinstance(own, dict) and "transformers_version" in own:
            configurations.append(path)
            left_out |= _OF_FILES
        for number, (key, value) in enumerate(entries):
            is_told = is_plain(key) or isinstance(key, type)  # others print their address
            if not is_told or key not in left_out:
                yield f"{path}[{key!r}]" if is_told else f"{path}[key {number}]", value


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


class _Walk:
    """Texts of values, and of the classes that were met, each once."""

    def __init__(self) -> None:
        self.classes: dict[str, str] = {}
        self.packages: set[str] = set()
        self._met: dict[int, tuple[Any, str]] = {}

    def hooks(self, hooks: Mapping[Any, Any]) -> str:
        """Return the hooks of a module as text, in their order; nothing without any."""
        own = [x for x in hooks.values() if getattr(x, "__module__", None) != CAPTURES]
        return ", ".join(map(self._of_callable, own))

    def text(self, value: Any) -> str:
        """Return a text that equal values have in every process, as far as there is one."""
        if is_plain(value):
            return repr(value)
        if isinstance(value, enum.Enum):
            return f"{type(value).__qualname__}.{value.name} {self._kept(value.value)}"
        if isinstance(value, (int, float, complex, str, bytes)):  # of a class of its own
            kinds: tuple[Any, ...] = (int, float, complex, str, bytes)
            plain = next(kind for kind in kinds if isinstance(value, kind))
            return f"{self.text(type(value))} {plain.__repr__(value)}"
        if id(value) in self._met:
            return self._met[id(value)][1]
        name = getattr(value, "__qualname__", None) or type(value).__qualname__
        self._met[id(value)] = value, name  # within itself, and so that its id stays its own
        text = self._text(value)
        self._met[id(value)] = value, text
        return text

    def _text(self, value: Any) -> str:
        if isinstance(value, type):
            self._add_class(value)
            return f"class {value.__qualname__}"
        if isinstance(value, (set, frozenset)):
            return f"{{{', '.join(sorted(map(self.text, value)))}}}"
        if isinstance(value, tuple):
            return f"({', '.join(map(self.text, value))})"
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return f"{self.text(value.__func__)} of {self._of_callable(value.__self__)}"
        if isinstance(value, (partial, partialmethod)):
            given = *value.args, *sorted(value.keywords.items())
            return f"partial {self.text(value.func)} {self.text(given)}"
        if isinstance(value, (classmethod, staticmethod)):
            return self.text(value.__func__)
        if isinstance(value, property):
            return f"property {self.text((value.fget, value.fset))}"
        if isinstance(value, cached_property):
            return f"property {self.text(value.func)}"
        if callable(inner := inspect.getattr_static(value, "__wrapped__", None)):  # of caches
            return f"{type(value).__qualname__} {self.text(inner)}"
        if isinstance(value, BuiltinFunctionType):
            return f"function {value.__module__}.{value.__qualname__}"
        if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            return f"op {value}"
        if isinstance(value, torch.jit.ScriptFunction):
            return _of_script(value)
        if isinstance(value, ModuleType):
            return f"module {value.__name__}"
        return self.text(value.__class__)  # what it holds has paths of its own

    def _of_callable(self, value: Any) -> str:
        """Return the text of a hook, or of the object of a method, with its plain attributes."""
        text, own = self.text(value), getattr(value, "__dict__", None)
        if isinstance(value, (FunctionType, torch.nn.Module, type)) or not isinstance(own, dict):
            return text
        plain = [f"{name}={own[name]!r}" for name in sorted(own) if is_plain(own[name])]
        return f"{text} with {', '.join(plain)}" if plain else text

    def _function(self, function: FunctionType) -> str:
        """Return a function's name with a digest of its code, closure, defaults and globals.

        Of one of torch's, such as a decorator, that is functions of others alone: it may keep more
        once a compiler was imported.
        """
        cells = []
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # an empty one
                value = cell.cell_contents
                if not _is_of_torch(function) or _is_of_others(value):
                    cells.append(self._kept(value))
        kept = [self._kept(value) for value in function.__defaults__ or ()]
        named = sorted((function.__kwdefaults__ or {}).items())
        named += [(n, x) for n, x in sorted(vars(function).items()) if n[0] != "_" and is_plain(x)]
        kept += [f"{name}={self._kept(value)}" for name, value in named]
        names = self._globals(function)
        facts = _of_code(function.__code__), cells, kept, names
        return f"function {function.__qualname__} of code {_digest(repr(facts))}"

    def _kept(self, value: Any) -> str:
        """Return the text of a kept value, with items and plain attributes."""
        if isinstance(value, torch.Tensor):
            return "tensor"
        if not _is_told(value) or isinstance(value, (set, frozenset, tuple)):
            is_users = not _is_of_package(sys.modules.get(type(value).__module__))
            return self._of_callable(value) if is_users else self.text(value)
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key!r}: {self._kept(x)}' for key, x in value.items())}}}"
        if isinstance(value, (list, deque)):
            return f"[{', '.join(map(self._kept, value))}]"
        return self.text(value)

    def _globals(self, function: FunctionType) -> list[str]:
        """Return the globals of a user's function with their values, and note packages."""
        if _is_installed(function):
            self.packages.add(home_of(function).partition(".")[0])
            return []
        codes, own, found = [*_codes_of(function.__code__)], function.__globals__, []
        for name in sorted({n for code in codes for n in _global_names(code)} & own.keys()):
            found.append(f"{name}={self._kept(own[name])}")
            if isinstance(own[name], ModuleType) and not _is_of_package(own[name]):
                inner = vars(own[name])
                used = sorted({n for code in codes for n in code.co_names} & inner.keys())
                found += [f"{name}.{n}={self._kept(inner[n])}" for n in used]
        return found

    def _add_class(self, kind: type) -> None:
        """Note the methods of a class and its bases; of a user's classes also values."""
        for base in kind.__mro__:
            is_known = base is not kind and id(base) in self._met
            package = base.__module__.partition(".")[0]
            is_module = issubclass(base, torch.nn.Module) and base is not torch.nn.Module
            if is_known or package in _LEFT_OUT or (package == "torch" and not is_module):
                continue  # torch's compilers change methods of other classes of torch
            self._met[id(base)] = base, f"class {base.__qualname__}"
            is_users = not _is_of_package(sys.modules.get(base.__module__))
            for name, value in vars(base).items():
                is_special = name[:2] == "__" and name not in CALLED
                if is_special or name in _IGNORED or isinstance(value, _OF_C):
                    continue
                path = f"class {base.__qualname__}.{name}"
                while path in self.classes:  # another class of this name
                    path += "'"
                if is_users or not is_plain(value):
                    self.classes[path] = self._kept(value)


_LEFT_OUT = ("builtins", "abc", "typing", "enum", "passnet")
_OF_C = (GetSetDescriptorType, MemberDescriptorType, torch.Tensor)
"""Attributes of classes that say nothing: of C, places of slots, and weights."""


def _of_code(code: CodeType) -> tuple[Any, ...]:
    """Return what a code object computes, without the places where it was written."""
    constants = [_of_code(x) if isinstance(x, CodeType) else _constant(x) for x in code.co_consts]
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, constants, counts, names, code.co_exceptiontable


def _constant(value: Any) -> str:
    is_set = isinstance(value, frozenset)
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if is_set else repr(value)


def _codes_of(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_of(constant)


def _global_names(code: CodeType) -> Iterator[str]:
    """Yield the names of the globals that code reads, without Python's own."""
    for each in dis.get_instructions(code):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME") and each.argval[:2] != "__":
            yield each.argval


@cache
def _is_in_package(file: str) -> bool:
    return file.startswith(_STDLIB) or not _INSTALLED.isdisjoint(Path(file).parts)


def _is_of_package(module: Any) -> bool:
    """Return whether a module is of an installed package or of Python; `__main__` is a user's."""
    file = getattr(module, "__file__", None)
    return _is_in_package(file) if file else getattr(module, "__name__", "") != "__main__"


def _is_of_torch(function: Any) -> bool:
    home = home_of(function) if isinstance(function, FunctionType) else str(function.__module__)
    return home.startswith("torch.")


def _is_of_others(value: Any) -> bool:
    return isinstance(value, (FunctionType, MethodType)) and not _is_of_torch(value)


def _is_installed(function: FunctionType) -> bool:
    """Return whether a function is of an installed package; generated ones are a user's."""
    module = sys.modules.get(home_of(function))
    return module is not None and _is_of_package(module)


def _is_told(value: Any, depth: int = 0) -> bool:
    """Return whether a value is plain or code, or a container of such."""
    if isinstance(value, (list, deque, tuple)):
        return depth < _MOST_DEPTH and all(_is_told(inner, depth + 1) for inner in value)
    if isinstance(value, dict):
        is_told = all(map(is_plain, value)) and depth < _MOST_DEPTH
        return is_told and all(_is_told(inner, depth + 1) for inner in value.values())
    code = FunctionType, MethodType, BuiltinFunctionType, partial, type, set, frozenset
    return is_plain(value) or isinstance(value, code)


def _of_script(script: Any) -> str:
    """Return a digest of the code of TorchScript, without numbers that a process gives to types."""
    with suppress(RuntimeError, AttributeError):  # a module without `forward`
        is_module = isinstance(script, torch.jit.ScriptModule)
        # `script.forward` would stay among the attributes of a module
        code = (script._c._get_method("forward") if is_module else script).code
        return f"script {_digest(re.sub(r'___torch_mangle_[0-9]+[.]', '', code))}"
    return ""


def _version_of(package: str) -> str:
    return str(getattr(sys.modules.get(package), "__version__", ""))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
