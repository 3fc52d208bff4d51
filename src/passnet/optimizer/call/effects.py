"""The effects of a call of a net besides its outputs: writes, random draws, attributes that move.

A backend has no such effects, so it may only serve a net without any. One is allowed: a value that
the first call keeps, such as a table of positions, if no value of an argument decides it.
"""

import copy
import hashlib
import io
import itertools
import random
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch.nn.parameter import is_lazy

from passnet.optimizer.call.held_objects import (
    OF_MODULES,
    HeldObjects,
    held_by,
    home_of,
    uncopied,
)
from passnet.optimizer.call.values import is_plain

SMALL = 2**16
"""Tensors of more bytes are told apart by sums of blocks, which is ten times faster."""

BLOCK = 512
"""Numbers of 8 bytes in a block."""

MOST_ITEMS = 10_000
"""Of a larger container, only the size is looked at."""

MOST_NAMED = 1_000
"""The most functions, classes and objects that are looked at, as named by the code of a net."""

_FOREIGN = sys.stdlib_module_names | {"torch", "numpy", "passnet"}
"""Packages whose variables no net moves."""

VERSION = 2
"""The place of a dense tensor's count of updates in `State.tensors`."""

_CONTAINERS = (dict, OrderedDict, defaultdict, Counter, list, set, deque)
_WITH_FUNCTION = (FunctionType, MethodType, staticmethod, classmethod, property, partial)

MOST_WRAPPED = 20
"""Decorators around a function, at most, that are looked through."""

_STATES: Mapping[type, Callable[[Any], Any]] = {
    torch.Generator: lambda value: value.get_state().numpy().tobytes(),
    random.Random: lambda value: value.getstate(),
    np.random.Generator: lambda value: repr(value.bit_generator.state),
    np.random.RandomState: lambda value: repr(value.get_state()),
    io.IOBase: lambda value: value.tell() if not value.closed and value.seekable() else None,
    np.ndarray: lambda value: hashlib.sha256(np.ascontiguousarray(value).data).digest(),
}
"""The contents of objects that are no containers, by class."""


@dataclass(frozen=True, slots=True)
class State:
    """The state of a net, its arguments and random generators at one moment."""

    tensors: Mapping[str, Any]
    attributes: Mapping[str, Any]
    generators: Mapping[str, Any]


def state_of(net: torch.nn.Module, tensors: Mapping[str, torch.Tensor]) -> State:
    """Return the state of a net, and of its weights and arguments by name."""
    contents = {name: _contents(tensor) for name, tensor in tensors.items()}
    return State(contents, attributes_of(net), generators())


def written(before: State, after: State) -> list[str]:
    """Return the names of tensors whose values, place or count of updates are others."""
    return differing(before.tensors, after.tensors)


def drawn(before: State, after: State) -> list[str]:
    """Return the names of random generators that moved."""
    return differing(before.generators, after.generators)


def moved(before: State, after: State) -> list[str]:
    """Return the names of attributes that were changed."""
    return differing(before.attributes, after.attributes)


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the names of values that are others, missing or new."""
    names = {**before, **after}
    return [name for name in names if before.get(name, ()) != after.get(name, ())]


def bare_copy(net: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a net that shares all tensors with it."""
    tensors = [*net.parameters(), *net.buffers(), *held_by(net).tensors.values()]
    return copy.deepcopy(net, uncopied(net) | {id(tensor): tensor for tensor in tensors})


def attributes_of(net: torch.nn.Module) -> dict[str, Any]:
    """Return the contents of variables that copies share, attributes of a net's modules, and all
    that these hold.
    """
    held = held_by(net)
    state = {shared.name: _frozen(shared.get(), True) for shared in _shared(net, held)}
    for path, module in net.named_modules():
        for name, value in vars(module).items():
            if name not in OF_MODULES:
                state[f"attribute {path}.{name}" if path else f"attribute {name}"] = _frozen(value)
    for path, container in held.containers.items():
        for key, value in items_of(container):
            state[f"attribute {path}[{key!r}]"] = _frozen(value)
    state |= {f"attribute {path}": _values(tensor) for path, tensor in held.tensors.items()}
    for weights in (net.named_parameters, net.named_buffers):
        state |= {f"weight {name}": id(weight) for name, weight in weights(remove_duplicate=False)}
    return state


def names_of_shared(net: torch.nn.Module) -> set[str]:
    """Return the names of variables that copies of a net share, as in `State.attributes`."""
    return {shared.name for shared in _shared(net, held_by(net))}


def unseen_of(net: torch.nn.Module) -> str | None:
    """Return a clause that names an object of a net whose changes nobody sees, None without one."""
    return held_by(net).unseen


def items_of(container: Any) -> list[tuple[Any, Any]]:
    """Return the items of a dict, or the members of another container with their positions."""
    if isinstance(container, dict):
        return [*dict.items(container)]  # a subclass may import or build its values
    if isinstance(container, Mapping):
        return [*container.items()]
    return [*enumerate(container)]


def _frozen(value: Any, is_deep: bool = False) -> Any:
    """Return the present contents of a value; if not `is_deep`, only the size of a container."""
    if is_plain(value) or isinstance(value, itertools.count):
        return type(value).__name__, repr(value)
    if isinstance(value, torch.Tensor):
        return _values(value)
    if isinstance(value, torch.ScriptMethod):  # which torch keeps after a first call
        return ()
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if isinstance(value, (dict, list, tuple, deque)):
        is_deep &= len(value) <= MOST_ITEMS
        items = items_of(value) if is_deep or isinstance(value, deque) else ()
        return type(value).__name__, len(value), [(repr(k), _frozen(v, is_deep)) for k, v in items]
    for kind, state in _STATES.items():
        if isinstance(value, kind):
            return state(value)
    return type(value).__name__


def _contents(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return the place and the count of updates of a tensor besides its values."""
    version = None if tensor.is_inference() else tensor._version
    if tensor.layout is not torch.strided or is_lazy(tensor):
        return type(tensor).__name__, version
    return tensor.data_ptr(), tensor.storage_offset(), version, _values(tensor)


def _values(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return the form of a tensor and a digest of its values."""
    if tensor.layout is not torch.strided or is_lazy(tensor) or tensor.is_meta or tensor.is_nested:
        return type(tensor).__name__, str(tensor.layout)
    return tensor.dtype, tensor.device, tuple(tensor.shape), tensor.stride(), _digest(tensor)


def _digest(tensor: torch.Tensor) -> bytes:
    values = tensor.detach().resolve_conj().resolve_neg()
    if values.is_quantized:
        values = values.int_repr()
    if not values.numel():
        return b""
    values = values.contiguous().reshape(-1).view(torch.uint8)
    if values.numel() <= SMALL:
        return hashlib.sha256(values.cpu().numpy().data).digest()
    if values.data_ptr() % 8 or values.storage_offset() % 8:
        values = values.clone()
    num_bytes = values.numel() // (8 * BLOCK) * 8 * BLOCK
    sums = values[:num_bytes].view(torch.int64).view(-1, BLOCK).sum(1).view(torch.uint8)
    return hashlib.sha256(torch.cat([sums, values[num_bytes:]]).cpu().numpy().data).digest()


def generators() -> dict[str, Any]:
    """Return the states of the random generators of the process, by name."""
    legacy: Any = np.random.get_state()
    states = {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "numpy": (legacy[1].tobytes(), *legacy[2:]),
        "Python": random.getstate(),
    }
    if torch.cuda.is_initialized():
        cards = torch.cuda.get_rng_state_all()
        states |= {f"cuda:{n}": card.numpy().tobytes() for n, card in enumerate(cards)}
    return states


def draw_from_all() -> None:
    """Draw a number from each random generator of the process, so that setting a seed moves it."""
    np.random.random_sample()
    random.random()  # noqa: S311 (no secret)
    torch.rand(())
    for number in range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0):
        torch.rand((), device=f"cuda:{number}")


@dataclass(frozen=True, slots=True)
class _Shared:
    """A variable that a net shares with its copies: of its class, a closure or a Python module."""

    name: str
    get: Callable[[], Any]
    put: Callable[[Any], None]


@contextmanager
def shared_kept(net: torch.nn.Module) -> Iterator[None]:
    """Put back, at the end, variables that a net shares with its copies."""
    before = [(shared, shared.get()) for shared in _shared(net, held_by(net))]
    former_items = [items_of(value) if type(value) in _CONTAINERS else None for _, value in before]
    try:
        yield
    finally:
        for (shared, value), former in zip(before, former_items, strict=True):
            if shared.get() is not value:
                shared.put(value)
            if former is not None:
                refill(value, former)


def refill(container: Any, items: list[tuple[Any, Any]]) -> None:
    """Give a dict, list, deque or set its former items, if it has others."""
    if _are_same(items, items_of(container)):
        return
    container.clear()
    if isinstance(container, dict):
        for name, value in items:  # to update a Counter is to add
            container[name] = value
    else:
        add = container.update if isinstance(container, set) else container.extend
        add([value for _, value in items])


def _are_same(former: list[tuple[Any, Any]], now: list[tuple[Any, Any]]) -> bool:
    pairs = zip(former, now, strict=False)
    return len(former) == len(now) and all(a is c and b is d for (a, b), (c, d) in pairs)


def _shared(net: torch.nn.Module, held: HeldObjects) -> Iterator[_Shared]:
    """Yield variables of classes and functions that a net holds, and of their Python modules."""
    functions = deque[Any](held.functions)
    for module in net.modules():
        hooks = module._forward_pre_hooks.values(), module._forward_hooks.values()
        functions += [*vars(module).values(), *itertools.chain(*hooks)]
    for kind in held.classes:
        if not _is_foreign(kind):
            yield from _of_class(kind, functions)
    yield from _of_functions(functions)


def _of_functions(waiting: deque[Any]) -> Iterator[_Shared]:
    """Yield variables that the code of some functions names, and of functions that it names.

    They are of closures and globals, and of the classes, objects and Python modules among these; of
    an object among the functions they are of its class. Foreign ones are not looked at.
    """
    visited = dict[int, Any]()
    while waiting and len(visited) < MOST_NAMED:
        value = waiting.popleft()
        function = _plain_function(value)
        if function is None:
            for kind in (value if isinstance(value, type) else type(value)).__mro__:
                if id(kind) not in visited and not _is_foreign(kind):
                    visited[id(kind)] = kind
                    yield from _of_class(kind, waiting)
            continue
        if id(function) in visited:
            continue
        visited[id(function)] = function
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name, cell in cells:
            content = _content(cell)
            if _may_move(content):
                put = partial(setattr, cell, "cell_contents")
                yield _Shared(f"variable {name}", partial(_content, cell), put)
            else:
                yield from _of_names({name: content}, [name], "variable ", waiting, visited)
        names = [*dict.fromkeys(_names(function.__code__))]
        yield from _of_names(function.__globals__, names, "global variable ", waiting, visited)


def _of_class(kind: type, waiting: deque[Any]) -> Iterator[_Shared]:
    """Yield variables of a class, and append its functions."""
    for name, value in [*vars(kind).items()]:
        if isinstance(value, _WITH_FUNCTION):
            waiting.append(value)
        elif not name.startswith("__") and _may_move(value):
            get, put = partial(getattr, kind, name, None), partial(setattr, kind, name)
            yield _Shared(f"{name} of class {kind.__name__}", get, put)


def _of_names(
    own: dict[str, Any],
    names: Sequence[str],
    where: str,
    waiting: deque[Any],
    visited: dict[int, Any],
    depth: int = 4,
) -> Iterator[_Shared]:
    """Yield variables of a namespace that have some names, and append functions and classes."""
    for name in names:
        value = own.get(name, _names)
        if _may_move(value):
            yield _Shared(where + name, partial(own.get, name), partial(own.__setitem__, name))
        elif isinstance(value, (type, torch.nn.Module, *_WITH_FUNCTION)):
            waiting.append(value)
        elif isinstance(value, ModuleType):
            if depth and not _is_foreign(value):
                of = f"global variable {value.__name__}."
                yield from _of_names(vars(value), names, of, waiting, visited, depth - 1)
        elif depth and id(value) not in visited and not _is_foreign(type(value)):
            inner = getattr(value, "__dict__", None)
            visited[id(value)] = value
            waiting.append(type(value))
            if isinstance(inner, dict):
                of = f"{where}{name}."
                yield from _of_names(inner, [*inner], of, waiting, visited, depth - 1)


def _plain_function(value: Any) -> FunctionType | None:
    """Return the function within a method, a property or the like, if it is not of torch."""
    for _ in range(MOST_WRAPPED):
        if not isinstance(value, _WITH_FUNCTION):
            break
        if isinstance(value, FunctionType) and not _is_foreign(value):
            return value
        inner = [getattr(value, name, None) for name in ("__func__", "fget", "func", "__wrapped__")]
        value = next(filter(None, inner), None)
    return None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return _names


def _is_foreign(value: Any) -> bool:
    """Return whether a class, function or Python module is of torch, numpy or Python itself."""
    if isinstance(value, FunctionType):
        name = home_of(value)
    else:
        name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return str(name).partition(".")[0] in _FOREIGN


def _may_move(value: Any) -> bool:
    kinds = (torch.Tensor, itertools.count, *_STATES)
    return is_plain(value) or type(value) in _CONTAINERS or isinstance(value, kinds)
