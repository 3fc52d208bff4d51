"""Shapes of every value of a graph, from a run under fake tensors: no memory, no arithmetic."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from passnet.errors import GraphError, boundary
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, TensorSpec, retarget
from passnet.graph.text.meta import check_arguments

if TYPE_CHECKING:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

SYMBOL_ANNOTATION = "torch.SymInt"
"""Annotation of an argument that is a Python integer, recorded as a tensor of one element."""


@dataclass(frozen=True, slots=True)
class ValueShape:
    """Shape and dtype of a value, None for no tensor; sizes that depend on values are -1.

    Strides are None for a contiguous tensor, and where they are not known. A part is in a tuple or
    a list, if by itself.
    """

    shape: tuple[int, ...] | None
    dtype: str | None
    stride: tuple[int, ...] | None = None
    is_part: bool = False


def infer_shapes(graph: Graph, where: str = "model.py") -> list[list[ValueShape]]:
    """Return the values that each op of a graph makes on the CPU; a tuple makes several.

    A failure is a GraphError that names the line, the op and the reason.
    """
    import torch

    from passnet.graph.values.fake_limits import SmallConstants, check_call, check_result

    check_arguments(graph.program, graph.tensors, where)
    program = retarget(graph, "cpu").program
    ops = program.ops
    module = build(program, where)
    shapes: list[list[ValueShape]] = [[] for _ in program.ops]

    class Recorder(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            if "custom" not in n.meta:
                return super().run_node(n)
            index = n.meta["custom"]["op"]
            op = ops[index]
            limits.num_calls = 0
            try:
                check_call(op.target, *self.fetch_args_kwargs_from_env(n))
                value = super().run_node(n)
                check_result(value)
            except Exception as cause:  # boundary: whatever torch raises names the line here
                raise GraphError(f"{where}:{op.line}: {op.target}: {_reason(cause)}") from cause
            is_part = isinstance(value, (tuple, list))
            shapes[index] = [_value_shape(part, is_part) for part in _flat(value)]
            return value

    limits = SmallConstants()
    running = boundary(GraphError, f"{where}: cannot run under fake tensors")
    with running, restored_state(), fake_mode(), limits, torch.no_grad():
        pairs = zip(graph.tensors, program.params, strict=True)
        args = [fake_input(spec, param.annotation) for spec, param in pairs]
        recorder = Recorder(module, garbage_collect_values=True)
        recorder.extra_traceback = False
        recorder.run(*args)
    return shapes


def fake_mode() -> FakeTensorMode:
    """Return a mode with symbols for value-dependent sizes; ops without a fake form fail."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    _give_fake_forms()
    symbols = ShapeEnv(allow_scalar_outputs=True, allow_dynamic_output_shape_ops=True)
    return FakeTensorMode(
        allow_non_fake_inputs=True, shape_env=symbols, allow_fallback_kernels=False
    )


@cache
def _give_fake_forms() -> None:
    """Register the fake form of the fused encoder layer, which torch lacks before 2.13."""
    import torch

    name = "aten::_transformer_encoder_layer_fwd"
    if not torch._C._dispatch_has_kernel_for_dispatch_key(name, "Meta"):
        torch.library.register_fake(name, lambda src, *args: torch.empty_like(src))


def fake_input(spec: TensorSpec, annotation: str | None) -> Any:
    """Return a stand-in under an active FakeTensorMode; raise GraphError for a bad value."""
    import torch

    dtype = getattr(torch, spec.dtype)
    with boundary(GraphError, f"argument {spec.name}"):
        if annotation == SYMBOL_ANNOTATION:
            return symbol_value(spec)
        number = _first_number(spec)
        if spec.num_elements == 1 and number is not None:
            return torch.tensor(number, dtype=dtype).reshape(spec.shape)
        return torch.empty(spec.shape, dtype=dtype)


def symbol_value(spec: TensorSpec) -> int:
    """Return the value of an integer argument; raise GraphError if none is recorded."""
    number = _first_number(spec)
    if number is None:
        raise GraphError(f"argument {spec.name} is a SymInt without a recorded value")
    return int(number)


def _first_number(spec: TensorSpec) -> float | int | None:
    return spec.data[0] if spec.data else spec.mean


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [part for inner in value for part in _flat(inner)]
    return [value]


def _value_shape(value: Any, is_part: bool) -> ValueShape:
    import torch

    if not isinstance(value, torch.Tensor):
        return ValueShape(None, None, None, is_part)
    sizes = tuple(int(size) if isinstance(size, int) else -1 for size in value.shape)
    stride = value.stride() if value.layout is torch.strided and -1 not in sizes else ()
    is_known = all(isinstance(step, int) for step in stride)
    return ValueShape(
        sizes,
        str(value.dtype).removeprefix("torch."),
        stride if stride and is_known and not value.is_contiguous() else None,
        is_part,
    )


def _reason(cause: Exception) -> str:
    if isinstance(cause, GraphError):
        return str(cause)
    text = str(cause).strip().split("\n", 1)[0]
    return f"{type(cause).__name__}: {text}" if text else type(cause).__name__


@contextmanager
def restored_state() -> Iterator[None]:
    """Restore vmap levels, autocast and grad mode after a graph that may fail half-way."""
    import torch
    from torch._C._functorch import maybe_current_level, pop_dynamic_layer_stack

    log = logging.getLogger("torch._subclasses.fake_tensor")  # prints a trace of each failure
    is_quiet, log.disabled = log.disabled, True
    autocast = torch.is_autocast_enabled("cpu")
    grad = torch.is_grad_enabled()
    level = maybe_current_level()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations inside a recorded graph are its own
            yield
    finally:
        while maybe_current_level() != level:
            pop_dynamic_layer_stack()
        torch.set_autocast_enabled("cpu", autocast)
        torch.set_grad_enabled(grad)
        log.disabled = is_quiet
