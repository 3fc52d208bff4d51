"""Tracing of `pattern` and `replacement_args` to graphs, with in-place operators kept as such."""

import inspect
import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.overrides import TorchFunctionMode

from passnet.errors import PassError, boundary
from passnet.graph.fx.operators import IN_PLACE

_FACTORIES = {
    torch.arange, torch.empty, torch.eye, torch.full, torch.linspace, torch.logspace, torch.ones,
    torch.rand, torch.randint, torch.randn, torch.randperm, torch.tensor, torch.zeros,
}  # fmt: skip
"""Functions that make a tensor out of literals; in a pattern they are calls to match."""


_OPS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
"""Types of `torch.ops.prims.iota.default` and of `torch.ops.prims.iota`."""


class _Proxy(torch.fx.Proxy):
    """A proxy that records `x += y` and `x[i] = y`, which fx would turn into `x + y` or refuse."""


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: args[0].tracer.create_proxy("call_function", function, args, {})


for _name in (*IN_PLACE.values(), "setitem"):
    setattr(_Proxy, f"__{_name}__", _recording(getattr(operator, _name)))


class _Tracer(torch.fx.Tracer):
    def proxy(self, node: torch.fx.Node) -> torch.fx.Proxy:
        return _Proxy(node, self)


class _RecordFactories(TorchFunctionMode):
    """A mode that records calls such as `torch.arange(8)`, whose arguments fx does not see."""

    def __init__(self, tracer: torch.fx.Tracer) -> None:
        self._tracer = tracer

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        makes = func in _FACTORIES or isinstance(func, _OPS)
        if makes and not any(isinstance(arg, torch.fx.Proxy) for arg in args):
            return self._tracer.create_proxy("call_function", func, args, kwargs)
        return func(*args, **kwargs)


def trace(function: Callable[..., Any], name: str) -> torch.fx.Graph:
    """Return the graph of a function's calls on positional stand-ins; a PassError names `name`."""
    with boundary(PassError, f"{name} is no function with parameters"):
        params = inspect.signature(function).parameters.values()
    for param in params:
        if param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD, param.KEYWORD_ONLY):
            raise PassError(f"{name} must take plain positional arguments, {param} is none")
    tracer = _Tracer()
    with boundary(PassError, f"tracing {name}"), _RecordFactories(tracer):
        return tracer.trace(function, concrete_args=None)
