"""Attention that a net writes out as products and a softmax, computed by torch's flash kernel.

Inductor does so by a list of patterns. Here the axes of the scores are followed from the product of
query and key through scales, masks and views to the product with the values, so that any spelling
by `matmul`, `bmm`, `baddbmm` or `einsum` will do.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.fx import GraphModule, Node

from passnet.passes.apply.axes import (
    PERMUTING,
    PRODUCTS,
    ROW_MAJOR,
    Atoms,
    Axes,
    AxisLayout,
    example_of,
    factors,
    is_plain,
)
from passnet.passes.apply.flash_attention import Attention, Mask, put_call
from passnet.passes.match.graph_index import GraphIndex
from passnet.passes.match.guards import EXAMPLE
from passnet.passes.match.normalise import CanonicalCall

SAME = frozenset(
    ["contiguous", "clone", "detach", "float", "to", "type", "type_as", "expand", "expand_as"]
)
SCALES = frozenset(["mul", "multiply", "div", "divide", "truediv"])
MASKS = frozenset(["add", "sub", "masked_fill", "where"])
COPIES = frozenset(["reshape", "flatten", "contiguous"])
MOVES = ROW_MAJOR | PERMUTING | SAME

LARGEST_FILL = -1e9
"""Scores that are replaced by at most this have no weight, unless all of a row are replaced."""

SUNK = -1e30
"""What is added to them. Nothing is left of the score, so that a row of them has equal weights."""

LEAST_SCORES, LARGEST_WIDTH = 196 * 196, 256
"""Fewest scores of a head, and most values of a key, for which the kernel was measured to win.

Source: one thread of a Xeon with AVX-512, torch 2.13, over what Inductor makes of
`((q * 0.3) @ k.mT + mask).softmax(-1) @ v`. With 197 columns and 12 heads the kernel is 1.11 to
1.49 times as fast, with 256 1.16 to 1.57, with 512 1.33 to 1.52, with 1,024 1.81 to 4.16. With 192
windows of 49 columns it is 0.77 to 0.86 times as fast.
"""

MAX_BETWEEN = 16
"""Most calls between a product and the softmax."""


def fuse_attention(module: GraphModule, least_scores: int = LEAST_SCORES) -> int:
    """Rewrite a graph of Dynamo in place; return the number of attentions that are one call now.

    Those with fewer scores in a head stay as they are.
    """
    index = GraphIndex(module.graph)
    softmaxes = [node for node, call in index.calls.items() if _name(call) == "softmax"]
    candidates = (_found(index, node) for node in softmaxes)
    attentions = [x for x in candidates if x and x.num_scores() >= least_scores]
    results: dict[Node, Node] = {}
    for attention in attentions:
        put_call(module.graph, attention, results)
    if attentions:
        module.graph.lint()
        module.recompile()
    return len(attentions)


def _name(call: CanonicalCall) -> str:
    """Return the last name of a callable of torch; nothing of others."""
    is_known = call.label.startswith(("torch.", "Tensor.", "operator.")) or call.label == "getattr"
    return call.label.rpartition(".")[2] if is_known else ""


def _found(index: GraphIndex, softmax: Node) -> Attention | None:
    """Return the attention of a softmax, if it is one."""
    if after := _after(index, softmax):
        for before in _before(index, softmax.all_input_nodes[0], softmax, MAX_BETWEEN):
            if attention := _followed(index, before, softmax, after):
                return attention
    return None


def _followed(
    index: GraphIndex, before: list[Node], softmax: Node, after: list[Node]
) -> Attention | None:
    """Return the attention of a path, if every call on it has a part in one."""
    walk = _Walk(index)
    path = [*before, softmax, *after]
    pairs = [*zip(path[1:], path, strict=False)]
    num_before, last = len(before) - 1, path[-1]
    is_one = (
        walk.begin(path[0])
        and all(walk.step(*pair) for pair in pairs[:num_before])
        and walk.normalise(softmax)
        and all(walk.move(*pair) for pair in pairs[num_before + 1 : -1])
        and walk.end(last, path[-2])
    )
    if not is_one or path[0] in index.writers or any("out" in node.kwargs for node in path):
        return None
    read = [*walk.operands, *walk.factors, *((mask.node, mask.layout) for mask in walk.masks)]
    groups = {index.group(node) for node, *_ in read}
    if any(index.group(node) in groups for node in index.writers if path[0] < node < last):
        return None
    is_written = any(index.group(node) == index.group(last) for node in index.writers)
    return walk.attention(path, not is_written and _is_copied(index, last))


def _before(index: GraphIndex, node: Node, user: Node, num_left: int) -> Iterator[list[Node]]:
    """Yield the calls from each product that leads to a value which only one call reads."""
    if not num_left or node not in index.calls or _users(index, node) != [user]:
        return
    name = _name(index.calls[node])
    if name in PRODUCTS:
        yield [node]
    elif name in MOVES | SCALES | MASKS:
        for source in node.all_input_nodes:
            for path in _before(index, source, node, num_left - 1):
                yield [*path, node]


def _after(index: GraphIndex, node: Node) -> list[Node]:
    """Return the calls from after a softmax up to a product."""
    path: list[Node] = []
    while len(path) < MAX_BETWEEN:
        users = _users(index, node)
        if len(users) != 1 or users[0] not in index.calls:
            return []
        [node] = users
        path.append(node)
        name = _name(index.calls[node])
        if name in PRODUCTS:
            return path
        if name not in MOVES | {"dropout"}:
            return []
    return []


def _users(index: GraphIndex, node: Node) -> list[Node]:
    return [user for user in node.users if not (user in index.calls and index.is_unused(user))]


def _is_copied(index: GraphIndex, node: Node) -> bool:
    """Return whether only copies into another order of axes read a value."""
    names = {user: _name(index.calls[user]) if user in index.calls else "" for user in node.users}
    return all(
        name in COPIES or (name in PERMUTING and _is_copied(index, user))
        for user, name in names.items()
    )


@dataclass
class _Walk:
    """The state of a walk along the path of an attention."""

    index: GraphIndex
    axes: Axes = field(default_factory=Axes)
    layout: AxisLayout = ()
    """The axes of the value here."""

    operands: list[tuple[Node, AxisLayout]] = field(default_factory=list)
    """Query, key and, at the end, value."""

    inner: Atoms = ()
    columns: Atoms = ()
    scale: float = 1.0
    factors: list[tuple[Node, AxisLayout, str]] = field(default_factory=list)
    masks: list[Mask] = field(default_factory=list)
    groups: tuple[Atoms, ...] = ()

    def begin(self, node: Node) -> bool:
        """Take the product of query and key."""
        call = self.index.calls[node]
        if not (product := factors(node, call)):
            return False
        pair, (*terms, out) = product
        shapes = [value.meta[EXAMPLE].shape for value in pair]
        atoms: dict[Any, Atoms] = {}
        for letters, shape in zip(terms, shapes, strict=True):
            layout = []
            for letter, size in zip(letters, shape, strict=True):
                atoms[letter] = atoms.get(letter) or self.axes.new(size)
                layout.append(atoms[letter] if size > 1 else ())
            self.operands.append((pair[len(self.operands)], tuple(layout)))
        self.layout = tuple(atoms[letter] for letter in out)
        self.inner = sum((atoms[letter] for letter in atoms if letter not in out), ())
        if not call.label.endswith(".baddbmm"):
            return True
        named = dict(call.arguments)
        self.scale, beta = float(named["alpha"]), named["beta"]
        return beta == 0 or (beta == 1 and self._add("add", named["self"]))

    def move(self, node: Node, source: Node) -> bool:
        """Take a call that changes no value."""
        call = self.index.calls[node]
        name, named, example = _name(call), dict(call.arguments), example_of(node)
        former = source.meta[EXAMPLE]
        is_first = call.arguments[0][1] is source
        if not is_first or not is_plain(example) or example.numel() != former.numel():
            return False
        if name in ROW_MAJOR | PERMUTING:
            layout = self.axes.moved(node, name, self.layout)
            self.layout = layout or ()
            return layout is not None
        is_idle = name == "dropout" and (named["training"] is False or named["p"] == 0)
        return (name in SAME or is_idle) and example.shape == former.shape

    def step(self, node: Node, source: Node) -> bool:
        """Take a call between the product and the softmax."""
        call = self.index.calls[node]
        name, named = _name(call), dict(call.arguments)
        if name not in SCALES | MASKS:
            return self.move(node, source)
        values = [value for _, value in call.arguments][:3]
        example = example_of(node)
        is_known = is_plain(example) and example.shape == source.meta[EXAMPLE].shape
        if not is_known or values.count(source) != 1:
            return False
        if name in ("masked_fill", "where"):
            if call.label != "torch.where":
                values = [values[1], values[0], values[2]]
            mask, first, second = values
            if name == "masked_fill":
                first, second = second, first
            chosen = second if first is source else first
            return mask is not source and self._fill(mask, first is source, chosen)
        is_first = values[0] is source
        operand = values[1] if is_first else values[0]
        if name in ("add", "sub"):
            is_sum = named.get("alpha", 1) == 1 and (is_first or name == "add")
            return is_sum and self._add(name, operand)
        is_product = name in ("mul", "multiply")
        is_quotient = is_first and named.get("rounding_mode") is None
        return (is_product or is_quotient) and self._multiply(
            "mul" if is_product else "div", operand
        )

    def _multiply(self, kind: str, operand: Any) -> bool:
        if any(mask.kind not in ("add", "sub") for mask in self.masks):
            return False
        if type(operand) in (int, float) and operand:
            factor = operand if kind == "mul" else 1 / operand
            self.scale *= factor
            self.masks = [replace(mask, scale=mask.scale * factor) for mask in self.masks]
            return math.isfinite(self.scale)
        if self.masks:
            return False
        layout = self._layout_of(operand)
        self.factors.append((operand, layout or (), kind))
        return layout is not None

    def _add(self, kind: str, summand: Any) -> bool:
        layout = self._layout_of(summand)
        self.masks.append(Mask(kind, summand, layout or ()))
        return layout is not None

    def _fill(self, mask: Any, is_kept: bool, value: Any) -> bool:
        if isinstance(value, Node) and value in self.index.calls:
            call = self.index.calls[value]
            position = {"torch.tensor": 0, "torch.full": 1}.get(call.label)
            value = None if position is None else call.arguments[position][1]
        layout = self._layout_of(mask, torch.bool)
        if layout is None or type(value) not in (int, float) or value > LARGEST_FILL:
            return False
        self.masks.append(Mask("keep" if is_kept else "fill", mask, layout, min(value, SUNK)))
        return True

    def _layout_of(self, value: Any, dtype: torch.dtype = torch.float32) -> AxisLayout | None:
        example = example_of(value)
        return self.axes.broadcast(example.shape, self.layout) if is_plain(example, dtype) else None

    def normalise(self, softmax: Node) -> bool:
        """Take the softmax."""
        named = dict(self.index.calls[softmax].arguments)
        if type(named.get("dim")) is not int or not is_plain(example_of(softmax)):
            return False
        self.columns = self.layout[named["dim"]]
        return bool(self.columns)

    def end(self, node: Node, source: Node) -> bool:
        """Take the product with the values, and put the axes into groups."""
        product = factors(node, self.index.calls[node])
        if not product or _name(self.index.calls[node]) == "baddbmm":
            return False
        pair, (*terms, out) = product
        position = pair.index(source)
        value, scores, layout = pair[1 - position], self.layout, []
        atoms = dict(zip(terms[position], scores, strict=True))
        for letter, size in zip(terms[1 - position], value.meta[EXAMPLE].shape, strict=True):
            atoms[letter] = atoms.get(letter) or self.axes.new(size)
            layout.append(atoms[letter] if size > 1 else ())
        self.operands.append((value, tuple(layout)))
        self.layout = tuple(atoms[letter] for letter in out)
        contracted = [atoms[letter] for letter in atoms if letter not in out]
        return self._group(self.axes.flat(*scores), self.axes.flat(*contracted))

    def _group(self, scores: Atoms, contracted: Atoms) -> bool:
        flat = self.axes.flat
        columns, inner = flat(self.columns), flat(self.inner)
        if set(columns) <= set(flat(*self.operands[0][1])):
            self.operands[:2] = self.operands[1::-1]
        query, key, value = (set(flat(*layout)) for _, layout in self.operands)
        outer = tuple(a for a in flat(*self.operands[2][1]) if a not in scores)
        batch = tuple(a for a in scores if a not in columns and a in key | value)
        rows = tuple(a for a in scores if a not in columns and a not in batch)
        self.groups = (batch, rows, columns, inner, outer)
        factors_of = [set(flat(*layout)) for _, layout, _ in self.factors]
        widths = [math.prod(self.axes.sizes(axes)) for axes in (inner, outer)]
        return (
            max(widths) <= LARGEST_WIDTH
            and sorted(contracted) == sorted(columns)
            and set(columns) <= key & value
            and not set(columns) & query
            and set(inner) <= query & key
            and all(own.isdisjoint(columns) or own.isdisjoint(rows) for own in factors_of)
        )

    def attention(self, path: Sequence[Node], is_copied: bool) -> Attention:
        """Return the attention of a whole path."""
        batch, *groups = self.groups
        split = self._split(batch, is_copied)
        return Attention(
            *(path, self.axes, self.operands, (batch[:split], batch[split:], *groups)),
            *(self.scale, self.factors, self.masks, self.layout, is_copied),
        )

    def _split(self, batch: Atoms, is_copied: bool) -> int:
        """Return how many atoms of the batch are no heads, so that the mask is smallest."""
        own = {a for mask in self.masks for a in self.axes.flat(*mask.layout)}

        def mask_size(split: int) -> int:
            groups = (batch[:split], batch[split:])
            return math.prod(size for g in groups if not own.isdisjoint(g)
                             for size in self.axes.sizes(g))  # fmt: skip

        usual = len(batch) - (len(batch) > 1 or is_copied)
        return min((usual, *range(1, len(batch))), key=mask_size)
