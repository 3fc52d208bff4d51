"""Two returned values compared: form and whole numbers exactly, other numbers within bounds."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 3e-2, torch.bfloat16: 6e-2}
"""The largest error allowed, relative to the largest magnitude of the output."""

OWN = 8.0
"""Factor on the error of eager PyTorch against float64, which is allowed besides."""

MAX_OWN = 0.02
"""The largest such error that is allowed for: beyond it, float64 says nothing about the net."""

Exact = Callable[[], Any]
"""Return the value in float64, or None where the net does not run in it."""

BUFFER = "_passnet_"
"""Of the names of buffers that a layer of a cache holds, of which its keys and values are views."""

WHOLE = (FunctionType, MethodType, ModuleType, type, torch.nn.Module, RemovableHandle)
"""Types of objects that are compared by their type alone."""


def difference(value: Any, right: Any, exact: Exact | None = None, path: str = "it") -> str | None:
    """Return a sentence about the first difference of a value from the right one, or None."""
    wrong = _form(value, right, path) or _aliases(value, right)
    if wrong:
        return wrong
    tensors, rights = tensors_of(value), tensors_of(right)
    wrong = _values(tensors, rights, [None] * len(rights))
    if wrong and exact is not None and (true := exact()) is not None:
        trues = tensors_of(true)
        if [t.shape for t in trues] == [t.shape for t in rights]:
            return _values(tensors, rights, trues)
    return wrong


def parts_of(value: Any) -> dict[str, Any] | None:
    """Return the parts of a container or object by name; None for what has none.

    Modules, functions and types have none. Of packed weights, the state is the only part.
    """
    if isinstance(value, torch.ScriptObject):
        state = packed_state(value)
        return None if state is None else {".__getstate__()": state}
    if isinstance(value, Mapping):
        return {_key(*each): value[each[1]] for each in enumerate(value)}
    if isinstance(value, (list, tuple)):
        return {f"[{number}]": item for number, item in enumerate(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
        return {f".{name}": getattr(value, name) for name in fields}
    if isinstance(value, WHOLE) or not hasattr(value, "__dict__"):
        return None
    own = vars(value).items()
    return {f".{name}": item for name, item in own if not name.startswith(BUFFER)}


def packed_state(value: torch.ScriptObject) -> Any:
    """Return the state of an object of C++, as of packed weights; None where it has none."""
    try:
        return value.__getstate__()
    except (AttributeError, RuntimeError):  # a class that cannot be pickled
        return None


def _key(number: int, key: Any) -> str:
    is_value = isinstance(key, (str, bytes, int, float, tuple, type(None)))
    return f"[{key!r}]" if is_value else f"[{type(key).__name__} {number}]"


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Return all tensors in a value, those in attributes of objects too."""
    return list(_tensors(value, set()))


def _tensors(value: Any, seen: set[int]) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif id(value) not in seen and (parts := parts_of(value)):
        for part in parts.values():
            yield from _tensors(part, {*seen, id(value)})


def _form(value: Any, right: Any, path: str, seen: frozenset[int] = frozenset()) -> str | None:
    """Return a difference in types, nesting, shapes, dtypes, strides or plain values."""
    if isinstance(value, torch.Tensor) and isinstance(right, torch.Tensor):
        return _tensor_form(value, right, path)
    if type(value) is not type(right):
        return f"{path} is a {type(value).__name__} and not a {type(right).__name__}"
    if isinstance(right, (int, float, complex, str, bytes, bool, type(None))):
        return None if repr(value) == repr(right) else f"{path} is {value!r} and not {right!r}"
    own, expected = parts_of(value), parts_of(right)
    if own is None or expected is None or id(right) in seen:
        return None
    if len(own) != len(expected):
        return f"{path} has {len(own)} items and not {len(expected)}"
    if list(own) != list(expected):
        return f"{path} has other keys"
    seen = seen | {id(right)}
    views = [name for name in own if hasattr(value, f"{BUFFER}{name[1:]}")]
    own |= {name: own[name].contiguous() for name in views}
    forms = (_form(own[name], expected[name], f"{path}{name}", seen) for name in expected)
    return next(filter(None, forms), None)


def _tensor_form(value: torch.Tensor, right: torch.Tensor, path: str) -> str | None:
    for name in ("shape", "dtype", "device", "layout", "requires_grad"):
        own, expected = getattr(value, name), getattr(right, name)
        if own != expected:
            return f"{path} has {name} {own} and not {expected}"
    if is_plain(right) and is_plain(value) and right.numel():
        pairs = zip(right.shape, value.stride(), right.stride(), strict=True)
        if any(size > 1 and own != expected for size, own, expected in pairs):
            return f"{path} has strides {value.stride()} and not {right.stride()}"
    return None


def is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a view of one block of memory, with sizes and strides."""
    return tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_quantized)


def place(tensor: torch.Tensor) -> int:
    """Return the address of the memory of a tensor; 0 where it has none of its own."""
    return tensor.untyped_storage().data_ptr() if is_plain(tensor) and tensor.numel() else 0


def _aliases(value: Any, right: Any) -> str | None:
    """Return a difference in which tensors share memory."""
    patterns = []
    for each in (value, right):
        places = [place(tensor) for tensor in tensors_of(each)]
        patterns.append([places.index(place) if place else -1 for place in places])
    return None if patterns[0] == patterns[1] else "its tensors share memory otherwise"


def _values(
    tensors: Sequence[torch.Tensor],
    rights: Sequence[torch.Tensor],
    trues: Sequence[torch.Tensor | None],
) -> str | None:
    for number, (tensor, right, true) in enumerate(zip(tensors, rights, trues, strict=True)):
        if wrong := _value(_dense(tensor), _dense(right), true):
            return f"tensor {number} {wrong}"
    return None


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach().resolve_conj()
    if tensor.is_nested:
        tensor = torch.cat([each.reshape(-1) for each in tensor.unbind()])
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def _value(tensor: torch.Tensor, right: torch.Tensor, true: torch.Tensor | None) -> str | None:
    if tensor.shape != right.shape:
        return f"has shape {tuple(tensor.shape)} and not {tuple(right.shape)}"
    if not (right.is_floating_point() or right.is_complex()):
        count = int((tensor != right).sum())
        return f"has {count} of {right.numel()} other values" if count else None
    rounding, least = ROUNDING.get(right.dtype.to_real(), 1e-4), torch.finfo(right.dtype).tiny
    tensor, right = _precise(tensor), _precise(right)
    if not torch.equal(tensor.isnan(), right.isnan()):
        return f"is NaN in {int(tensor.isnan().sum())} places and not {int(right.isnan().sum())}"
    infinite = right.isinf()
    is_alike = torch.equal(tensor.isinf(), infinite)
    if not (is_alike and bool((tensor == right)[infinite & ~right.isnan()].all())):
        return f"is infinite in {int(tensor.isinf().sum())} places and not {int(infinite.sum())}"
    finite = right.isfinite()
    tensor, right = tensor[finite], right[finite]
    if not right.numel():
        return None
    scale = max(float(right.abs().max()), least)
    off, own = float((tensor - right).abs().max()) / scale, 0.0
    if true is not None:
        exact = _precise(_dense(true))[finite]
        exact = torch.where(exact.isfinite(), exact, right)
        own = float((right - exact).abs().max()) / scale
        if own <= MAX_OWN:
            off = min(off, float((tensor - exact).abs().max()) / scale)
    if off > rounding + OWN * own * (own <= MAX_OWN):
        return f"is off by {off:.1e} of its largest value, eager PyTorch by {own:.1e}"
    return None


def _precise(tensor: torch.Tensor) -> torch.Tensor:
    """Return values in 64 bits, or 128 of complex numbers, whose magnitudes are then compared."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
