"""Torch ops that replacements use, seen by torch's dispatcher in watched calls.

The ops of `replacement_args` are read from the graph.
"""

import builtins
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CellType
from typing import Any

import torch
import torch.fx
from torch.utils._python_dispatch import TorchDispatchMode

from passnet.errors import PassError, boundary
from passnet.passes.apply.rewrite import UNREAD, Site
from passnet.passes.match.pattern import as_module

MAX_OPS = 100
MAX_NAME_CHARS = 80


_CREATING = """
empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like new_zeros
ones ones_like new_ones full full_like new_full fill_ zero_ lift_fresh scalar_tensor"""
_MOVING = """
view reshape expand permute transpose transpose_ t t_ unsqueeze unsqueeze_ squeeze squeeze_ select
slice as_strided as_strided_ detach detach_ alias unfold diagonal narrow split split_with_sizes
unsafe_split unsafe_chunk chunk unbind _unsafe_view _reshape_alias clone copy_ _to_copy view_as_real
view_as_complex _local_scalar_dense set_ resize_ is_pinned _pin_memory"""
_MOVING_METHODS = """
contiguous to type_as flatten unflatten ravel view_as reshape_as expand_as broadcast_to movedim
moveaxis swapaxes swapdims float double half bfloat16 int long short bool cpu cuda item T mT"""
_DESCRIBING = """
size shape dim ndim numel nelement stride dtype device layout element_size itemsize storage_offset
is_contiguous is_floating_point is_complex get_device data_ptr"""

NOT_COMPUTING = frozenset(f"aten.{name}" for name in f"{_CREATING} {_MOVING}".split())
_MOVES = frozenset(f"{_CREATING} {_MOVING} {_MOVING_METHODS}".split())
_DESCRIBES = frozenset(_DESCRIBING.split())


class _Ops(TorchDispatchMode):
    """A mode that lists the ops dispatched under it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if len(self.names) < MAX_OPS:
            self.names.append(str(func.overloadpacket))
        return func(*args, **(kwargs or {}))

    @property
    def computing(self) -> list[str]:
        """Return the ops that compute something."""
        return [name for name in self.names if name not in NOT_COMPUTING]


@dataclass
class Observation:
    """The torch ops of a replacement in watched calls, and a comparison with the pattern's."""

    ops: dict[str, None] = field(default_factory=dict)
    same_as_pattern: bool = True


class Observer:
    """A watcher of the replacements in rewritten graphs, with observations by name of the pass.

    `_watched` holds each site's cell, the replacement in it, and the watching function.
    """

    def __init__(self) -> None:
        self.observations: dict[str, Observation] = {}
        self._watched: list[tuple[CellType, Callable[..., Any], Callable[..., Any]]] = []

    def add(self, sites: Sequence[Site]) -> None:
        """Watch the replacements of a graph from now on, however it is compiled."""
        for site in sites:
            function: Any = site.node.target
            [cell] = function.__closure__
            replacement = cell.cell_contents
            self._watched.append((cell, replacement, self._watched_function(site, replacement)))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the calls inside the block."""
        for cell, _, watched in self._watched:
            cell.cell_contents = watched
        try:
            yield
        finally:
            for cell, replacement, _ in self._watched:
                cell.cell_contents = replacement

    def _watched_function(self, site: Site, function: Callable[..., Any]) -> Callable[..., Any]:
        template, prepared = site.node.args, dict.fromkeys(_prepared_ops(site))
        pattern = as_module(site.source.pattern)

        def watched(*args: Any) -> Any:
            values = dict(_pairs(template, args))
            expected = _ops_of(pattern, site.inputs, values)
            with _Ops() as used:
                result = function(*args)
            observation = self.observations.setdefault(site.source.name, Observation())
            observation.ops.update(prepared | dict.fromkeys(used.computing))
            observation.same_as_pattern &= used.computing == expected
            return result

        return watched


def _prepared_ops(site: Site) -> list[str]:
    """Return the ops of `replacement_args` besides moves, descriptions and arithmetic."""
    ops, numbers = [], set()
    for node in site.prepared:
        name: Any = node.target if isinstance(node.target, str) else _own_name(node.target)
        index = node.args[1] if name in ("getattr", "getitem") else None
        name = index if name == "getattr" else name
        is_plain = node.op != "call_method" and name is not None
        if name in _DESCRIBES or (is_plain and numbers.issuperset(node.all_input_nodes)):
            numbers.add(node)
        elif name not in _MOVES and (name != "getitem" or node.all_input_nodes[1:]):
            ops.append(f"replacement_args: {name or node.target}"[:MAX_NAME_CHARS])
    return ops


def _own_name(function: Any) -> str | None:
    """Return a function's name if Python or torch has it under this name."""
    name = str(getattr(function, "__name__", ""))
    owners = (operator, math, builtins, torch)
    return name if any(getattr(owner, name, None) is function for owner in owners) else None


def _pairs(template: Any, actual: Any) -> Iterator[tuple[torch.fx.Node, Any]]:
    """Yield the nodes in a call's arguments with their values in an actual call."""
    if isinstance(template, torch.fx.Node):
        yield template, actual
    elif isinstance(template, (tuple, list)):
        for inner, value in zip(template, actual, strict=True):
            yield from _pairs(inner, value)


def _ops_of(
    pattern: torch.fx.GraphModule, inputs: Sequence[Any], values: dict[torch.fx.Node, Any]
) -> list[str] | None:
    """Return the ops that a pattern computes with on some inputs; None if an input is unknown."""
    read: list[torch.fx.Node] = []
    torch.fx.map_arg(tuple(inputs), read.append)
    if not values.keys() >= set(read):
        return None
    copies = {
        node: value.clone() if isinstance(value, torch.Tensor) else value
        for node, value in values.items()
    }
    args = [
        None if value is UNREAD else torch.fx.map_arg(value, copies.__getitem__) for value in inputs
    ]
    try:
        with boundary(PassError, "running a pattern by itself, which need not run"), _Ops() as used:
            pattern(*args)
    except PassError:
        return None
    return used.computing
