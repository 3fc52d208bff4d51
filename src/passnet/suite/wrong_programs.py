"""Wrong programs made from a right one: outputs that are made up, and ops that are not done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import torch

from passnet.errors import GraphError, boundary
from passnet.graph.build import build
from passnet.graph.effects import has_state, is_random, last_name, writes_first
from passnet.graph.inputs import InputValue
from passnet.graph.spec import Graph, Op
from passnet.records.dtypes import Array, from_storage, is_float, to_storage

EditKind: TypeAlias = Literal["skipped_op", "zeroed_op", "ignored_argument"]

OutputKind: TypeAlias = Literal["zeros", "ones", "random", "constant", "mean"]

MAX_KEPT_BYTES = 512 * 2**20
"""Most values of a run that are kept; two runs are kept at a time."""

UNDEFINED = frozenset(["empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided"])
"""Last names of calls that give memory as it is: no value of theirs is wrong."""

Kept: TypeAlias = Mapping[torch.fx.Node, Any]
"""The value of every node of a right run, so that an edit runs only what follows from it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What a wrong program does instead of one op.

    `skipped_op`: the result is the op's argument number `argument`, which has its shape and dtype
    (None: a statement without a value is left out). `zeroed_op`: the result is zeros.
    `ignored_argument`: the op sees zeros in place of that argument. Arguments are counted as
    `torch.fx.Node.all_input_nodes` does. An op that writes into its first argument writes the wrong
    result there.
    """

    kind: EditKind
    op: int
    argument: int | None
    writes: bool
    place: str


@dataclass(frozen=True, slots=True)
class Value:
    """An output, or an argument as it was left: the storage of a tensor, else a number as text.
    `is_view`: an output that lies in the memory of an argument.
    """

    name: str
    dtype: str
    array: Array | None
    number: str | None = None
    is_view: bool = False


@dataclass(frozen=True, slots=True)
class WrongPrograms:
    """A graph that was built once, with the edits to try on it.

    `idle` are the ops that can be skipped without a difference to the bit, on all sets looked at.
    """

    graph: Graph
    module: torch.fx.GraphModule
    edits: tuple[Edit, ...]
    idle: tuple[Edit, ...]


def make_wrong_programs(graph: Graph, input_sets: Sequence[Sequence[InputValue]]) -> WrongPrograms:
    """The edits of every op of a graph, less those that give the op's own result to the bit.

    Args:
        graph: what to make wrong.
        input_sets: an edit is no wrong program if its op's result is bit-equal on all of these.

    Raises:
        GraphError: the graph cannot be built or run.
    """
    module = build(graph.program)
    same: dict[Edit, bool] = {}
    for inputs in input_sets:
        observer = _Observer(module, graph)
        with torch.no_grad(), boundary(GraphError, "running the graph"):
            torch.manual_seed(0)
            observer.run(*_arguments(graph, inputs))
        for edit, equal in observer.same.items():
            same[edit] = same.get(edit, True) and equal
    edits = tuple(edit for edit, equal in same.items() if not equal)
    idle = tuple(edit for edit, equal in same.items() if equal and edit.kind == "skipped_op")
    return WrongPrograms(graph, module, edits, idle)


def keep(programs: WrongPrograms, inputs: Sequence[InputValue]) -> Kept | None:
    """All values of a right run, for edits on the same inputs.

    None where an edit has to run everything again: the values are too many, or an op writes into
    one, draws random numbers or switches a state.

    Raises:
        GraphError: it cannot be run.
    """
    for op in programs.graph.program.ops:
        if writes_first(op.target, dict(op.kwargs)) or is_random(op.target) or has_state(op.target):
            return None
    keeper = _Keeper(programs.module)
    with torch.no_grad(), boundary(GraphError, "running the graph"):
        keeper.run(*_arguments(programs.graph, inputs))
    return keeper.kept


def edited(programs: WrongPrograms, edit: Edit, kept: Kept) -> Iterator[Value]:
    """The outputs that an edit can change, each as soon as it is computed.

    Args:
        programs: a graph and its edits.
        edit: what is done wrong.
        kept: the values of a right run.

    Raises:
        GraphError: an op cannot be run so.
    """
    outputs: Any = programs.module.graph.output_node().args[0]
    numbers: dict[Any, list[int]] = {}
    for number, item in enumerate(outputs):
        numbers.setdefault(item, []).append(number)
    interpreter = _Edited(programs.module, edit)
    interpreter.env = dict(kept)
    affected: set[torch.fx.Node] = set()
    for node in programs.module.graph.nodes:
        if _number(node) != edit.op and affected.isdisjoint(node.all_input_nodes):
            continue
        affected.add(node)
        if node.op == "output":
            return
        with torch.no_grad(), boundary(GraphError, "running the graph"):
            interpreter.env[node] = interpreter.run_node(node)
        for number in numbers.get(node, ()):
            yield _value(f"output {number}", interpreter.env[node])


def run(
    programs: WrongPrograms, inputs: Sequence[InputValue], edit: Edit | None = None
) -> tuple[Value, ...]:
    """The outputs of the graph and, behind them, all its arguments as they are left.

    Raises:
        GraphError: it cannot be run so.
    """
    arguments = _arguments(programs.graph, inputs)
    with torch.no_grad(), boundary(GraphError, "running the graph"):
        torch.manual_seed(0)
        outputs = _Edited(programs.module, edit).run(*arguments)
        given = {_memory(item) for item in arguments} - {None}
        values = [
            _value(f"output {number}", item, _memory(item) in given)
            for number, item in enumerate(outputs)
        ]
        params = zip(programs.graph.program.params, arguments, strict=True)
        return (*values, *(_value(f"argument {param.name}", item) for param, item in params))


def _arguments(graph: Graph, inputs: Sequence[InputValue]) -> list[Any]:
    return [_tensor(value, spec.dtype) for value, spec in zip(inputs, graph.tensors, strict=True)]


def _tensor(value: InputValue, dtype: str) -> Any:
    """A tensor of its own memory; a SymInt stays a number."""
    if isinstance(value, int):
        return value
    return torch.from_numpy(value.copy()).view(getattr(torch, dtype))


def _memory(item: Any) -> int | None:
    is_there = isinstance(item, torch.Tensor) and item.numel() > 0
    return item.untyped_storage().data_ptr() if is_there else None


def _value(name: str, item: Any, is_view: bool = False) -> Value:
    if not isinstance(item, torch.Tensor):
        return Value(name, type(item).__name__, None, repr(item))
    bits = item.detach().contiguous()
    if bits.dtype is torch.bfloat16:
        bits = bits.view(torch.uint16)
    return Value(name, str(item.dtype).removeprefix("torch."), bits.numpy(), is_view=is_view)


def wrong_values(right: Value, seed: int) -> Iterator[tuple[OutputKind, Array]]:
    """Outputs made of nothing but the form and a few statistics of the right one."""
    assert right.array is not None, "only tensors have wrong values"
    numbers = from_storage(right.array, right.dtype)
    yield "zeros", _store(np.zeros(numbers.shape), right.dtype)
    yield "ones", _store(np.ones(numbers.shape), right.dtype)
    if not numbers.size:
        return
    wide = numbers.astype(np.complex128 if numbers.dtype.kind == "c" else np.float64)
    finite = wide[np.isfinite(wide)]
    mean, std = (finite.mean(), finite.std()) if finite.size else (0.0, 0.0)
    drawn = np.random.default_rng(seed).standard_normal(numbers.shape)
    yield "random", _store(drawn * (std or abs(mean) or 1.0) + mean, right.dtype)
    if numbers.size > 1:
        first = np.broadcast_to(wide.reshape(-1)[0], numbers.shape)
        yield "constant", _store(first, right.dtype)
    dim = next((place for place, size in enumerate(numbers.shape) if size > 1), None)
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


class _Edited(torch.fx.Interpreter):
    """Runs a graph with one op edited."""

    def __init__(self, module: torch.fx.GraphModule, edit: Edit | None) -> None:
        super().__init__(module)
        self._edit = edit

    def run_node(self, n: torch.fx.Node) -> Any:
        if self._edit is None or _number(n) != self._edit.op:
            return super().run_node(n)
        return _wrong_result(self, n, self._edit)


class _Keeper(torch.fx.Interpreter):
    """Runs a graph as it is, and keeps all values if they are not too many."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.kept: dict[torch.fx.Node, Any] | None = {}
        self._num_bytes = 0

    def run_node(self, n: torch.fx.Node) -> Any:
        value = super().run_node(n)
        if self.kept is not None and n.op != "output":
            if isinstance(value, torch.Tensor):
                self._num_bytes += value.untyped_storage().nbytes()
            self.kept[n] = value
            if self._num_bytes > MAX_KEPT_BYTES:
                self.kept = None
        return value


class _Observer(torch.fx.Interpreter):
    """Runs a graph as it is, and tries every edit of an op on copies of the op's arguments."""

    def __init__(self, module: torch.fx.GraphModule, graph: Graph) -> None:
        super().__init__(module)
        self._ops = graph.program.ops
        self.same: dict[Edit, bool] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        number = _number(n)
        if number is None:
            return super().run_node(n)
        before = [_copy(self.env[source]) for source in n.all_input_nodes]
        result = super().run_node(n)
        right = result
        if result is None and before:  # a statement without a value writes into its first argument
            right = self.env[n.all_input_nodes[0]]
        for edit in _edits(self._ops[number], number, n, before, result):
            with _replaced(self.env, n.all_input_nodes, [_copy(item) for item in before]):
                self.same[edit] = self._gives(n, edit, right)
        return result

    def _gives(self, n: torch.fx.Node, edit: Edit, right: Any) -> bool:
        """Whether an edit gives the right result to the bit; one that cannot be run does not."""
        try:
            with boundary(GraphError, "running an op"):
                wrong = _wrong_result(self, n, edit)
                return _same_bits(self.env[n.all_input_nodes[0]] if wrong is None else wrong, right)
        except GraphError:
            return False


def _number(node: torch.fx.Node) -> int | None:
    """The number of a node's op; None for an argument and for the output."""
    return node.meta.get("custom", {}).get("op")


def _edits(
    op: Op, number: int, node: torch.fx.Node, arguments: Sequence[Any], result: Any
) -> Iterator[Edit]:
    """The edits of an op with tensors as arguments, and a tensor or nothing as result."""
    if last_name(op.target) in UNDEFINED:
        return
    tensors = [place for place, item in enumerate(arguments) if isinstance(item, torch.Tensor)]
    writes = writes_first(op.target, dict(op.kwargs))
    what = f"op {number} {op.target}"
    names = [item.name for item in node.all_input_nodes]
    make = partial(Edit, op=number, writes=writes)
    if tensors and result is None and writes:
        yield make("skipped_op", argument=None, place=f"{what}: left out")
    if not tensors or not isinstance(result, torch.Tensor):
        return
    for place in tensors:
        if (arguments[place].shape, arguments[place].dtype) == (result.shape, result.dtype):
            yield make("skipped_op", argument=place, place=f"{what}: its {names[place]} instead")
    yield make("zeroed_op", argument=None, place=f"{what}: zeros instead")
    for place in tensors:
        yield make("ignored_argument", argument=place, place=f"{what}: zeros for {names[place]}")


def _wrong_result(interpreter: torch.fx.Interpreter, node: torch.fx.Node, edit: Edit) -> Any:
    """What the edit makes of a node, with the node's arguments in the interpreter's `env`."""
    env, sources = interpreter.env, node.all_input_nodes
    if edit.kind == "skipped_op":
        if edit.argument is None:
            return None
        taken = env[sources[edit.argument]]
        return env[sources[0]].copy_(taken) if edit.writes and edit.argument else taken
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
    """Other values for some nodes inside the block."""
    kept: Mapping[torch.fx.Node, Any] = {node: env[node] for node in nodes}
    env.update(zip(nodes, values, strict=True))
    try:
        yield
    finally:
        env.update(kept)


def _copy(item: Any) -> Any:
    return item.clone() if isinstance(item, torch.Tensor) else item


def _same_bits(mine: Any, theirs: Any) -> bool:
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return False
    if mine.numel() == 0:
        return True
    flat = [item.contiguous().reshape(-1).view(torch.uint8) for item in (mine, theirs)]
    return torch.equal(*flat)
