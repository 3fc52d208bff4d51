"""Axes of tensors as products of smaller ones, followed through views and products.

A layout holds the atoms of each axis: axes that no view in sight splits further. `(B * heads, L)`
and `(B, heads, L)` have the same atoms, and an axis of one element has none.
"""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeAlias

import torch
from torch.fx import Node, map_arg

from passnet.passes.match.guards import EXAMPLE
from passnet.passes.match.normalise import CanonicalCall

Atoms: TypeAlias = tuple[int, ...]
AxisLayout: TypeAlias = tuple[Atoms, ...]
Letters: TypeAlias = tuple[Any, ...]

ROW_MAJOR = frozenset(
    ["view", "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "view_as", "reshape_as"]
)
PERMUTING = frozenset(["transpose", "permute", "swapaxes", "movedim", "t", "getattr"])
PRODUCTS = frozenset(["matmul", "bmm", "mm", "baddbmm", "einsum"])


def memory_order(value: torch.Tensor) -> tuple[list[int], list[int]]:
    """Return the axes as they lie in memory, the last one's numbers side by side, and the order
    that turns them back.
    """
    order = sorted(range(value.dim()), key=value.stride, reverse=True)
    return order, sorted(range(value.dim()), key=order.__getitem__)


class Axes:
    """The atoms of one attention by number; a view may split an atom that others have, too."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._parts: dict[int, Atoms] = {}

    def new(self, size: int) -> Atoms:
        """Return the atoms of an unknown axis."""
        if size == 1:
            return ()
        self._sizes.append(size)
        return (len(self._sizes) - 1,)

    def flat(self, *axes: Atoms) -> Atoms:
        """Return the atoms of some axes in order, split as far as they are now."""
        split = (self.flat(self._parts[a]) if a in self._parts else (a,) for a in chain(*axes))
        return tuple(chain(*split))

    def sizes(self, atoms: Atoms) -> list[int]:
        """Return the size of each atom."""
        return [self._sizes[atom] for atom in atoms]

    def viewed(self, layout: AxisLayout, shape: Sequence[int]) -> AxisLayout | None:
        """Return the layout after a view in row-major order; None where axes are cut unevenly."""
        left, axes = [*self.flat(*layout)], []
        for size in shape:
            axis: list[int] = []
            while size > 1:
                atom = left.pop(0)
                own = self._sizes[atom]
                if own > size and own % size == 0:
                    self._parts[atom] = self.new(size) + self.new(own // size)
                    atom, rest = self._parts[atom]
                    left.insert(0, rest)
                    own = size
                if size % own:
                    return None
                axis.append(atom)
                size //= own
            axes.append(tuple(axis))
        return tuple(axes)

    def broadcast(self, shape: Sequence[int], layout: AxisLayout) -> AxisLayout | None:
        """Return the layout of a tensor that broadcasts to one with a given layout."""
        pairs = [*zip(reversed(shape), reversed(layout), strict=False)]
        fits = all(size in (1, math.prod(self.sizes(axis))) for size, axis in pairs)
        if len(shape) > len(layout) or not fits:
            return None
        return tuple(axis if size > 1 else () for size, axis in reversed(pairs))

    def moved(self, node: Node, name: str, layout: AxisLayout) -> AxisLayout | None:
        """Return the layout of the result of a view of the first argument."""
        if name in ROW_MAJOR:
            return self.viewed(layout, node.meta[EXAMPLE].shape)
        if len(node.all_input_nodes) > 1:
            return None
        probe = torch.empty([*range(2, len(layout) + 2)], device="meta")  # sizes tell axes apart
        args, kwargs = map_arg((node.args, node.kwargs), lambda _: probe)
        return tuple(layout[size - 2] for size in called(node, args, kwargs).shape)


def called(node: Node, args: Sequence[Any], kwargs: Any) -> Any:
    """Return the result of a node's call with other arguments."""
    is_method = node.op == "call_method"
    call: Any = getattr(args[0], str(node.target)) if is_method else node.target
    return call(*args[is_method:], **kwargs)


def factors(node: Node, call: CanonicalCall) -> tuple[list[Any], list[Letters]] | None:
    """Return the two factors of a product, and the letters of their axes and of the result's."""
    name, values = call.label.rpartition(".")[2], [value for _, value in call.arguments]
    equation = "...mk,...kn->...mn"
    if name == "einsum":
        equation = str(values.pop(0)).replace(" ", "")
        values = [*values[0]] if isinstance(values[0], tuple) else values
    elif name == "baddbmm":
        values = values[1:3]
    is_pair = len(values) == 2 and values[0] is not values[1]
    if not is_pair or not all(is_plain(example_of(value)) for value in (*values, node)):
        return None
    ranks = [value.meta[EXAMPLE].dim() for value in (*values, node)]
    terms = equation.replace("->", ",").split(",")
    if "->" not in equation or len(terms) != 3 or (name != "einsum" and min(ranks) < 2):
        return None
    letters = [*map(_letters, terms, ranks)]
    left, right, out = map(set, letters)
    has_diagonal = any(len(set(each)) != len(each) for each in letters)
    return None if has_diagonal or not left ^ right <= out else (values, letters)


def _letters(term: str, rank: int) -> Letters:
    """Return a letter for each axis; those behind an ellipsis are counted from the right."""
    before, _, after = term.partition("...")
    return (*before, *range(rank - len(before) - len(after), 0, -1), *after)


def example_of(value: Any) -> Any:
    """Return the example of a node."""
    return value.meta.get(EXAMPLE) if isinstance(value, Node) else None


def is_plain(value: Any, dtype: torch.dtype = torch.float32) -> bool:
    """Return whether a value is a dense tensor on the CPU of a dtype, and its sizes are known."""
    return (
        isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and value.dtype is dtype
        and all(type(size) is int and size > 0 for size in value.shape)
    )
