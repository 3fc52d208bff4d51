"""C++ kernels as ops of torch, which a tracer sees in the place of their calls.

A replacement that is traced becomes the ops that it consists of: torch's own, which Inductor
compiles with the rest of the graph, and one op for each call of a kernel, which writes into the
tensors that the kernel writes into and returns nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from passnet.errors import PassError

_codes: dict[torch._ops.OpOverload, "KernelCode"] = {}

_NUMBERS = {"f": "float", "d": "float", "?": "bool"} | dict.fromkeys("bhilBHIL", "int")
"""How a number is written in the schema of an op, by its letter."""


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A compiled function: its name, the shared object that has it, the letters of what each of its
    parameters is (`kinds`) and is of (`elements`), by `passnet_signature.h`, and whether it
    `may_fail`, and then returns the text of an error.
    """

    name: str
    library: Path
    kinds: str
    elements: str
    may_fail: bool


@cache
def _library() -> torch.library.Library:
    return torch.library.Library("passnet_kernel", "FRAGMENT")


def kernel_op(code: KernelCode, call: Callable[..., None]) -> torch._ops.OpOverload:
    """The op that calls a kernel; it is made once.

    Raises:
        PassError: the kernel takes a character, which no op can.
    """
    name = f"{code.name}_{code.library.stem}"
    if not hasattr(torch.ops.passnet_kernel, name):
        params = [_param(code, number) for number in range(len(code.kinds))]
        tags = [torch.Tag.needs_exact_strides]  # those that the replacement gave
        _library().define(f"{name}({', '.join(params)}) -> ()", tags=tags)
        _library().impl(name, call, "CPU")
        torch.library.register_fake(f"passnet_kernel::{name}", lambda *args: None, lib=_library())
        _codes[getattr(torch.ops.passnet_kernel, name).default] = code
    op: torch._ops.OpOverload = getattr(torch.ops.passnet_kernel, name).default
    return op


def _param(code: KernelCode, number: int) -> str:
    kind, element = code.kinds[number], code.elements[number]
    if kind != "n":
        return f"Tensor(a{number}!) a{number}" if kind == "w" else f"Tensor a{number}"
    if element not in _NUMBERS:
        raise PassError(f"kernel {code.name}: parameter {number + 1} is a char; take an int8_t")
    return f"{_NUMBERS[element]} a{number}"


def kernels_of(graph: torch.fx.Graph) -> dict[torch._ops.OpOverload, KernelCode]:
    """The kernels that a traced graph calls, by their ops."""
    called: list[Any] = [each for node in graph.nodes for each in (node.target, *node.args)]
    return {
        op: _codes[op] for op in called if isinstance(op, torch._ops.OpOverload) and op in _codes
    }
