"""The least work of a graph: the operations and the bytes of arguments that its outputs depend on.

The graph runs once in float64, and backwards with random gradients of its outputs. A compiler may
leave out values on which no output depends; their gradients are zero. Values with a gradient count
in lines of 64 bytes: memory moves in lines, and vectors compute as many values at a time.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from passnet.judge.worker.float64 import InDouble

LINE_BYTES = 64
_COPYING = {"clone", "_to_copy", "copy", "copy_", "fill_", "zero_", "detach", "alias"}
"""Pointwise ops that compute nothing."""


class _Pointwise(TorchDispatchMode):
    """A counter of floating-point values that pointwise ops make, of repeated ones once."""

    num_values = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.rpartition("::")[2]
        if torch.Tag.pointwise in func.tags and name not in _COPYING and _is_float(result):
            sizes = [1] * result.dim()
            for tensor in filter(torch.is_tensor, tree_leaves((args, kwargs))):
                for dim in range(-tensor.dim(), 0):
                    if tensor.stride(dim) and -dim <= len(sizes):
                        sizes[dim] = max(sizes[dim], tensor.size(dim))
            self.num_values += torch.Size(sizes).numel()
        return result


class _Demand(TorchFunctionMode):
    """Operations by kind, each call's counted as far as its result has gradients."""

    def __init__(self, products: FlopCounterMode, pointwise: _Pointwise) -> None:
        super().__init__()
        self.found = [0.0, 0.0]
        self._counters = (products.get_total_flops, lambda: pointwise.num_values)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        before = [count() for count in self._counters]
        result = func(*args, **(kwargs or {}))
        added = [count() - old for count, old in zip(self._counters, before, strict=True)]
        outputs = [leaf for leaf in tree_leaves(result) if _is_float(leaf) and leaf.requires_grad]
        if any(added) and outputs:

            def note(gradient: torch.Tensor) -> None:
                num_used, num_lines = _lines(gradient, LINE_BYTES // 4)
                for kind, number in enumerate(added):
                    self.found[kind] += number * num_used / max(1, num_lines)

            outputs[0].register_hook(note)
        return result


def count_work(call: Callable[..., Any], arguments: Sequence[Any]) -> tuple[int, int, int]:
    """Return the operations of products, the elementwise ones, and the bytes of arguments read.

    If an op refuses gradients of some arguments, as a batch norm those of its running means, only
    the largest argument counts; if it refuses all, the three are zero.
    """
    largest = max((a.nbytes for a in arguments if _is_float(a)), default=0)
    for least_bytes in (0, largest):
        with suppress(RuntimeError, TypeError, ValueError), torch.enable_grad():
            return _counted(call, arguments, least_bytes)
    return 0, 0, 0


def _counted(
    call: Callable[..., Any], arguments: Sequence[Any], least_bytes: int
) -> tuple[int, int, int]:
    leaves = [
        (argument.double() if argument.is_floating_point() else argument).clone()
        if isinstance(argument, torch.Tensor)
        else argument
        for argument in arguments
    ]
    wanted = [
        leaf.requires_grad_() if _is_float(leaf) and argument.nbytes >= least_bytes else None
        for leaf, argument in zip(leaves, arguments, strict=True)
    ]
    given = [leaf.clone() if torch.is_tensor(leaf) else leaf for leaf in leaves]
    own = {leaf.untyped_storage().data_ptr() for leaf in given if torch.is_tensor(leaf)}
    with FlopCounterMode(display=False) as products, _Pointwise() as pointwise:
        demand = _Demand(products, pointwise)
        with demand, InDouble():
            results = tree_leaves(call(*given))
    made = [
        result
        for result in results
        if _is_float(result)
        and result.requires_grad
        and result.untyped_storage().data_ptr() not in own
    ]
    torch.autograd.backward(made, [torch.rand_like(result) for result in made])
    num_bytes = 0
    for argument, leaf in zip(arguments, wanted, strict=True):
        if leaf is not None and leaf.grad is not None:
            num_lines, _ = _lines(leaf.grad, LINE_BYTES // argument.itemsize)
            num_bytes += min(argument.nbytes, num_lines * LINE_BYTES)
    return round(demand.found[0]), round(demand.found[1]), num_bytes


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _lines(gradient: torch.Tensor, per_line: int) -> tuple[int, int]:
    """Return the number of lines with a gradient, and of all lines."""
    marks = ((gradient != 0) & ~gradient.isnan()).reshape(-1)
    lines = torch.nn.functional.pad(marks, (0, -marks.numel() % per_line)).view(-1, per_line)
    return int(lines.any(1).sum()), len(lines)
