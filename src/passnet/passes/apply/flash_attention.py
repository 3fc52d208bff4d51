"""One call of torch's flash kernel for CPUs in the place of an attention that is written out."""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node, map_arg

from passnet.passes.apply.axes import Atoms, Axes, AxisLayout, called, memory_order
from passnet.passes.match.guards import EXAMPLE


@dataclass(frozen=True)
class Mask:
    """A summand of the scores, or a choice between them and a number.

    `kind` is `add`, `sub`, `fill`, or `keep`: they are filled where it is false.
    """

    kind: str
    node: Node
    layout: AxisLayout
    number: float = -math.inf
    """The least that it may be, which filled scores are."""

    scale: float = 1.0


@dataclass(frozen=True)
class Attention:
    """The calls of an attention, its operands, and the axes of these."""

    path: Sequence[Node]
    axes: Axes
    operands: Sequence[tuple[Node, AxisLayout]]
    """Query, key and value."""

    groups: tuple[Atoms, ...]
    """Batch, heads, rows, columns, and the axes of a key and of a value."""

    scale: float
    factors: Sequence[tuple[Node, AxisLayout, str]]
    masks: Sequence[Mask]
    layout: AxisLayout
    """The axes of the result."""

    is_copied: bool
    """The result's strides do not matter."""

    def num_scores(self) -> int:
        """Return the number of scores in a head."""
        return math.prod(self.axes.sizes(self.axes.flat(*self.groups[2:4])))


def put_call(graph: Graph, found: Attention, results: dict[Node, Node]) -> None:
    """Put a call in the place of an attention; `results` holds the calls of earlier ones."""
    last = found.path[-1]
    with graph.inserting_before(last):
        result = _Writer(graph, found, results).attention()
    last.replace_all_uses_with(result)
    results[last] = result
    for node in reversed(found.path):
        graph.erase_node(node)


@dataclass
class _Writer:
    graph: Graph
    found: Attention
    results: dict[Node, Node]

    def attention(self) -> Node:
        """Put a call; return its result in the order of the original's axes."""
        found = self.found
        *outer, rows, columns, inner, last = found.groups
        ends = (rows, inner), (columns, inner), (columns, last)
        parts = [
            self.arranged(node, layout, (*outer, *end), True)
            for (node, layout), end in zip(found.operands, ends, strict=True)
        ]
        for node, layout, kind in found.factors:
            is_of_key = not set(found.axes.flat(*layout)).isdisjoint(found.axes.flat(columns))
            factor = self.arranged(node, layout, (*outer, columns if is_of_key else rows, ()))
            parts[is_of_key] = self.call(kind, parts[is_of_key], factor)
        mask = self.mask()
        widths = [part.meta[EXAMPLE].shape[-1] for part in parts]  # the kernel knows one alone
        parts = [self.widened(*each, max(widths)) for each in zip(parts, widths, strict=True)]
        op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        how: dict[str, Any] = {
            "attn_mask": mask and self.with_dense_rows(mask),
            "scale": found.scale,
        }
        both = self.graph.call_function(op, (*map(self.with_dense_rows, parts), 0.0, False), how)
        result = self.noted(self.graph.call_function(operator.getitem, (self.noted(both), 0)))
        if any(each.number == -math.inf for each in found.masks):
            # softmax makes nan of a row without a finite score, and the kernel zeros
            is_empty = self.call("eq", self.call("amax", mask, -1, True), -math.inf)
            result = self.call("masked_fill", result, is_empty, math.nan)
        if widths[-1] < max(widths):
            result = self.call("narrow", result, -1, 0, widths[-1])
        result = self.arranged(result, (*outer, rows, last), found.layout, True)
        return result if found.is_copied else self.in_order(result, found.path[-1].meta[EXAMPLE])

    def mask(self) -> Node | None:
        """Return the sum of all masks."""
        mask: Node | None = None
        for each in self.found.masks:
            own = self.arranged(each.node, each.layout, self.found.groups[:4])
            if each.kind in ("add", "sub"):
                scale = -each.scale if each.kind == "sub" else each.scale
                other = own if scale == 1 else self.call("mul", own, scale)
                mask = self.call("add", mask, other) if mask else other
                continue
            is_filled = self.call("logical_not", own) if each.kind == "keep" else own
            former = mask or self.call("mul", self.call("float", own), 0.0)
            mask = self.call("masked_fill", former, is_filled, each.number)
        return mask

    def arranged(
        self, node: Node, layout: AxisLayout, groups: Sequence[Atoms], is_full: bool = False
    ) -> Node:
        """Bring a tensor to one axis for each group; a group that it lacks is of one element."""
        axes = self.found.axes
        own = axes.flat(*layout)
        node = self.reshaped(self.results.get(node, node), axes.sizes(own))
        order = [own.index(atom) for atom in axes.flat(*groups) if atom in own]
        if order != sorted(order):
            node = self.call("permute", node, order)
        ones: list[int] = []
        full: list[int] = []
        last: list[int] = []
        for group in map(axes.flat, groups):
            is_there = is_full or not set(group).isdisjoint(own)
            sizes = axes.sizes(group) if is_there else [1] * len(group)
            ones += [size if a in own else 1 for a, size in zip(group, sizes, strict=True)]
            full += sizes
            last.append(math.prod(sizes))
        node = self.reshaped(node, ones)
        if full != ones:
            node = self.call("expand", node, full)
        return self.reshaped(node, last)

    def widened(self, node: Node, width: int, new: int) -> Node:
        """Return a tensor with zeros behind its rows."""
        how = (node, (0, new - width))
        pad = torch.nn.functional.pad
        return self.noted(self.graph.call_function(pad, how)) if new > width else node

    def reshaped(self, node: Node, sizes: list[int]) -> Node:
        """Return a tensor in a shape."""
        is_so = [*node.meta[EXAMPLE].shape] == sizes
        return node if is_so else self.call("reshape", node, sizes)

    def with_dense_rows(self, node: Node) -> Node:
        """Return a tensor whose last axis has no gaps, as the kernel reads it."""
        example = node.meta[EXAMPLE]
        is_dense = example.stride(-1) == 1 or example.shape[-1] == 1
        return node if is_dense else self.call("contiguous", node)

    def in_order(self, node: Node, former: torch.Tensor) -> Node:
        """Return a tensor with the strides of a former one."""
        if node.meta[EXAMPLE].stride() == former.stride():
            return node
        order, back = memory_order(former)
        return self.call(
            "permute", self.call("contiguous", self.call("permute", node, order)), back
        )

    def call(self, method: str, *args: Any) -> Node:
        """Put a call of a method."""
        return self.noted(self.graph.call_method(method, args))

    def noted(self, node: Node) -> Node:
        """Note an example value of a call."""
        args, kwargs = map_arg((node.args, node.kwargs), lambda each: each.meta[EXAMPLE])
        with torch.no_grad():
            node.meta[EXAMPLE] = called(node, args, kwargs)
        return node
