"""Ranges of a graph's ops that generated kernels can compute, cut out and lowered."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
import torch.fx

from passnet.data.mine.cut import Parent, cut_range, inferred_specs, parent_of, single_assignment
from passnet.errors import AuthorError, CutError, FusionError, GraphError, PassError, boundary
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, Op, Program, Ref, TensorSpec, refs, retarget
from passnet.graph.values.fake import fake_input, restored_state
from passnet.inductor.fusion import FusionPlan, fusion_plan
from passnet.inductor.generated_code import GeneratedCode, generate
from passnet.inductor.schedule import TargetDevice
from passnet.inductor.simulated_gpu import DevicelessMode, answering_for_gpu
from passnet.passes.codegen.cpp_source import fails_in_threads
from passnet.passes.codegen.eager_steps import INTERPOLATION, LOW_FLOATS, in_eager_steps
from passnet.passes.codegen.triton_source import triton_source
from passnet.passes.match.graph_index import GraphIndex
from passnet.passes.match.match import each_match
from passnet.passes.match.pattern import Match, make_pattern


@dataclass(frozen=True, slots=True)
class ParameterOrder:
    """A range's argument for each parameter of a pattern, and result for each result, by number."""

    arguments: tuple[int, ...]
    results: tuple[int, ...]


def parameter_orders(cut: Graph, parent: Program, start: int) -> list[ParameterOrder]:
    """Return the orders of parameters that a range's pattern matches with at its origin.

    The range is from `cut_range` of `parent`, in single-assignment form, and begins at op `start`.
    """
    pattern = make_pattern("piece", build(cut.program))
    matches: list[Match] = []
    each_match(pattern, GraphIndex(build(parent).graph), matches.append)
    outputs = cut.program.outputs
    arguments = {spec.original_name: number for number, spec in enumerate(cut.tensors)}
    ops = {op.output: start + number for number, op in enumerate(cut.program.ops)}
    results = {ops[name]: number for number, arg in enumerate(outputs) for name in refs(arg)}
    names = [op.output for op in parent.ops]
    orders = [ParameterOrder(tuple(range(len(cut.tensors))), tuple(range(len(outputs))))]
    for match in matches:
        nodes = [match.nodes.get(param) for param in pattern.params]
        order = ParameterOrder(
            tuple(arguments.get(_value_name(node, names), -1) for node in nodes),
            tuple(results.get(_op_number(match.nodes[node]), -1) for node in pattern.outputs),
        )
        if -1 not in (*order.arguments, *order.results) and order not in orders:
            orders.append(order)
    return orders


def _op_number(node: torch.fx.Node) -> int:
    return node.meta["custom"]["op"] if "custom" in node.meta else -1


def _value_name(node: object, names: list[str | None]) -> str | None:
    """Return the name of a value in the program that a module was built from."""
    if not isinstance(node, torch.fx.Node):
        return None
    return str(node.target) if node.op == "placeholder" else names[_op_number(node)]


Span: TypeAlias = tuple[int, int]
"""Ops [start, stop) of a graph in single-assignment form."""

Options: TypeAlias = tuple[tuple[str, Any], ...]
TRIMS = ((0, 1), (1, 0), (1, 1), (0, 2), (2, 0))
"""Ops to leave out at the ends of a range that cannot be lowered whole, most often views."""


@dataclass(frozen=True, slots=True)
class LoweredRange:
    """Ops of a graph as a graph, with their code and the orders that a pattern may get them in."""

    span: Span
    cut: Graph
    code: GeneratedCode
    orders: tuple[ParameterOrder, ...]


class GraphLowering:
    """A lowering of ranges of one graph, each once for the same options.

    `refused` says why a span cannot be cut out, lowered or written. Ops before `first_op` are in no
    largest span. A graph whose shapes cannot be inferred is an AuthorError.
    """

    def __init__(
        self, graph: Graph, where: str, device: TargetDevice = "cpu", first_op: int = 0
    ) -> None:
        self._where = where
        self._device: TargetDevice = device
        self._first_op = first_op
        single = Graph(single_assignment(graph.program), graph.tensors)
        try:
            specs = inferred_specs(single)
        except GraphError as cause:
            raise AuthorError(f"{where}: {cause}") from cause
        self._program = single.program
        self._parent: Parent = parent_of(single.program, specs)
        self._strides = value_strides(single, device)
        plan: FusionPlan | None = None
        with suppress(FusionError):
            plan = fusion_plan(single, where, device)
        self.is_library_only = plan is not None and first_op == 0 and _is_library_only(plan)
        skipped = library_ops(plan) if plan else set()  # without one, a part may be lowered yet
        ops = single.program.ops
        if device == "cpu" and len(ops) > 1:
            skipped |= {
                number for number, op in enumerate(ops) if interpolates_low_dtype(op, specs)
            }
        between = spans_between(skipped, len(ops))
        self._spans = tuple(
            (max(start, first_op), stop) for start, stop in between if stop > first_op
        )
        self._ranges: dict[tuple[Span, Options], LoweredRange | None] = {}
        self.refused: dict[Span, str] = {}

    def largest(self, options: Options) -> tuple[Span, ...]:
        """Return the longest spans that generated kernels can compute, without library calls."""
        return tuple(span for bounds in self._spans for span in self._cover(*bounds, options))

    def whole(self) -> Graph:
        """Return the graph without unread arguments; raise CutError if it cannot be cut out."""
        return cut_range(self._parent, 0, len(self._program.ops))

    def single_ops(self, is_wanted: Callable[[Op, Mapping[str, TensorSpec]], bool]) -> list[Graph]:
        """Return the ops that `is_wanted` accepts, each as a graph."""
        cuts = []
        for number in range(self._first_op, len(self._parent.ops)):
            if is_wanted(self._parent.ops[number], self._parent.specs):
                with suppress(CutError):
                    cuts.append(cut_range(self._parent, number, number + 1))
        return cuts

    def lowered(self, span: Span, options: Options) -> LoweredRange | None:
        """Return the range of a span; None if it cannot be cut out or lowered."""
        key = (span, options)
        if key not in self._ranges:
            try:
                self._ranges[key] = self._lower(span, options)
            except (AuthorError, CutError, GraphError, PassError) as cause:
                self._ranges[key] = None
                self.refused[span] = str(cause)
        return self._ranges[key]

    def _cover(self, start: int, stop: int, options: Options) -> list[Span]:
        """Return spans within a range, found by leaving out its ends or by halving it."""
        for front, back in ((0, 0), *TRIMS):
            span = (start + front, stop - back)
            if span[0] < span[1] and self.lowered(span, options) is not None:
                return [span]
        if stop - start <= 1:
            return []
        middle = (start + stop) // 2
        return [*self._cover(start, middle, options), *self._cover(middle, stop, options)]

    def _lower(self, span: Span, options: Options) -> LoweredRange:
        where = f"{self._where}{list(span)}"
        cut = cut_range(self._parent, *span)
        if not cut.tensors:
            raise AuthorError(f"{where}: it reads nothing")
        strides = {
            spec.name: self._strides[spec.original_name]
            for spec in cut.tensors
            if spec.original_name in self._strides
        }
        lies = dict(strides)
        if any(op.target == INTERPOLATION for op in cut.program.ops):
            lies |= _strides_by_cpp(cut, strides)
        steps = in_eager_steps(cut, inferred_specs(cut), self._device, lies)
        code = generate(steps, strides, dict(options), where, self._device)
        if self._device == "cuda":
            triton_source(code)  # refuses what uses a function that we have not
        elif fails_in_threads(code):
            alone = {**dict(options), "cpp.threads": 1}
            code = generate(steps, strides, alone, where, self._device)
        return LoweredRange(span, cut, code, tuple(parameter_orders(cut, self._program, span[0])))


def library_ops(plan: FusionPlan) -> set[int]:
    """Return the ops that a plan leaves to a library."""
    return {op for kernel in plan.kernels if kernel.is_extern for op in kernel.ops}


def _is_library_only(plan: FusionPlan) -> bool:
    """Return whether each op calls a library or makes no kernel."""
    calls = library_ops(plan)
    return bool(calls) and all(calls.issuperset(kernel.ops) for kernel in plan.kernels)


def spans_between(skipped: Iterable[int], num_ops: int) -> tuple[Span, ...]:
    """Return the ranges of ops between the skipped ones.

    Examples:
        >>> spans_between({1, 4}, 5)
        ((0, 1), (2, 4))
    """
    ends = sorted(skipped)
    starts = [0, *(op + 1 for op in ends)]
    return tuple(
        (start, stop) for start, stop in zip(starts, [*ends, num_ops], strict=True) if start < stop
    )


def interpolates_low_dtype(op: Op, specs: Mapping[str, TensorSpec]) -> bool:
    """Return whether an op interpolates between values of a low dtype.

    Generated code had 0.33 to 0.97 of eager torch's speed on 11 such graphs of `passbench-v1`.
    """
    value = op.args[0] if op.target == INTERPOLATION and op.args else None
    if not isinstance(value, Ref) or value.name not in specs:
        return False
    mode = dict(op.kwargs).get("mode", op.args[3] if len(op.args) > 3 else "nearest")
    return specs[value.name].dtype in LOW_FLOATS and not str(mode).startswith("nearest")


def value_strides(
    graph: Graph, device: TargetDevice = "cpu", given: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, tuple[int, ...]]:
    """Return ops' strides by name, for arguments with `given` strides; empty if they fail."""
    strides: dict[str, tuple[int, ...]] = {}
    annotations = {param.name: param.annotation for param in graph.program.params}
    program = retarget(graph, device, None if device == "cpu" else 0).program
    answering = answering_for_gpu() if device == "cuda" else nullcontext()
    running = boundary(AuthorError, "cannot run under fake tensors")
    modes = (restored_state(), answering, DevicelessMode(), torch.no_grad())
    with suppress(AuthorError), running, ExitStack() as stack:
        for mode in modes:
            stack.enter_context(mode)
        with torch.device(device if device == "cpu" else "cuda:0"):
            inputs = [fake_input(spec, annotations[spec.name]) for spec in graph.tensors]
            for number, spec in enumerate(graph.tensors):
                if given and spec.name in given:
                    dtype = inputs[number].dtype
                    inputs[number] = torch.empty_strided(spec.shape, given[spec.name], dtype=dtype)
        _record_strides(strides, program, inputs)
    return strides


def _strides_by_cpp(
    graph: Graph, given: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """Return strides by torch's C++ alone; fake tensors run Python, which differs at size 1."""
    strides: dict[str, tuple[int, ...]] = {}
    with suppress(AuthorError), boundary(AuthorError, "cannot run without memory"), torch.no_grad():
        inputs = [
            torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="meta")
            if spec.name not in given
            else torch.empty_strided(
                spec.shape, given[spec.name], dtype=getattr(torch, spec.dtype), device="meta"
            )
            for spec in graph.tensors
        ]
        _record_strides(strides, graph.program, inputs)
    return strides


def _record_strides(
    strides: dict[str, tuple[int, ...]], program: Program, inputs: Sequence[Any]
) -> None:
    """Record the strides of each op's result for some inputs, by name."""
    names = [op.output for op in program.ops]

    class Recorder(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            value = super().run_node(n)
            if "custom" in n.meta and isinstance(value, torch.Tensor):
                name = names[n.meta["custom"]["op"]]
                if name is not None:
                    strides[name] = tuple(value.stride())
            return value

    Recorder(build(program)).run(*inputs)
