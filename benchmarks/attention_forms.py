"""The form of an attention that is written out: its scale, its mask, its layout, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from benchmarks.written_attention import (
    CASTS,
    DROPOUT,
    HEADS,
    HEAVY,
    MAX_BETWEEN,
    OTHERS,
    PRODUCTS,
    SCALES,
    VIEWS,
    Attention,
    Net,
    operands,
)


@dataclass(frozen=True)
class Form:
    """How an attention is written; each field but `layout` names one way to differ from the rest.

    The defaults are a form that Inductor fuses.
    """

    scale: str = "divided"
    mask: str = "none"
    layout: str = "four axes"
    cast: bool = False
    softmax_axis: str = "last"
    dropout: bool = False
    weights_used: bool = False
    others: tuple[str, ...] = field(default=())


def form_of(net: Net, attention: Attention, values: dict[Node, Any]) -> Form:
    """Describe an attention, from the fake values of a run."""
    if attention.scores is attention.output:
        return Form(layout=HEADS, weights_used=True)
    path = attention.path
    after = (attention.softmax, *attention.after)
    between = (*attention.before, *attention.after)
    written = [each for node in path for each in net.writers.get(node, ()) if each not in path]
    names = [net.names[node] for node in (*between, *written)]
    return Form(
        _scale(net, attention),
        _mask(net, [*attention.before, *written]),
        _layout(net, attention, values),
        any(_is_cast(net, node, values) for node in (attention.softmax, *between)),
        _axis(attention.softmax, values),
        any(net.names[node] in DROPOUT and _drops(node) for node in between),
        any(_is_used(net, node, path, written) for node in after),
        tuple(sorted({name for name in names if name in OTHERS} | _twice(net, attention))),
    )


def _twice(net: Net, attention: Attention) -> set[str]:
    """Return what an attention does twice that others do once."""
    scales = [node for node in attention.before if net.names[node] in SCALES]
    return {"another scale"} if len(scales) > 1 else set()


def _number(arg: object) -> bool:
    return isinstance(arg, (int, float))


def _scale(net: Net, attention: Attention) -> str:
    """Return how an attention is scaled; a scale before views is none to a pattern behind them."""
    for node in attention.before:
        if net.names[node] in SCALES and len(node.args) > 1:
            if not any(map(_number, node.args)):
                return "a tensor"
            return "multiplied" if net.names[node] in ("mul", "multiply") else "divided"
    if net.names[attention.scores] == "baddbmm" and attention.scores.kwargs.get("alpha", 1) != 1:
        return "in baddbmm"
    for operand in operands(net, attention.scores):
        node = operand
        num_views = 0
        for _ in range(MAX_BETWEEN):
            if net.names[node] in SCALES and any(map(_number, node.args)):
                return "none" if num_views else "on query or key"
            if net.names[node] not in VIEWS | CASTS | SCALES or not node.all_input_nodes:
                break
            num_views += net.names[node] in VIEWS and node is not operands(net, attention.scores)[1]
            node = node.all_input_nodes[0]
    return "none"


def _mask(net: Net, nodes: Sequence[Node]) -> str:
    kinds = set()
    for node in nodes:
        if net.names[node] in ("masked_fill", "where"):
            kinds.add("filled")
        elif net.names[node] in ("add", "sub"):
            others = [each for each in node.all_input_nodes if each not in nodes]
            kinds.add(_added(net, others))
    return " and ".join(sorted(kinds)) or "none"


def _added(net: Net, others: Sequence[Node]) -> str:
    """Return what a tensor is that is added to the scores."""
    seen: set[Node] = set()
    waiting = list(others)
    is_weight = False
    while waiting:
        node = waiting.pop()
        if net.names[node] in PRODUCTS:
            return "bias that is a product"
        if node.op == "placeholder" and not net.has_input[node]:
            is_weight = True
        if net.names[node] in ("embedding", "linear", "conv2d"):
            is_weight = True
        elif net.names[node] not in HEAVY:
            new = [each for each in node.all_input_nodes if each not in seen]
            seen.update(new)
            waiting += new
    return "bias of weights" if is_weight else "added"


def _layout(net: Net, attention: Attention, values: dict[Node, Any]) -> str:
    products = (attention.scores, attention.output)
    if any(net.names[node] == "einsum" for node in products):
        return "einsum"
    last = attention.after[-1] if attention.after else attention.softmax
    if operands(net, attention.output)[0] is not last:
        return "weights right of the values"
    rank = values[attention.scores].dim()
    moved = any(net.names[node] in VIEWS - {"contiguous", "detach"}
                and values[node].shape != values[node.all_input_nodes[0]].shape
                for node in (*attention.before, *attention.after)
                if isinstance(values.get(node), torch.Tensor)
                and isinstance(values.get(node.all_input_nodes[0]), torch.Tensor))  # fmt: skip
    if rank < 4:
        is_plain = all(net.names[node] in ("bmm", "baddbmm") for node in products)
        kind = ", views between" if moved else "" if is_plain else " by matmul"
        return f"{rank} axes{kind}"
    if moved:
        return "views between"
    if not _is_swap(net, operands(net, attention.scores)[-1], rank):
        return "key not swapped last"
    return "four axes" if rank == 4 else "more axes"


def _is_swap(net: Net, key: Node, rank: int) -> bool:
    """Return whether a node only swaps the last two axes."""
    name, args = net.names[key], key.args[1:]
    if name == "getattr":
        return args[0] in ("mT", "T")
    if name == "permute":
        axes = args[0] if args and isinstance(args[0], (tuple, list)) else args
        plain = [axis % rank for axis in axes]  # type: ignore[operator]
        return plain == [*range(rank - 2), rank - 1, rank - 2]
    numbers = [arg % rank for arg in args if isinstance(arg, int)]
    return name in ("transpose", "swapaxes") and sorted(numbers) == [rank - 2, rank - 1]


def _is_cast(net: Net, node: Node, values: dict[Node, Any]) -> bool:
    value, source = values.get(node), values.get(node.all_input_nodes[0])
    both = isinstance(value, torch.Tensor) and isinstance(source, torch.Tensor)
    return both and value.dtype != source.dtype and net.names[node] not in ("where",)


def _axis(softmax: Node, values: dict[Node, Any]) -> str:
    axis = softmax.kwargs.get("dim", softmax.args[1] if len(softmax.args) > 1 else -1)
    rank = values[softmax].dim()
    return "last" if isinstance(axis, int) and axis % rank == rank - 1 else "another"


def _drops(node: Node) -> bool:
    args = dict(zip(("input", "p", "training"), node.args, strict=False)) | dict(node.kwargs)
    return bool(args.get("training", True)) and args.get("p", 0.5) != 0


def _is_used(net: Net, node: Node, path: Sequence[Node], written: Sequence[Node]) -> bool:
    users = [user for user in node.users if user in net.live and user not in written]
    return any(user not in path for user in users)
