"""The state of a net when it was optimised, and its changes since.

The state is every module's dicts (attributes, parameters, buffers, submodules, hooks), and all that
`held_objects` finds. Weights, submodules, hooks, classes and methods must be the same objects;
attributes and items may also be equal numbers, strings or tensors.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from types import MappingProxyType
from typing import Any

import torch
from torch.nn.utils import parametrize

from passnet.errors import InputError
from passnet.optimizer.call.held_objects import (
    HOOKS,
    OF_CLASSES,
    OF_COMPILED,
    OF_MODULES,
    OF_WEIGHTS,
    Container,
    entries_of,
    held_by,
    ignored_attributes,
)
from passnet.optimizer.call.net_call import state_tensors
from passnet.optimizer.call.values import is_plain

_WEIGHTS = ("_parameters", "_buffers")

OF_COMPILERS = OF_COMPILED | OF_WEIGHTS
"""Attributes that torch's compilers leave in a net, without effect on outputs."""

CAPTURES = "transformers.utils.output_capturing"
"""The module of hooks that stay in a model after a call that asks for hidden states; they change
no output.
"""

_NOTHING: Mapping[str, Any] = MappingProxyType({})

CALLED = {"__call__", "__getattr__", "__getattribute__"}
"""Special methods of classes that calls use; torch's compilers replace others of `Module`."""


@dataclass(frozen=True, slots=True)
class RememberedDict:
    """One dict of a module with its former names and values; `later` may replace these.

    `kind` is the name of the dict, `class` for the attributes of a class, `items` for a container
    that the net holds, `object` for the class of an object alone.
    """

    module: str
    kind: str
    entries: Container
    names: tuple[Any, ...]
    values: tuple[Any, ...]
    later: Mapping[str, Any] = field(default_factory=dict)
    of: Any = None
    """The class, module or object whose attributes these are."""
    of_class: type | None = None
    """The former class of the module or object."""
    ignored: Collection[Any] = frozenset()
    """Names that outputs do not depend on."""


@dataclass(frozen=True, slots=True)
class RememberedWeight:
    """A parameter or buffer, with the former address, dtype and layout of its values."""

    name: str
    tensor: torch.Tensor
    state: tuple[Any, ...]
    version: int
    needs_gradient: bool


@dataclass(frozen=True, slots=True)
class RememberedStorage:
    """The bytes of a weight's storage, as a flat uint8 tensor, and their former digest."""

    name: str
    contents: torch.Tensor
    digest: str


def is_same(first: Any, second: Any) -> bool:
    """Return whether two values are one object, or equal plain values or tensors, nested alike.

    >>> is_same(0.0, -0.0), is_same(1, True), is_same((1, ["a"]), (1, ["a"]))
    (False, False, True)
    """
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if type(first) in (tuple, list):
        return len(first) == len(second) and all(map(is_same, first, second))
    if type(first) is dict:
        return is_same([*first.items()], [*second.items()])
    if type(first) is torch.Tensor:
        is_alike = first.dtype is second.dtype and first.device == second.device
        return is_alike and torch.equal(first, second)
    return is_plain(first) and repr(first) == repr(second)


def attributes_of(net: torch.nn.Module | None) -> dict[str, dict[str, Any]]:
    """Return the attributes of each module of a net, without weights, submodules and hooks."""
    found: dict[str, dict[str, Any]] = {}
    for path, module in () if net is None else net.named_modules():
        left_out = {*OF_MODULES, *ignored_attributes(module)}
        found[path] = {name: x for name, x in vars(module).items() if name not in left_out}
    return found


def remember_net(
    net: torch.nn.Module,
    later: Mapping[str, Mapping[str, Any]] | None = None,
    with_classes: bool = True,
) -> tuple[RememberedDict, ...]:
    """Remember the dicts of each module of a net, attributes that calls may set `later`, and what
    the net holds; also its classes.
    """
    remembered = []
    for path, module in net.named_modules():
        own, values = vars(module), (later or {}).get(path, {})
        state = (path, "__dict__", own, (*own,), (*own.values(),), values, module, type(module))
        remembered.append(RememberedDict(*state, ignored_attributes(module)))
        for kind in OF_MODULES:
            entries = own.get(kind)
            if isinstance(entries, dict):
                remembered.append(RememberedDict(path, kind, entries, *_items(entries, kind)))
    saved, held = _saved(net), held_by(net, with_classes)
    for path, entries in held.containers.items():
        state = path, "items", entries, *_items(entries), saved.get(id(entries), {})
        ignored = held.ignored.get(id(entries), frozenset())
        remembered.append(RememberedDict(*state, ignored=ignored))
    for path, value in held.objects.items():
        state = path, "object", _NOTHING, (), (), {}, value, type(value)
        remembered.append(RememberedDict(*state))
    if any(map(parametrize.is_parametrized, net.modules())):  # `cached` keeps weights for a while
        state = vars(parametrize), *_items(vars(parametrize))
        remembered.append(
            RememberedDict("torch.nn.utils.parametrize", "items", *state, {"_cache": {}})
        )
    for kind in ("_global_forward_hooks", "_global_forward_pre_hooks"):
        hooks = getattr(torch.nn.modules.module, kind)
        remembered.append(RememberedDict("all modules", kind, hooks, *_items(hooks)))
    for base in sorted(held.classes, key=lambda base: base.__qualname__):
        state = vars(base), *_items(vars(base))
        name = f"{base.__module__}.{base.__qualname__}"
        remembered.append(RememberedDict(name, "class", *state, of=base))
    return tuple(remembered)


def _saved(net: torch.nn.Module) -> dict[int, dict[str, Any]]:
    """Return what `save_pretrained` of transformers writes into configurations, by their ids."""
    found: dict[int, dict[str, Any]] = {}
    for module in net.modules():
        config = getattr(module, "config", None)
        if hasattr(module, "save_pretrained") and hasattr(config, "__dict__"):
            dtype = str(module.dtype).removeprefix("torch.")
            own = {"architectures": [type(module).__name__], "dtype": dtype}
            found.setdefault(id(vars(config)), own)
    return found


def _items(entries: Container, kind: str = "items") -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the names and values of a container, without names that calls do not depend on."""
    own = dict(entries_of(entries))
    if isinstance(entries, MappingProxyType):
        of_torch = str(own.get("__module__")).partition(".")[0] == "torch"
        own = {
            name: value
            for name, value in own.items()
            if name not in OF_CLASSES and not (of_torch and name[:2] == "__" and name not in CALLED)
        }
    elif kind in HOOKS:
        own = {n: x for n, x in own.items() if getattr(x, "__module__", None) != CAPTURES}
    return (*own,), (*own.values(),)


@dataclass(frozen=True, slots=True)
class NetChange:
    """What a look at a net finds: the first change in words, None for none.

    The net `must_be_looked_at` at the next call, too, where another object that may change stands
    in the place of an equal one.
    """

    says: str | None = None
    must_be_looked_at: bool = False


def change_of_net(remembered: Sequence[RememberedDict]) -> NetChange:
    """Compare a net with its remembered state."""
    must_be_looked_at = False
    for former in remembered:
        if former.of_class is not None and type(former.of) is not former.of_class:
            of = former.module or "the net"
            return NetChange(f"{of} was given another class since it was optimised")
        names, values = _items(former.entries, former.kind)
        if names == former.names and all(map(is_, values, former.values)):
            continue
        before = dict(zip(former.names, former.values, strict=True))
        now = dict(zip(names, values, strict=True))
        for name in {**before, **now}:
            is_attribute = former.kind in ("__dict__", "items") and name not in OF_MODULES
            same = is_same if is_attribute else is_
            states = [state[name] for state in (before, former.later) if name in state]
            is_known = name in now and any(same(state, now[name]) for state in states)
            if not is_known and name not in former.ignored:
                return NetChange(_change_in_words(former, str(name), now.get(name)))
            must_be_looked_at |= (
                is_attribute and name in now and _may_change(now[name], before.get(name))
            )
        if former.kind != "__dict__" and not isinstance(former.entries, set):
            kept = [name for name in names if name in before]
            if kept != [name for name in former.names if name in now]:
                of = former.module or "the net"
                return NetChange(
                    f"what {of} holds has another order than when the net was optimised"
                )
    return NetChange(None, must_be_looked_at)


def _may_change(value: Any, former: Any) -> bool:
    """Return whether a value is another object than the former one, and can be changed in place."""
    if value is former:
        return False
    if type(value) is tuple:
        pairs = (
            zip(value, former, strict=False)
            if type(former) is tuple
            else ((x, None) for x in value)
        )
        return any(_may_change(*pair) for pair in pairs)
    return not is_plain(value)


def _change_in_words(remembered: RememberedDict, name: str, value: Any) -> str:
    where = remembered.module or "the net"
    if remembered.kind == "class":
        return f"{name} of class {where} was replaced since the net was optimised"
    if remembered.kind == "items":
        return f"what {where} holds was changed since the net was optimised"
    path = f"{remembered.module}.{name}" if remembered.module else name
    if remembered.kind.endswith("_hooks"):
        return f"a hook of {where} was added or removed since it was optimised"
    if remembered.kind in _WEIGHTS:
        return f"weight {path} was replaced since the net was optimised"
    if remembered.kind == "_modules":
        return f"module {path} was replaced since the net was optimised"
    if name == "training":
        return f"{where} is in {'training' if value else 'evaluation'} mode"
    return f"attribute {name} of {where} was changed since it was optimised"


def remember_weights(
    net: torch.nn.Module, weights: Mapping[str, torch.Tensor]
) -> tuple[RememberedWeight, ...]:
    """Remember the addresses of a net's weights; InputError where changes cannot be seen."""
    own = state_tensors(net)
    remembered = {}
    for name, tensor in weights.items():
        if own.get(name) is not tensor:
            raise InputError(
                f"the backend's weight {name} is not the net's; optimise this net anew"
            )
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.is_inference():
            kind = "made in inference mode" if tensor.is_inference() else type(tensor).__name__
            raise InputError(
                f"weight {name} is {kind}, whose changes cannot be seen; make the net from "
                "plain tensors, outside of torch.inference_mode()"
            )
        if tensor.layout is not torch.strided:
            raise InputError(f"weight {name} is {tensor.layout}; only dense weights can be watched")
        state = _state(tensor)
        needs = tensor.requires_grad
        remembered[id(tensor)] = RememberedWeight(name, tensor, state, tensor._version, needs)
    return tuple(remembered.values())


def moved_weight(remembered: tuple[RememberedWeight, ...]) -> str | None:
    """Return the name of a weight that was moved, converted or reshaped, or None."""
    return next((w.name for w in remembered if _state(w.tensor) != w.state), None)


def is_moved(net: torch.nn.Module, remembered: tuple[RememberedWeight, ...]) -> bool:
    """Return whether a weight was moved, converted, reshaped, or is no longer the net's."""
    own = state_tensors(net)
    is_own = all(own.get(weight.name) is weight.tensor for weight in remembered)
    return not is_own or moved_weight(remembered) is not None


def updated_weight(remembered: tuple[RememberedWeight, ...]) -> str | None:
    """Return the name of a weight that was updated in place, or None."""
    return next((w.name for w in remembered if w.tensor._version != w.version), None)


def remember_storages(weights: tuple[RememberedWeight, ...]) -> tuple[RememberedStorage, ...]:
    """Remember the bytes of each storage of a net's weights, once; all must be on the CPU."""
    remembered: dict[int, RememberedStorage] = {}
    for weight in weights:
        if weight.tensor.device.type != "cpu":
            raise InputError(
                f"weight {weight.name} is on {weight.tensor.device}, where it cannot be compared "
                "at each call; say by freeze=True that weights will not change"
            )
        storage = weight.tensor.untyped_storage()
        address = storage.data_ptr()
        if address not in remembered and storage.nbytes():
            contents = torch.empty(0, dtype=torch.uint8).set_(storage)
            remembered[address] = RememberedStorage(weight.name, contents, _digest(contents))
    return tuple(remembered.values())


def changed_storage(remembered: tuple[RememberedStorage, ...]) -> str | None:
    """Return the name of a weight whose storage has other bytes, or None."""
    return next((s.name for s in remembered if _digest(s.contents) != s.digest), None)


def _digest(contents: torch.Tensor) -> str:
    return hashlib.sha256(contents.numpy().data).hexdigest()


def _state(tensor: torch.Tensor) -> tuple[Any, ...]:
    if tensor.layout is not torch.strided:
        return ()
    address, offset = tensor.untyped_storage().data_ptr(), tensor.storage_offset()
    return address, tensor.dtype, tensor.shape, tensor.stride(), offset
