"""Two returned values compared: their form exactly, whole numbers exactly, floats within bounds."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 3e-2, torch.bfloat16: 6e-2}
"""The largest error allowed, relative to the largest magnitude of the output."""

OWN = 8.0
"""Factor on the error of eager PyTorch against float64, which is allowed besides."""

Exact = Callable[[], Any]
"""Return the value in float64, or None where the net does not run in it."""


def difference(value: Any, right: Any, exact: Exact | None = None, path: str = "it") -> str | None:
    """Return a sentence about the first difference of a value from the right one, or None."""
    wrong = _form(value, right, path) or _aliases(value, right)
    if wrong:
        return wrong
    tensors = [leaf for leaf in tree_leaves(_plain(value)) if isinstance(leaf, torch.Tensor)]
    rights = [leaf for leaf in tree_leaves(_plain(right)) if isinstance(leaf, torch.Tensor)]
    wrong = _values(tensors, rights, [None] * len(rights))
    if wrong and exact is not None and (true := exact()) is not None:
        trues = [leaf for leaf in tree_leaves(_plain(true)) if isinstance(leaf, torch.Tensor)]
        if [t.shape for t in trues] == [t.shape for t in rights]:
            return _values(tensors, rights, trues)
    return wrong


def _plain(value: Any) -> Any:
    """Return a value with dataclasses as dicts, so that all tensors in it are found."""
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, Mapping)):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _form(value: Any, right: Any, path: str) -> str | None:
    """Return a difference in types, nesting, shapes, dtypes, strides or plain values."""
    if type(value) is not type(right) and not (
        isinstance(value, torch.Tensor) and isinstance(right, torch.Tensor)
    ):
        return f"{path} is a {type(value).__name__} and not a {type(right).__name__}"
    if isinstance(right, torch.Tensor):
        return _tensor_form(value, right, path)
    if dataclasses.is_dataclass(right) and not isinstance(right, (type, Mapping)):
        value, right = vars(value), vars(right)
    if isinstance(right, Mapping):
        if list(value) != list(right):
            return f"{path} has other keys"
        value, right = list(value.values()), list(right.values())
    if isinstance(right, (list, tuple)):
        if len(value) != len(right):
            return f"{path} has {len(value)} items and not {len(right)}"
        pairs = enumerate(zip(value, right, strict=True))
        return next(filter(None, (_form(v, r, f"{path}[{n}]") for n, (v, r) in pairs)), None)
    if isinstance(right, (int, float, complex, str, bytes, bool, type(None))):
        return None if repr(value) == repr(right) else f"{path} is {value!r} and not {right!r}"
    return None


def _tensor_form(value: torch.Tensor, right: torch.Tensor, path: str) -> str | None:
    for name in ("shape", "dtype", "device", "layout", "requires_grad"):
        own, expected = getattr(value, name), getattr(right, name)
        if own != expected:
            return f"{path} has {name} {own} and not {expected}"
    if right.layout is torch.strided and right.numel():
        pairs = zip(right.shape, value.stride(), right.stride(), strict=True)
        if any(size > 1 and own != expected for size, own, expected in pairs):
            return f"{path} has strides {value.stride()} and not {right.stride()}"
    return None


def _aliases(value: Any, right: Any) -> str | None:
    """Return a difference in which tensors share memory."""
    patterns = []
    for each in (value, right):
        leaves = [leaf for leaf in tree_leaves(_plain(each)) if isinstance(leaf, torch.Tensor)]
        strided = [leaf for leaf in leaves if leaf.layout is torch.strided and leaf.numel()]
        places = [leaf.untyped_storage().data_ptr() for leaf in strided]
        patterns.append([places.index(place) for place in places])
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
    tensor = tensor if tensor.layout is torch.strided else tensor.to_dense()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _value(tensor: torch.Tensor, right: torch.Tensor, true: torch.Tensor | None) -> str | None:
    if tensor.shape != right.shape:
        return f"has shape {tuple(tensor.shape)} and not {tuple(right.shape)}"
    if not right.is_floating_point():
        count = int((tensor != right).sum())
        return f"has {count} of {right.numel()} other values" if count else None
    rounding = ROUNDING.get(right.dtype, 1e-4)
    tensor, right = tensor.double(), right.double()
    if not torch.equal(tensor.isnan(), right.isnan()):
        return f"is NaN in {int(tensor.isnan().sum())} places and not {int(right.isnan().sum())}"
    infinite = right.isinf()
    if not (torch.equal(tensor.isinf(), infinite) and bool((tensor == right)[infinite].all())):
        return f"is infinite in {int(tensor.isinf().sum())} places and not {int(infinite.sum())}"
    finite = right.isfinite()
    tensor, right = tensor[finite], right[finite]
    if not right.numel():
        return None
    scale = max(float(right.abs().max()), 1e-30)
    off, own = float((tensor - right).abs().max()) / scale, 0.0
    if true is not None:
        exact = _dense(true).double()[finite]
        exact = torch.where(exact.isfinite(), exact, right)
        own = float((right - exact).abs().max()) / scale
        off = min(off, float((tensor - exact).abs().max()) / scale)
    if off > rounding + OWN * own:
        return f"is off by {off:.1e} of its largest value, eager PyTorch by {own:.1e}"
    return None
