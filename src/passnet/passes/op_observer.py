"""What torch ops replacements use, seen by torch's dispatcher while they run.

Watching costs time, so it is done in some calls only, by putting a watched function in the place of
each replacement for as long as a call takes. Nothing stands between a call and its replacement in
all others.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx
from torch.utils._python_dispatch import TorchDispatchMode

from passnet.errors import PassError, boundary
from passnet.passes.pattern import as_module
from passnet.passes.rewrite import UNREAD, Site

MAX_OPS = 100
"""Most ops that are kept of a replacement."""


_CREATING = """
empty empty_like empty_strided new_empty new_empty_strided zeros zeros_like new_zeros ones ones_like
full full_like fill_ zero_ lift_fresh scalar_tensor"""
_MOVING = """
view reshape expand permute transpose t unsqueeze squeeze select slice as_strided detach alias
unfold split split_with_sizes chunk unbind _unsafe_view _reshape_alias clone copy_ _to_copy
_local_scalar_dense set_"""

NOT_COMPUTING = frozenset(f"aten.{name}" for name in f"{_CREATING} {_MOVING}".split())
"""Ops that create and move data, and compute nothing."""


class _Ops(TorchDispatchMode):
    """Lists the ops that are dispatched under it."""

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
        """Those that compute something."""
        return [name for name in self.names if name not in NOT_COMPUTING]


@dataclass
class Observation:
    """What one pass did in watched calls: the torch ops that its replacement computed with, and
    whether they were those of its pattern every time.
    """

    ops: dict[str, None] = field(default_factory=dict)
    same_as_pattern: bool = True


class Observer:
    """Watches the replacements of rewritten graphs; `observations` are by the name of the pass.

    `_watched` holds, for each graph, the dictionary in which its code looks up names, the
    replacements there, and the functions to put there to watch them.
    """

    def __init__(self) -> None:
        self.observations: dict[str, Observation] = {}
        self._watched: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = []

    def add(self, module: torch.fx.GraphModule, sites: Sequence[Site]) -> None:
        """Watch the replacements of a graph from now on; `module` must not be rewritten again."""
        forward: Any = module.forward
        names = forward.__globals__
        replacements, watched = {}, {}
        for site in sites:
            function: Any = site.node.target
            for name in [name for name, value in names.items() if value is function]:
                replacements[name] = function
                watched[name] = self._watched_function(site, function)
        self._watched.append((names, replacements, watched))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the calls that are made inside."""
        for names, _, watched in self._watched:
            names.update(watched)
        try:
            yield
        finally:
            for names, replacements, _ in self._watched:
                names.update(replacements)

    def _watched_function(self, site: Site, function: Callable[..., Any]) -> Callable[..., Any]:
        template = site.node.args
        pattern = as_module(site.source.pattern)

        def watched(*args: Any) -> Any:
            values = dict(_pairs(template, args))
            expected = _ops_of(pattern, site.inputs, values)
            with _Ops() as used:
                result = function(*args)
            observation = self.observations.setdefault(site.source.name, Observation())
            observation.ops.update(dict.fromkeys(used.computing))
            observation.same_as_pattern &= used.computing == expected
            return result

        return watched


def _pairs(template: Any, actual: Any) -> Iterator[tuple[torch.fx.Node, Any]]:
    """The nodes in a call's arguments with what they stand for in an actual call."""
    if isinstance(template, torch.fx.Node):
        yield template, actual
    elif isinstance(template, (tuple, list)):
        for inner, value in zip(template, actual, strict=True):
            yield from _pairs(inner, value)


def _ops_of(
    pattern: torch.fx.GraphModule, inputs: Sequence[Any], values: dict[torch.fx.Node, Any]
) -> list[str] | None:
    """The ops that a pattern computes with on some inputs; None where one of them is not known."""
    args = []
    for value in inputs:
        if isinstance(value, torch.fx.Node):
            if value not in values:
                return None
            value = values[value]
            value = value.clone() if isinstance(value, torch.Tensor) else value
        args.append(None if value is UNREAD else value)
    try:
        with boundary(PassError, "running a pattern by itself, which need not run"), _Ops() as used:
            pattern(*args)
    except PassError:
        return None
    return used.computing
