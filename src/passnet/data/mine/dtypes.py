"""Graphs in another floating-point dtype: ops, their order and the data flow stay; no casts."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate

from passnet.core.records.dtypes import LARGEST
from passnet.data.mine.literals import map_arg, map_op, with_ops
from passnet.errors import GraphError
from passnet.graph.fx.build import build
from passnet.graph.spec import Arg, Graph, Op, TorchName, main_float, retarget
from passnet.graph.values.effects import last_name, may_alias
from passnet.graph.values.fake import fake_input, fake_mode, infer_shapes, restored_state

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
"""Norms, with the positions and names of their parameters and running statistics."""

FLOAT32_NORMS = frozenset(NORM_PARAMETERS)
"""Norms whose parameters and statistics stay float32: published for BatchNorm and LayerNorm, here
for all norms (reference: mining, generalisation).
"""

CUDA_FLOAT32_NORMS = frozenset(
    name for name in NORM_PARAMETERS if "batch" in name or "instance" in name
)
"""The norms that CUDA computes with parameters of another dtype than their input; its layer_norm
raises "expected scalar type BFloat16 but found Float" (pytorch issues 135969 and 138128)."""

MATCHED = frozenset([
    # published
    "matmul", "imatmul", "mm", "bmm", "linear", "conv1d", "conv2d", "conv3d", "addmm", "einsum",
    "scaled_dot_product_attention",
    # of the same kind
    "mv", "dot", "baddbmm", "addbmm", "addmv", "bilinear", "tensordot", "convolution",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "prelu", "gru_cell", "lstm_cell",
    "rnn_tanh_cell", "rnn_relu_cell", "rnn_tanh", "rnn_relu", "gru", "lstm",
    "multi_head_attention_forward", "_transformer_encoder_layer_fwd",
])  # fmt: skip
"""Ops, by last name, whose operands must have one dtype: that of the values they meet."""

_MASKED = frozenset(["scaled_dot_product_attention", "multi_head_attention_forward"])
"""Ops of `MATCHED` that take a mask of another dtype."""

_CASTS = frozenset(["to", "type", "type_as", "float", "half", "bfloat16", "double"])
"""Ops whose result may be their argument, but in a dtype they name."""


def in_dtype(graph: Graph, dtype: str, float32_norms: frozenset[str] = FLOAT32_NORMS) -> Graph:
    """Return the same graph with its floats in another dtype, one of `DTYPES`.

    Arguments of the main dtype change, but for parameters of `float32_norms`, which become float32,
    and for arguments that meet a value of another dtype in an op of `MATCHED`, which take that. A
    number beyond the largest of the dtype that an op computes in becomes the largest, as
    `torch.finfo(x.dtype).min` in a net does. In a graph of a half dtype, dtype literals of it
    follow; those of float32 stay, as `x.to(torch.float32)` may be there for precision. Captures of
    the net in both dtypes tell more; see `literals.adopt_literals`.

    Raises:
        GraphError: it has no argument of a floating-point dtype, or an op refuses the dtypes.
    """
    main = main_float(graph.tensors)
    if main is None:
        raise GraphError("graph: no argument has a floating-point dtype")
    program = graph.program
    if main in ("float16", "bfloat16"):
        literals: dict[Arg, Arg] = {TorchName(main): TorchName(dtype)}
        ops = [map_op(op, lambda arg: literals.get(arg, arg)) for op in program.ops]
        program = with_ops(program, ops)
    tensors = tuple(
        replace(spec, dtype=dtype) if spec.dtype == main else spec for spec in graph.tensors
    )
    run = _run(Graph(program, tensors), float32_norms)
    tensors = tuple(replace(spec, dtype=run.dtypes.get(spec.name, spec.dtype)) for spec in tensors)
    ops = [_within(op, run.limits.get(index, math.inf)) for index, op in enumerate(program.ops)]
    converted = Graph(with_ops(program, ops), tensors)
    infer_shapes(converted, "graph")
    return converted


class _FakeRun(torch.fx.Interpreter):
    """One run under fake tensors that finds the argument dtypes the ops accept. `dtypes` are of the
    arguments to convert, `limits` the largest number of a literal for ops with a larger one, and
    `running` the op that runs.
    """

    def __init__(
        self, module: torch.fx.GraphModule, ops: tuple[Op, ...], float32_norms: frozenset[str]
    ) -> None:
        super().__init__(module)
        self.dtypes: dict[str, str] = {}
        self.limits: dict[int, float] = {}
        self.running: Op | None = None
        self._ops = ops
        self._float32_norms = float32_norms
        self._argument: dict[torch.fx.Node, torch.fx.Node] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        if n.op == "placeholder":
            self._argument[n] = n
        if "custom" not in n.meta:
            return super().run_node(n)
        index = n.meta["custom"]["op"]
        op = self.running = self._ops[index]
        name = last_name(op.target)
        if op.target in NORM_PARAMETERS:
            self._suit_norm(op, n)
        elif name in MATCHED:
            self._suit_matched(n, name in _MASKED)
        first = n.all_input_nodes[0] if n.all_input_nodes else None
        if first in self._argument and may_alias(op.target) and name not in _CASTS:
            self._argument[n] = self._argument[first]
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        dtypes = [dtype for dtype in map(self._dtype, n.all_input_nodes) if dtype is not None]
        largest = LARGEST[dtypes[0]] if dtypes else math.inf
        if _within(op, largest) != op:
            self.limits[index] = largest
            clamp = partial(_clamped, op.target, largest=largest)
            args = tuple(map_aggregate(arg, clamp(place)) for place, arg in enumerate(args))
            kwargs = {name: map_aggregate(arg, clamp(name)) for name, arg in kwargs.items()}
        return getattr(self, n.op)(n.target, args, kwargs)

    def _suit_norm(self, op: Op, node: torch.fx.Node) -> None:
        """Convert norm parameters to float32, or to the dtype of the input."""
        is_float32 = op.target in self._float32_norms
        dtype = "float32" if is_float32 else self._dtype(node.all_input_nodes[0])
        for index, name in NORM_PARAMETERS[op.target]:
            parameter = node.args[index] if index < len(node.args) else node.kwargs.get(name)
            if isinstance(parameter, torch.fx.Node) and dtype is not None:
                self._convert(parameter, dtype)

    def _suit_matched(self, node: torch.fx.Node, is_masked: bool) -> None:
        """Convert arguments to the dtype of the values they meet; refuse other mixes."""
        operands = [operand for operand in node.all_input_nodes if self._dtype(operand) is not None]
        computed = [self._dtype(operand) for operand in operands if operand not in self._argument]
        for operand in operands:
            if computed and computed[0] is not None:
                self._convert(operand, computed[0])
        dtypes = sorted({str(self._dtype(operand)) for operand in operands})
        if len(dtypes) > 1 and not is_masked:
            raise GraphError(f"operands of {' and '.join(dtypes)}")

    def _convert(self, node: torch.fx.Node, dtype: str) -> None:
        """Convert an argument, or the argument of a view, to a dtype; other values stay."""
        argument = self._argument.get(node)
        if argument is None or self._dtype(node) in (dtype, None):
            return
        self.dtypes[str(argument.target)] = dtype
        for held in {node, argument} & self.env.keys():  # those that no op reads again are gone
            self.env[held] = self.env[held].to(getattr(torch, dtype))

    def _dtype(self, node: torch.fx.Node) -> str | None:
        """Return the dtype of a floating-point tensor; None for other values."""
        value = self.env.get(node)
        if not isinstance(value, torch.Tensor):
            return None
        dtype = str(value.dtype).removeprefix("torch.")
        return dtype if dtype in LARGEST else None


def _run(graph: Graph, float32_norms: frozenset[str]) -> _FakeRun:
    program = retarget(graph, "cpu").program
    annotations = {param.name: param.annotation for param in program.params}
    run = _FakeRun(build(program, "graph"), program.ops, float32_norms)
    try:
        with restored_state(), fake_mode(), torch.no_grad():
            run.run(*[fake_input(spec, annotations[spec.name]) for spec in graph.tensors])
    except Exception as cause:  # boundary: whatever torch raises names the op here
        target = run.running.target if run.running else "its arguments"
        text = str(cause).strip().split("\n", 1)[0]
        error_type = "" if isinstance(cause, GraphError) else f"{type(cause).__name__}: "
        raise GraphError(f"graph: {target}: {error_type}{text}") from cause
    return run


def _within(op: Op, largest: float) -> Op:
    """Return an op with its numbers clamped to the largest one; sizes and indices stay."""
    clamp = partial(_clamped, op.target, largest=largest)
    args = tuple(map_arg(arg, clamp(place)) for place, arg in enumerate(op.args))
    kwargs = tuple((name, map_arg(arg, clamp(name))) for name, arg in op.kwargs)
    return replace(op, args=args, kwargs=kwargs)


def _clamped(target: str, place: int | str, largest: float) -> Callable[[Any], Any]:
    """Return a clamp for finite numbers in an argument; integers are numbers in some places."""
    kinds = (int, float) if place in _number_places(target) else (float,)

    def clamp(arg: Any) -> Any:
        if type(arg) in kinds and math.isfinite(arg) and abs(arg) > largest:
            return type(arg)(math.copysign(largest, arg))
        return arg

    return clamp


@cache
def _number_places(target: str) -> frozenset[int | str]:
    """Return the positions and names of arguments that are numbers to compute with."""
    name = last_name(target)
    if target.startswith("operator."):
        return frozenset({"getitem": (), "setitem": (2,)}.get(name, (0, 1)))
    return frozenset(
        place
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        if any("Tensor" in str(argument.type) for argument in schema.arguments)
        for position, argument in enumerate(schema.arguments)
        if str(argument.type) in ("number", "Scalar", "Optional[number]", "Optional[Scalar]")
        for place in (position, argument.name)
    )
