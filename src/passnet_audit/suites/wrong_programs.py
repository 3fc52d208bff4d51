"""Wrong programs made from a right one: made-up outputs, and ops left out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch

from passnet.core.records.dtypes import Array, from_storage, is_float, to_storage
from passnet.errors import GraphError, boundary
from passnet.graph.fx.build import build, op_number
from passnet.graph.spec import Graph, Op
from passnet.graph.values.effects import has_state, is_random, last_name, writes_first
from passnet.graph.values.inputs import InputValue

EditKind: TypeAlias = Literal["skipped_op", "zeroed_op", "ignored_argument"]

OutputKind: TypeAlias = Literal["zeros", "ones", "random", "constant", "mean", "overall_mean"]

MAX_KEPT_BYTES = 512 * 2**20
"""The most bytes of values to keep of a run; two runs are kept at a time."""
UNDEFINED = frozenset(["empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided"])
"""Last names of calls that return uninitialised memory: no value is wrong."""
NodeValues: TypeAlias = Mapping[torch.fx.Node, Any]
"""The value of every node of a right run, so that an edit runs only the nodes after it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The change of a wrong program to one op.

    `skipped_op`: the result is the argument number `argument`, of its shape and dtype (None: a
    statement without a value is left out). `zeroed_op`: the result is zeros. `ignored_argument`:
    the op sees zeros for that argument. Arguments count as in `torch.fx.Node.all_input_nodes`; an
    op that writes into its first argument writes the wrong result there.
    """

    kind: EditKind
    op: int
    argument: int | None
    writes: bool
    description: str


@dataclass(frozen=True, slots=True)
class Value:
    """An output, or an argument after the run: a tensor's storage or a number as text."""

    name: str
    dtype: str
    array: Array | None
    number: str | None = None
    is_view: bool = False


@dataclass(frozen=True, slots=True)
class WrongPrograms:
    """A built graph with the edits to try; removing an `idle` op changes no bit on any set."""

    graph: Graph
    module: torch.fx.GraphModule
    edits: tuple[Edit, ...]
    idle: tuple[Edit, ...]


def make_wrong_programs(graph: Graph, input_sets: Sequence[Sequence[InputValue]]) -> WrongPrograms:
    """Return the edits of every op that change a bit on some set, or raise GraphError."""
    module = build(graph.program)
    is_same: dict[Edit, bool] = {}
    for inputs in input_sets:
        observer = _EditObserver(module, graph)
        with torch.no_grad(), boundary(GraphError, "running the graph"):
            torch.manual_seed(0)
            observer.run(*_arguments(graph, inputs))
        for edit, same in observer.is_same.items():
            is_same[edit] = is_same.get(edit, True) and same
    edits = tuple(edit for edit, same in is_same.items() if not same)
    idle = tuple(edit for edit, same in is_same.items() if same and edit.kind == "skipped_op")
    return WrongPrograms(graph, module, edits, idle)


def record_values(
    programs: WrongPrograms, inputs: Sequence[InputValue], most_bytes: int = MAX_KEPT_BYTES
) -> NodeValues | None:
    """Record all values of a right run, for edits on the same inputs.

    None if they take more than `most_bytes`, or an op writes into one, draws numbers or switches a
    state: then edits run everything again.
    """
    for op in programs.graph.program.ops:
        if writes_first(op.target, dict(op.kwargs)) or is_random(op.target) or has_state(op.target):
            return None
    interpreter = torch.fx.Interpreter(programs.module)
    interpreter.args_iter = iter(_arguments(programs.graph, inputs))
    num_bytes = 0
    with torch.no_grad(), boundary(GraphError, "running the graph"):
        for node in list(programs.module.graph.nodes)[:-1]:  # the last is the output
            value = interpreter.env[node] = interpreter.run_node(node)
            if isinstance(value, torch.Tensor):
                num_bytes += value.untyped_storage().nbytes()
            if num_bytes > most_bytes:
                return None
    return interpreter.env


def run_edit(programs: WrongPrograms, edit: Edit, values: NodeValues) -> Iterator[Value]:
    """Yield the outputs that an edit can change, computed from the values of a right run."""
    outputs: Any = programs.module.graph.output_node().args[0]
    numbers: dict[Any, list[int]] = {}
    for number, output in enumerate(outputs):
        numbers.setdefault(output, []).append(number)
    interpreter = EditedRun(programs.module, edit)
    interpreter.env = dict(values)
    affected: set[torch.fx.Node] = set()
    for node in programs.module.graph.nodes:
        if op_number(node) != edit.op and affected.isdisjoint(node.all_input_nodes):
            continue
        affected.add(node)
        if node.op == "output":
            return
        with torch.no_grad(), boundary(GraphError, "running the graph"):
            interpreter.env[node] = interpreter.run_node(node)
        for number in numbers.get(node, ()):
            yield value_of(f"output {number}", interpreter.env[node])


def run_program(
    programs: WrongPrograms, inputs: Sequence[InputValue], edit: Edit | None = None
) -> tuple[Value, ...]:
    """Return the outputs of the graph and its arguments after the run, or raise GraphError."""
    arguments = _arguments(programs.graph, inputs)
    with torch.no_grad(), boundary(GraphError, "running the graph"):
        torch.manual_seed(0)
        outputs = EditedRun(programs.module, edit).run(*arguments)
        memory = {_address(argument) for argument in arguments} - {None}
        values = [
            value_of(f"output {number}", output, _address(output) in memory)
            for number, output in enumerate(outputs)
        ]
        for param, argument in zip(programs.graph.program.params, arguments, strict=True):
            values.append(value_of(f"argument {param.name}", argument))
        return tuple(values)


def _arguments(graph: Graph, inputs: Sequence[InputValue]) -> list[Any]:
    return [
        value
        if isinstance(value, int)
        else torch.from_numpy(value.copy()).view(getattr(torch, spec.dtype))
        for value, spec in zip(inputs, graph.tensors, strict=True)
    ]


def _address(value: Any) -> int | None:
    has_memory = isinstance(value, torch.Tensor) and value.numel() > 0
    return value.untyped_storage().data_ptr() if has_memory else None


def value_of(name: str, value: Any, is_view: bool = False) -> Value:
    """Return the value of an output or argument; memory of a tensor on the CPU is shared."""
    if not isinstance(value, torch.Tensor):
        return Value(name, type(value).__name__, None, repr(value))
    bits = value.detach().contiguous()
    if bits.dtype is torch.bfloat16:
        bits = bits.view(torch.uint16)
    return Value(name, str(value.dtype).removeprefix("torch."), bits.numpy(), is_view=is_view)


def wrong_values(right: Value, seed: int) -> Iterator[tuple[OutputKind, Array]]:
    """Yield outputs made from the shape and a few statistics of the right one."""
    assert right.array is not None, "only tensors have wrong values"
    numbers = from_storage(right.array, right.dtype)
    yield "zeros", _store(np.zeros(numbers.shape), right.dtype)
    yield "ones", _store(np.ones(numbers.shape), right.dtype)
    if not numbers.size:
        return
    wide = numbers.astype(np.complex128 if numbers.dtype.kind == "c" else np.float64)
    finite = wide[np.isfinite(wide)]
    mean, std = (finite.mean(), finite.std()) if finite.size else (0.0, 0.0)
    normal = np.random.default_rng(seed).standard_normal(numbers.shape)
    yield "random", _store(normal * (std or abs(mean) or 1.0) + mean, right.dtype)
    if numbers.size > 1:
        first = np.broadcast_to(wide.reshape(-1)[0], numbers.shape)
        yield "constant", _store(first, right.dtype)
        yield "overall_mean", _store(np.broadcast_to(mean, numbers.shape), right.dtype)
    dim = next((dim for dim, size in enumerate(numbers.shape) if size > 1), None)
    if dim is not None:
        with np.errstate(invalid="ignore"):
            mean = np.broadcast_to(wide.mean(axis=dim, keepdims=True), numbers.shape)
        yield "mean", _store(mean, right.dtype)


def _store(values: Array, dtype: str) -> Array:
    if dtype == "bool":
        return values >= 0.5
    if is_float(dtype) or dtype.startswith("complex"):
        return to_storage(values, dtype)
    with np.errstate(invalid="ignore"):
        return to_storage(np.round(values), dtype)


class EditedRun(torch.fx.Interpreter):
    """A run of a graph with one op edited."""

    def __init__(self, module: torch.fx.GraphModule, edit: Edit | None) -> None:
        super().__init__(module)
        self._edit = edit

    def run_node(self, n: torch.fx.Node) -> Any:
        """Return the value of a node, the wrong one where it is edited."""
        if self._edit is None or op_number(n) != self._edit.op:
            return super().run_node(n)
        return _wrong_result(self, n, self._edit)


class _EditObserver(torch.fx.Interpreter):
    """A run of the right graph that tries every edit of an op on copies of its arguments."""

    def __init__(self, module: torch.fx.GraphModule, graph: Graph) -> None:
        super().__init__(module)
        self._ops = graph.program.ops
        self.is_same: dict[Edit, bool] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        number = op_number(n)
        if number is None:
            return super().run_node(n)
        before = [_copy(self.env[source]) for source in n.all_input_nodes]
        result = super().run_node(n)
        right = result
        if result is None and before:  # a statement without a value writes into its first argument
            right = self.env[n.all_input_nodes[0]]
        for edit in _edits(self._ops[number], number, n, before, result):
            self.is_same[edit] = False  # and stays so if it cannot be run
            copies = _replaced(self.env, n.all_input_nodes, [_copy(value) for value in before])
            with suppress(GraphError), boundary(GraphError, "running an op"), copies:
                wrong = _wrong_result(self, n, edit)
                wrong = self.env[n.all_input_nodes[0]] if wrong is None else wrong
                self.is_same[edit] = _same_bits(wrong, right)
        return result


def _edits(
    op: Op, number: int, node: torch.fx.Node, arguments: Sequence[Any], result: Any
) -> Iterator[Edit]:
    if last_name(op.target) in UNDEFINED:
        return
    tensors = {
        index: (source.name, tensor.shape, tensor.dtype)
        for index, (source, tensor) in enumerate(zip(node.all_input_nodes, arguments, strict=True))
        if isinstance(tensor, torch.Tensor)
    }
    writes = writes_first(op.target, dict(op.kwargs))

    def edit(kind: EditKind, argument: int | None, change: str) -> Edit:
        return Edit(kind, number, argument, writes, f"op {number} {op.target}: {change}")

    if tensors and result is None and writes:
        yield edit("skipped_op", None, "left out")
    if not tensors or not isinstance(result, torch.Tensor):
        return
    for index, (name, shape, dtype) in tensors.items():
        if (shape, dtype) == (result.shape, result.dtype):
            yield edit("skipped_op", index, f"its {name} instead")
    yield edit("zeroed_op", None, "zeros instead")
    for index, (name, _, _) in tensors.items():
        yield edit("ignored_argument", index, f"zeros for {name}")


def _wrong_result(interpreter: torch.fx.Interpreter, node: torch.fx.Node, edit: Edit) -> Any:
    """Return an edit's result for a node, with the node's arguments in the interpreter's `env`."""
    env, sources = interpreter.env, node.all_input_nodes
    if edit.kind == "skipped_op":
        if edit.argument is None:
            return None
        argument = env[sources[edit.argument]]
        return env[sources[0]].copy_(argument) if edit.writes and edit.argument else argument
    if edit.kind == "zeroed_op":
        result = torch.fx.Interpreter.run_node(interpreter, node)
        return result.zero_() if edit.writes else torch.zeros_like(result)
    assert edit.argument is not None, "an ignored argument has a number"
    ignored = sources[edit.argument]
    if edit.writes and edit.argument == 0:
        env[ignored].zero_()
        return torch.fx.Interpreter.run_node(interpreter, node)
    with _replaced(env, [ignored], [torch.zeros_like(env[ignored])]):
        return torch.fx.Interpreter.run_node(interpreter, node)


@contextmanager
def _replaced(
    env: dict[torch.fx.Node, Any], nodes: Sequence[torch.fx.Node], values: Sequence[Any]
) -> Iterator[None]:
    before = {node: env[node] for node in nodes}
    env.update(zip(nodes, values, strict=True))
    try:
        yield
    finally:
        env.update(before)


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _same_bits(first: Any, second: Any) -> bool:
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if first.numel() == 0:
        return True
    flat = [tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (first, second)]
    return torch.equal(*flat)
