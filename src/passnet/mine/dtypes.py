"""The same graph in another floating-point dtype: which of its arguments change, by how ops use
them.

Ops, their order and the data flow stay; no cast is put in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate

from passnet.errors import GraphError
from passnet.graph.build import build
from passnet.graph.device import retarget
from passnet.graph.effects import last_name, may_alias
from passnet.graph.fake import fake_input, fake_mode, infer_shapes, restored_state
from passnet.graph.spec import Arg, Graph, Op, Program, Ref, Sequence, Slice, TorchName, main_float
from passnet.records.dtypes import LARGEST

DTYPES = ("float32", "float16", "bfloat16")
"""The dtypes that graphs are made in (reference: mining, generalisation)."""

NORM_PARAMETERS: dict[str, tuple[tuple[int, str], ...]] = {
    "torch.nn.functional.batch_norm": (
        (1, "running_mean"), (2, "running_var"), (3, "weight"), (4, "bias")),
    "torch.nn.functional.instance_norm": (
        (1, "running_mean"), (2, "running_var"), (3, "weight"), (4, "bias")),
    "torch.batch_norm": ((1, "weight"), (2, "bias"), (3, "running_mean"), (4, "running_var")),
    "torch.nn.functional.layer_norm": ((2, "weight"), (3, "bias")),
    "torch.layer_norm": ((2, "weight"), (3, "bias")),
    "torch.nn.functional.group_norm": ((2, "weight"), (3, "bias")),
    "torch.group_norm": ((2, "weight"), (3, "bias")),
    "torch.nn.functional.rms_norm": ((2, "weight"),),
    "torch.rms_norm": ((2, "weight"),),
}  # fmt: skip
"""Norms, and which of their arguments are parameters or running statistics."""

PUBLISHED_KEPT = frozenset(NORM_PARAMETERS)
"""Norms whose parameters and statistics stay float32: published for BatchNorm and LayerNorm, here
for all norms (reference: mining, generalisation)."""

BATCH_KEPT = frozenset(name for name in NORM_PARAMETERS if "batch" in name or "instance" in name)
"""The norms that CUDA computes with parameters of another dtype than their input; its layer_norm
raises "expected scalar type BFloat16 but found Float" (pytorch issues 135969 and 138128)."""

MATCHED = frozenset([
    # published
    "matmul", "imatmul", "mm", "bmm", "linear", "conv1d", "conv2d", "conv3d", "addmm", "einsum",
    "scaled_dot_product_attention",
    # of the same kind
    "mv", "dot", "baddbmm", "addbmm", "addmv", "bilinear", "tensordot", "convolution",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "prelu", "gru_cell", "lstm_cell",
    "rnn_tanh_cell", "rnn_relu_cell", "gru", "lstm", "multi_head_attention_forward",
])  # fmt: skip
"""Ops, by their last name, whose operands must have one dtype: arguments take that of the values
that they meet."""

_MASKED = frozenset(["scaled_dot_product_attention", "multi_head_attention_forward"])
"""Those of them that take a mask of another dtype."""

_CASTS = frozenset(["to", "type", "type_as", "float", "half", "bfloat16", "double"])
"""Ops whose result may be their argument itself, but has a dtype of its own."""


def in_dtype(
    graph: Graph, dtype: str, kept: frozenset[str] = PUBLISHED_KEPT, where: str = "graph"
) -> Graph:
    """The same graph with its floats in another dtype.

    Arguments of the main dtype change, but for parameters of the norms in `kept`, which become
    float32, and for arguments that meet a value of another dtype in an op of `MATCHED`, which take
    that. A literal beyond the largest number of the dtype that an op computes in becomes that
    number, as `torch.finfo(x.dtype).min` in a net does. In a graph of a half dtype, dtype literals
    of it follow; those of float32 stay, as they may be there for precision: a graph that was
    captured in float32 does not tell `x.to(torch.float32)` from `x.to(y.dtype)`. Capturing the net
    in both dtypes does; see `follow`.

    Args:
        graph: with the specs of its arguments.
        dtype: one of `DTYPES`.
        kept: norms whose parameters are float32 whatever their input is; those of other norms take
            the dtype of it.
        where: named in errors.

    Raises:
        GraphError: it has no argument of a floating-point dtype, or an op refuses the dtypes.
    """
    main = main_float(graph.tensors)
    if main is None:
        raise GraphError(f"{where}: no argument has a floating-point dtype")
    program = graph.program
    if main in ("float16", "bfloat16"):
        program = _renamed(program, main, dtype)
    tensors = tuple(
        replace(item, dtype=dtype if item.dtype == main else item.dtype) for item in graph.tensors
    )
    walk = _walk(Graph(program, tensors), kept, where)
    tensors = tuple(replace(item, dtype=walk.fixed.get(item.name, item.dtype)) for item in tensors)
    made = Graph(_clamped(program, walk.clamped), tensors)
    infer_shapes(made, where)
    return made


def follow(graph: Graph, base: Graph, other: Graph) -> Graph:
    """A graph with those literals of `other` in which it differs from `base`.

    Where `base` and `other` are captures of one net in two dtypes, these are the literals that
    follow the dtype of the net.

    Args:
        graph: with the ops of both, and any sizes.
        base: a capture in the dtype of `graph`.
        other: the same in another dtype.

    Raises:
        GraphError: the ops differ, or a literal of the graph depends on its sizes as well.
    """
    ops = [item.program.ops for item in (graph, base, other)]
    if len({tuple(op.target for op in part) for part in ops}) != 1:
        raise GraphError("the graphs have other ops; literals of one are no literals of the other")
    changed = iter([_follow_op(mine, one, two) for mine, one, two in zip(*ops, strict=True)])
    body = tuple(next(changed) if isinstance(item, Op) else item for item in graph.program.body)
    return Graph(Program(graph.program.params, body, graph.program.outputs), graph.tensors)


def _follow_op(mine: Op, base: Op, other: Op) -> Op:
    keys = [[key for key, _ in op.kwargs] for op in (mine, base, other)]
    sizes = {len(op.args) for op in (mine, base, other)}
    if len(sizes) != 1 or keys[0] != keys[1] or keys[0] != keys[2]:
        raise GraphError(f"{mine.target}: called with other arguments in another capture")
    args = tuple(map(_follow_arg, mine.args, base.args, other.args))
    values = [[arg for _, arg in op.kwargs] for op in (mine, base, other)]
    return replace(
        mine, args=args, kwargs=tuple(zip(keys[0], map(_follow_arg, *values), strict=True))
    )


def _follow_arg(mine: Arg, base: Arg, other: Arg) -> Arg:
    if isinstance(mine, Ref) or base == other:
        return mine
    if isinstance(mine, Sequence) and isinstance(base, Sequence) and isinstance(other, Sequence):
        if len({len(part.items) for part in (mine, base, other)}) == 1:
            items = tuple(map(_follow_arg, mine.items, base.items, other.items))
            return replace(mine, items=items)
    elif isinstance(mine, Slice) and isinstance(base, Slice) and isinstance(other, Slice):
        parts = [(part.start, part.stop, part.step) for part in (mine, base, other)]
        return Slice(*map(_follow_arg, *parts))
    elif mine == base:
        return other
    raise GraphError(f"literal {mine!r} depends on sizes and on the dtype: {base!r}, {other!r}")


class _Walk(torch.fx.Interpreter):
    """One run under fake tensors that finds what arguments must be for the ops to take them.

    `fixed` has the dtypes of arguments that must be other ones, `clamped` the largest number that a
    literal of an op may be, for those with a larger one, and `at` the op that runs.
    """

    def __init__(
        self, module: torch.fx.GraphModule, ops: tuple[Op, ...], kept: frozenset[str]
    ) -> None:
        super().__init__(module)
        self.fixed: dict[str, str] = {}
        self.clamped: dict[int, float] = {}
        self.at: Op | None = None
        self._ops = ops
        self._kept = kept
        self._argument: dict[torch.fx.Node, torch.fx.Node] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        if n.op == "placeholder":
            self._argument[n] = n
        if "custom" not in n.meta:
            return super().run_node(n)
        index = n.meta["custom"]["op"]
        op = self.at = self._ops[index]
        name = last_name(op.target)
        if op.target in NORM_PARAMETERS:
            self._suit_norm(op, n)
        elif name in MATCHED:
            self._suit_matched(n, name in _MASKED)
        first = n.all_input_nodes[0] if n.all_input_nodes else None
        if first in self._argument and may_alias(op.target) and name not in _CASTS:
            self._argument[n] = self._argument[first]
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        kinds = [kind for kind in map(self._kind, n.all_input_nodes) if kind is not None]
        if kinds and _is_beyond((*op.args, *(arg for _, arg in op.kwargs)), LARGEST[kinds[0]]):
            self.clamped[index] = LARGEST[kinds[0]]
            within = partial(_within, largest=LARGEST[kinds[0]])
            args, kwargs = map_aggregate(args, within), map_aggregate(kwargs, within)
        return getattr(self, n.op)(n.target, args, kwargs)

    def _suit_norm(self, op: Op, node: torch.fx.Node) -> None:
        """Norm parameters become float32, or what the input is."""
        kind = "float32" if op.target in self._kept else self._kind(node.all_input_nodes[0])
        for place, name in NORM_PARAMETERS[op.target]:
            given = node.args[place] if place < len(node.args) else node.kwargs.get(name)
            if isinstance(given, torch.fx.Node) and kind is not None:
                self._fix(given, kind)

    def _suit_matched(self, node: torch.fx.Node, is_masked: bool) -> None:
        """Arguments take the dtype of the values that they meet; what differs then is refused.

        Some of these ops take other dtypes under fake tensors than on any device.
        """
        nodes = [item for item in node.all_input_nodes if self._kind(item) is not None]
        made = [self._kind(item) for item in nodes if item not in self._argument]
        for item in nodes:
            if made and made[0] is not None:
                self._fix(item, made[0])
        kinds = sorted({str(self._kind(item)) for item in nodes})
        if len(kinds) > 1 and not is_masked:
            raise GraphError(f"operands of {' and '.join(kinds)}")

    def _fix(self, node: torch.fx.Node, kind: str) -> None:
        """Make an argument, or the view of one, this dtype; other values stay."""
        argument = self._argument.get(node)
        if argument is None or self._kind(node) in (kind, None):
            return
        self.fixed[str(argument.target)] = kind
        for item in {node, argument} & self.env.keys():  # those that no op reads again are gone
            self.env[item] = self.env[item].to(getattr(torch, kind))

    def _kind(self, node: torch.fx.Node) -> str | None:
        """The dtype of a value that is a tensor of floats."""
        value = self.env.get(node)
        if not isinstance(value, torch.Tensor):
            return None
        kind = str(value.dtype).removeprefix("torch.")
        return kind if kind in LARGEST else None


def _walk(graph: Graph, kept: frozenset[str], where: str) -> _Walk:
    program = retarget(graph, "cpu").program
    annotations = {item.name: item.annotation for item in program.params}
    walk = _Walk(build(program, where), program.ops, kept)
    try:
        with restored_state(), fake_mode(), torch.no_grad():
            walk.run(*[fake_input(item, annotations[item.name]) for item in graph.tensors])
    except Exception as cause:  # boundary: whatever torch raises names the op here
        target = walk.at.target if walk.at else "its arguments"
        text = str(cause).strip().split("\n", 1)[0]
        kind = "" if isinstance(cause, GraphError) else f"{type(cause).__name__}: "
        raise GraphError(f"{where}: {target}: {kind}{text}") from cause
    return walk


def _clamped(program: Program, largest: Mapping[int, float]) -> Program:
    """The program with no literal of these ops beyond a number."""
    body = list(program.body)
    places = [place for place, item in enumerate(body) if isinstance(item, Op)]
    for index, number in largest.items():
        op = body[places[index]]
        assert isinstance(op, Op), "these places are those of ops"
        body[places[index]] = _map_op(op, partial(_within, largest=number))
    return Program(program.params, tuple(body), program.outputs)


def _is_beyond(arg: Arg | tuple[Arg, ...], largest: float) -> bool:
    if isinstance(arg, float):
        return math.isfinite(arg) and abs(arg) > largest
    if isinstance(arg, Sequence):
        arg = arg.items
    return isinstance(arg, tuple) and any(_is_beyond(item, largest) for item in arg)


def _within(arg: Any, largest: float) -> Any:
    """A number that is too large as the largest one; everything else as it is."""
    if isinstance(arg, float) and _is_beyond(arg, largest):
        return math.copysign(largest, arg)
    return arg


def _map_op(op: Op, change: Callable[[Arg], Arg]) -> Op:
    return replace(
        op,
        args=tuple(_map(arg, change) for arg in op.args),
        kwargs=tuple((name, _map(arg, change)) for name, arg in op.kwargs),
    )


def _map(arg: Arg, change: Callable[[Arg], Arg]) -> Arg:
    if isinstance(arg, Sequence):
        return replace(arg, items=tuple(_map(item, change) for item in arg.items))
    return change(arg)


def _renamed(program: Program, old: str, new: str) -> Program:
    """The program with one dtype literal in the place of another."""

    def change(arg: Arg) -> Arg:
        return TorchName(new) if arg == TorchName(old) else arg

    body = tuple(_map_op(item, change) if isinstance(item, Op) else item for item in program.body)
    return Program(program.params, body, program.outputs)
