"""Calls of the loops language on torch tensors, with the semantics of their C++."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from passnet_loops.language.language import BOOLEAN_CALLS, CASTS, LOW_FLOATS, UNARY

REALS = (torch.float32, torch.float64)
_ORDER = (
    torch.float64,
    torch.float32,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
)

_CALLS: dict[str, Callable[..., torch.Tensor]] = {
    "truediv": torch.div,
    "mod": torch.fmod,
    "floordiv": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "truncdiv": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
}
"""Those that torch has under another name, or another meaning under this one."""

_REAL = (UNARY - {"relu", "logical_not", "bitwise_not", "sign", "neg", "abs"}) | {"truediv", "pow"}


def torch_call(name: str, args: Sequence[torch.Tensor]) -> torch.Tensor:
    """Compute a call of the language; low floats are held as float32.

    Raises:
        RuntimeError: Torch cannot do it, for example divide whole numbers by zero.
    """
    if name in CASTS:
        return torch_cast(name, args[0])
    values = list(args[1:]) if name in ("where", "masked") else list(args)
    dtype = _promoted([value.dtype for value in values])
    if name in _REAL and dtype not in REALS:
        dtype = torch.float32
    if dtype is torch.bool and name in ("add", "sub", "mul", "neg", "abs"):
        dtype = torch.int32
    values = [value.to(dtype) for value in values]
    if name in ("where", "masked"):
        return torch.where(args[0].bool(), values[0], values[1])
    if name == "mod" and dtype in REALS:
        return values[0] - values[1] * torch.floor(values[0] / values[1])
    function: Any = _CALLS.get(name) or getattr(torch, name)
    result = function(*values)
    return result.bool() if name in BOOLEAN_CALLS else result


def torch_cast(dtype: str, value: torch.Tensor) -> torch.Tensor:
    """Cast a value; low floats are rounded and held as float32."""
    if dtype in LOW_FLOATS:
        return value.to(torch.float32).to(getattr(torch, dtype)).to(torch.float32)
    return value != 0 if dtype == "bool" else value.to(getattr(torch, dtype))


def _promoted(dtypes: Sequence[torch.dtype]) -> torch.dtype:
    return next((dtype for dtype in _ORDER if dtype in dtypes), torch.bool)


def reduced(kind: str, value: torch.Tensor, num_inner: int) -> tuple[torch.Tensor, ...]:
    """Reduce a value over its last `num_inner` axes; welford returns two values."""
    flat = value.flatten(value.ndim - num_inner)
    is_real = value.dtype in REALS
    match kind:
        case "sum" | "prod":
            wide = flat.to(torch.float64 if is_real else torch.int64)
            result = wide.sum(-1) if kind == "sum" else wide.prod(-1)
            return (result.to(value.dtype) if is_real else result,)
        case "max" | "min":
            ordered = flat.to(torch.int64) if value.dtype is torch.bool else flat
            result = ordered.amax(-1) if kind == "max" else ordered.amin(-1)
            return (result.to(value.dtype),)
        case "any":
            return (flat.bool().any(-1),)
        case "argmax" | "argmin":
            return (flat.argmax(-1) if kind == "argmax" else flat.argmin(-1),)
    mean = flat.double().mean(-1).float()
    squares = (flat.float() - mean[..., None]).double().square().sum(-1)
    return mean, squares.float()
