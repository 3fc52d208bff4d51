"""The C++ ops of packed weights, and which values of a graph they take."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.fx

from passnet.errors import PassError, boundary
from passnet.passes.compilation import INCLUDE, build, check_watch
from passnet.passes.match.guards import EXAMPLE

SOURCE = INCLUDE / "packed" / "packed_products.cpp"

FROZEN = "frozen 1"
"""Words at the end of an op's form: its weights are constants of a package, and not watched."""


@cache
def load_op() -> str:
    """Load the op, compiled at first use; return the name of its build.

    Raises:
        PassError: there is no compiler, or torch has no oneDNN.
    """
    if not torch.backends.mkldnn.is_available():
        raise PassError("weights are packed by oneDNN, which this torch has not")
    root = Path(torch.__file__).parent
    flags = (
        *("-std=c++20", "-w", f"-I{root}/include", f"-L{root}/lib"),
        *(f"-I{root}/include/torch/csrc/api/include", "-ltorch_cpu", "-lc10"),
        f'-DVERSION="{torch.__version__}"',
    )
    path = build(SOURCE.read_text(encoding="utf-8"), flags)
    check_watch(path)
    with boundary(PassError, f"loading {path}"):
        torch.ops.load_library(str(path))
    torch.library.register_fake("passnet_packed::product", _fake)
    torch.library.register_fake("passnet_packed::recur", _fake_recur)
    torch.library.register_fake("passnet_packed::attend", _fake_attend)
    return path.stem


def freeze_weights(graph: torch.fx.Graph) -> None:
    """Let the packed ops of a graph not watch their weights, which nobody may write any more."""
    ops = torch.ops.passnet_packed
    for node in graph.nodes:
        if node.target in (ops.product.default, ops.recur.default):
            *others, form = node.args
            node.args = (*others, f"{form} {FROZEN}")


def _fake(
    x: torch.Tensor, weights: Sequence[torch.Tensor], other: torch.Tensor | None, form: str
) -> torch.Tensor:
    """Return a tensor of the result's shape and strides."""
    words = form.split()
    num_dims = int(words[0])
    if not num_dims:
        return x.new_empty((*x.shape[:-1], weights[0].shape[0]))
    stride, padding, dilation = (
        [int(word) for word in words[1 + part * num_dims : 1 + (part + 1) * num_dims]]
        for part in range(3)
    )
    groups = words[1 + 3 * num_dims]
    sizes = torch.convolution(
        *(x, weights[0], None, stride, padding, dilation, False, [0] * num_dims, int(groups))
    ).shape
    return channels_last(x.new_empty(sizes))


def _fake_attend(query: torch.Tensor, *parts: torch.Tensor) -> torch.Tensor:
    return query.new_empty((*query.shape[:3], parts[3].shape[3]))


def _fake_recur(
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
    hidden: torch.Tensor,
    cell: torch.Tensor | None,
    form: str,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    sizes = hidden.shape
    last_cell = x.new_empty(0 if cell is None else sizes)
    return x.new_empty((*x.shape[:2], sizes[-1])), x.new_empty(sizes), last_cell


def example_of(node: Any) -> torch.Tensor | None:
    """Return the example of a node's value if that is one tensor."""
    value = node.meta.get(EXAMPLE) if isinstance(node, torch.fx.Node) else None
    return value if isinstance(value, torch.Tensor) else None


def is_plain(value: torch.Tensor) -> bool:
    """Return whether a tensor is dense, on the CPU, in float32."""
    is_dense = value.layout is torch.strided and value.device.type == "cpu"
    return is_dense and value.dtype is torch.float32


def is_weight(node: Any, rank: int) -> bool:
    """Return whether a node is a parameter or buffer of the net, in float32 without gaps."""
    value = example_of(node)
    if value is None or node.op != "placeholder" or not is_plain(value) or value.dim() != rank:
        return False
    is_held = "_dynamo_static_input_type" in node.meta.get("tensor_dict", {})
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(value.dim())
    is_dense = value.is_contiguous() or (last and value.is_contiguous(memory_format=last))
    return bool(is_held and is_dense and value.numel())


def channels_last(value: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same sizes with the channels last in memory."""
    if value.dim() == 3:
        return torch.empty_like(value.mT, memory_format=torch.contiguous_format).mT
    last = torch.channels_last if value.dim() == 4 else torch.channels_last_3d
    return torch.empty_like(value, memory_format=last)
