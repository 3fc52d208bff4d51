"""Forms of attention that Inductor's patterns fuse, asked of its pattern matcher itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch._dynamo.utils import counters
from torch._guards import TracingContext, tracing
from torch._inductor import config
from torch._inductor.compile_fx import compile_fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule

from benchmarks.attention_forms import Form
from benchmarks.written_attention import HEADS
from passnet.passes.apply.written_attention import fuse_attention
from passnet.passes.match.guards import note_example_values

SETTINGS: dict[str, Any] = {"force_disable_caches": True, "compile_threads": 1}

CHANGES: dict[str, Any] = {
    "scale": "divided",
    "layout": "four axes",
    "cast": False,
    "dropout": False,
    "softmax_axis": "last",
    "others": (),
    "mask": "none",
    "weights_used": False,
}
"""Fields of a form -> the value that Inductor's patterns know; first those that change no value."""


def num_fused(module: GraphModule, inputs: Sequence[Any], training: bool = False) -> int:
    """Return how many attentions Inductor's joint-graph patterns replace; nothing is compiled.

    `inputs` may be on the meta device. In training the patterns see forward and backward together.
    """

    def keep(graph: GraphModule, _: Sequence[Any], **__: Any) -> Callable[..., Any]:
        return graph.forward

    with FakeTensorMode() as mode:
        fakes = [
            torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device="cpu")
            for each in inputs
        ]
    before = counters["inductor"]["fuse_attention"]
    with tracing(TracingContext(mode)), config.patch(SETTINGS), torch.set_grad_enabled(training):
        if training:
            fakes = [each.requires_grad_(each.is_floating_point()) for each in fakes]
        compile_fx(module, fakes, inner_compile=keep)
    return counters["inductor"]["fuse_attention"] - before


def num_rewritten(module: GraphModule, inputs: Sequence[Any]) -> int:
    """Return how many attentions passnet's own rewrite can replace; it alters the module."""
    with FakeTensorMode():
        fakes = [
            torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device="cpu")
            for each in inputs
        ]
    note_example_values(module, fakes)
    return fuse_attention(module, least_scores=1)


def example(form: Form) -> tuple[GraphModule, list[torch.Tensor]]:
    """Return an attention that is written in a form, with fake arguments."""
    is_3d = form.layout.startswith(("3", "2"))
    has_views = form.layout.endswith("views between") and is_3d
    with torch.device("meta"):
        swapped = (2, 16, 4, 8)
        shape = (2, 2, 16, 8) if has_views else (4, 16, 8) if is_3d else swapped
        inputs = [torch.empty(shape) for _ in range(3)]
        shapes = {"views between": (8, 16, 16), "3 axes, views between": (2, 2, 16, 16)}
        shape = (4, 16, 16) if is_3d else (2, 1, 16, 16)
        added = torch.empty(shapes.get(form.layout, shape))
        inputs += [added, torch.empty(added.shape, dtype=torch.bool), torch.empty(1)]
        if form.cast:
            inputs[:3] = [each.bfloat16() for each in inputs[:3]]

    def scaled(scores: Any, one: Any) -> Any:
        kinds = {"divided": lambda: scores / 8.0, "multiplied": lambda: scores * 0.3}
        kinds["a tensor"] = lambda: scores * one
        return kinds.get(form.scale, lambda: scores)()

    def attention(q: Any, k: Any, v: Any, added: Any, hidden: Any, one: Any) -> Any:
        if has_views:
            q, k, v = (each.reshape(4, 16, 8) for each in (q, k, v))
        elif not is_3d:
            q, k, v = (each.permute(0, 2, 1, 3) for each in (q, k, v))
        if form.scale == "on query or key":
            q = q * 0.3
        if form.layout == "einsum":
            scores = torch.einsum("bhid,bhjd->bhij", q, k)
        elif form.layout == "3 axes" or has_views:
            scores = torch.bmm(q, k.transpose(1, 2))
        elif form.layout == "key not swapped last":
            scores = torch.matmul(q, k.transpose(1, 2).permute(0, 2, 3, 1))
        else:
            scores = torch.matmul(q, k.transpose(-2, -1))
        scores = scaled(scores, one)
        if form.layout == "views between":
            scores = scores.view(8, 16, 16)
        if has_views:
            scores = scores.view(2, 2, 16, 16)
        if "filled" in form.mask:
            scores = scores.masked_fill(hidden, -1e9)
        if "added" in form.mask or "bias" in form.mask:
            scores = scores + added
        if has_views:
            scores = scores.view(4, 16, 16)
        if form.cast:
            scores = scores.float()
        weights = torch.softmax(scores, -1 if form.softmax_axis == "last" else -2)
        if form.cast:
            weights = weights.to(torch.bfloat16)
        if form.dropout:
            weights = torch.nn.functional.dropout(weights, 0.1, True)
        if form.layout == "views between":
            weights = weights.view(2, 4, 16, 16)
        if form.layout == "einsum":
            output = torch.einsum("bhij,bhjd->bhid", weights, v)
        else:
            if form.layout == "weights right of the values":
                weights, v = v.transpose(-2, -1), weights.transpose(-2, -1)
            output = (torch.bmm if is_3d and form.layout != "3 axes by matmul" else torch.matmul)(
                weights, v
            )
        if has_views:
            output = output.view(2, 2, 16, 8)
        return (output, weights) if form.weights_used else (output,)

    return torch.fx.symbolic_trace(attention), inputs


@cache
def is_known(form: Form, training: bool = False) -> bool:
    """Return whether Inductor fuses an attention that is written in a form."""
    if form.others or form.layout == HEADS or form.scale == "in baddbmm":
        return False
    module, inputs = example(form)
    try:
        return num_fused(module, inputs, training) > 0
    except Exception:  # noqa: BLE001, a pattern's replacement may raise anything
        return False


def reason(form: Form, training: bool = False) -> tuple[str, ...]:
    """Return the fewest properties of a form to change so that Inductor fuses it.

    It is empty if Inductor fuses an attention of this form, so the reason is not in the form.
    """
    if form.layout == HEADS:
        return ("layout",)
    changes = [name for name, value in CHANGES.items() if getattr(form, name) != value]
    for size in range(len(changes) + 1):
        for chosen in itertools.combinations(changes, size):
            other = replace(form, **{name: CHANGES[name] for name in chosen})
            if is_known(other, training):
                return chosen
    return tuple(changes)
