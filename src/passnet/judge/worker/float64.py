"""The graph in float64, almost without rounding; run by the reference alone."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

_NARROWING = {"float", "half", "bfloat16"}


class InDouble(TorchFunctionMode):
    """Casts to any floating-point type become casts to float64."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__name__", "") in _NARROWING:
            return args[0].double()
        args, kwargs = tree_map(_widened, (args, kwargs or {}))
        return func(*args, **kwargs)


def run_exact(call: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Return the outputs of an eager graph in float64.

    The arguments are copied. An op that does not work in float64 raises its own error.
    """
    copied = [
        (argument.double() if argument.is_floating_point() else argument.clone())
        if isinstance(argument, torch.Tensor)
        else argument
        for argument in arguments
    ]
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with InDouble():
            return call(*copied)
    finally:
        torch.set_default_dtype(usual)


def _widened(value: Any) -> Any:
    if isinstance(value, torch.dtype) and value.is_floating_point:
        return torch.float64
    return value
