"""Whether subgraphs compute what their parent did, on the parent's own values.

The parent runs once, on replayed inputs. When the last op of a range is done, its subgraph is run
on the very tensors that crossed the cut, and its outputs are compared with the parent's. A value is
held until the last op or range that needs it, no longer.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
import torch.fx
from torch._C._functorch import maybe_current_level, pop_dynamic_layer_stack

from benchmarks.tensor_differences import difference
from passnet.data.mine.cut import parent_of, single_assignment
from passnet.data.mine.subgraphs import Subgraph
from passnet.errors import CutError, PassnetError, boundary
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, Ref, TensorSpec, retarget
from passnet.graph.text.meta import DTYPE_BYTES
from passnet.graph.values.cost import torch_arguments
from passnet.graph.values.effects import is_random

MAX_HELD_BYTES = 2 * 2**30
"""Most memory for the values of a parent that are held at once; looked at between ops, so that what
one op makes comes on top, and so do the outputs of one subgraph."""

WRITES = "writes into an argument"
"""Why a subgraph fails, or differs."""

VerificationStatus: TypeAlias = Literal["equal", "different", "failed"]
"""equal: `difference` finds none. failed: the subgraph, or the parent before it, does not
run."""


@dataclass(frozen=True, slots=True)
class VerifiedRange:
    """How the subgraph of the ops [start, stop) compares with its parent.

    `max_error` is the largest absolute difference, None where it is not a number or was not looked
    at; `reason` is empty where all is equal.
    """

    start: int
    stop: int
    status: VerificationStatus
    max_error: float | None = None
    reason: str = ""


def verify(
    graph: Graph, subgraphs: Sequence[Subgraph], seed: int = 0, max_bytes: int = MAX_HELD_BYTES
) -> list[VerifiedRange]:
    """Run a graph once on the CPU, and each of its subgraphs on the values that it had there.

    Random numbers are drawn anew for a subgraph from the state that the parent had at its start.

    Args:
        graph: the parent.
        subgraphs: of it, in any order; they may overlap.
        seed: of the parent's inputs and of its random numbers.
        max_bytes: most memory for values that are held.

    Returns:
        One for each subgraph, in their order.

    Raises:
        GraphError: the parent cannot be built, or its inputs cannot be drawn.
        CutError: the parent's arguments take more than `max_bytes`.
    """
    parent = retarget(Graph(single_assignment(graph.program), graph.tensors), "cpu")
    size = sum(spec.num_elements * DTYPE_BYTES[spec.dtype] for spec in parent.tensors)
    if size > max_bytes:
        raise CutError(f"the arguments take {size} bytes, more than {max_bytes}; allow for more")
    arguments = torch_arguments(parent, "recorded", seed)
    with _restored_state(seed):
        return _ParentRun(parent, subgraphs, max_bytes).verify(arguments)


@contextmanager
def _restored_state(seed: int) -> Iterator[None]:
    """No gradients, and whatever a graph switches is as before afterwards."""
    level = maybe_current_level()
    with torch.random.fork_rng(devices=[]), torch.no_grad(), torch.autocast("cpu", enabled=False):
        torch.manual_seed(seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecations inside a recorded graph are its own
                yield
        finally:
            while maybe_current_level() != level:
                pop_dynamic_layer_stack()


class _ParentRun:
    """The state of one run of a parent."""

    def __init__(self, parent: Graph, subgraphs: Sequence[Subgraph], max_bytes: int) -> None:
        self._subgraphs = subgraphs
        self._max_bytes = max_bytes
        self._ops = parent.program.ops
        self._params = [param.name for param in parent.program.params]
        module = build(parent.program)
        self._nodes = [node for node in module.graph.nodes if "custom" in node.meta]
        self._names = {node: op.output for node, op in zip(self._nodes, self._ops, strict=True)} | {
            node: node.target for node in module.graph.nodes if node.op == "placeholder"
        }
        until = dict(parent_of(parent.program, {}).needed_until)
        for subgraph in subgraphs:
            for name in (_name_in_parent(spec) for spec in subgraph.graph.tensors):
                until[name] = max(until[name], subgraph.stop)
        self._ending: dict[int, list[str]] = defaultdict(list)
        for name, stop in until.items():
            self._ending[stop].append(name)
        self._values: dict[str | None, Any] = {}
        self._storages: Counter[int] = Counter()
        self._num_bytes = 0
        self._at_start: dict[int, tuple[list[int | None], torch.Tensor]] = {}
        self._results: dict[int, VerifiedRange] = {}

    def verify(self, arguments: Sequence[Any]) -> list[VerifiedRange]:
        """How each subgraph compares with the parent, run on these arguments."""
        for name, value in zip(self._params, arguments, strict=True):
            self._hold(name, value)
        starting, stopping = defaultdict(list), defaultdict(list)
        for number, subgraph in enumerate(self._subgraphs):
            starting[subgraph.start].append(number)
            stopping[subgraph.stop].append(number)
        reason = ""
        for index in range(len(self._ops)):
            try:
                for number in starting[index]:
                    self._begin(number)
                self._run_op(index)
                for number in stopping[index + 1]:
                    self._end(number)
            except CutError as cause:
                reason = str(cause)
                break
            for name in self._ending.pop(index + 1, ()):
                self._release(name)
        return [
            self._results.get(number)
            or VerifiedRange(subgraph.start, subgraph.stop, "failed", reason=reason)
            for number, subgraph in enumerate(self._subgraphs)
        ]

    def _run_op(self, index: int) -> None:
        node, op = self._nodes[index], self._ops[index]
        args, kwargs = torch.fx.node.map_arg(
            (node.args, node.kwargs), lambda source: self._values[self._names[source]]
        )
        with boundary(CutError, f"the parent fails at op {index} ({op.target})"):
            call: Callable[..., Any] = node.target
            if node.op == "call_method":
                call = getattr(type(args[0]), node.target)
            value = call(*args, **kwargs)
        if op.output is not None:
            self._hold(op.output, value)
        if self._num_bytes > self._max_bytes:
            raise CutError(f"the parent holds over {self._max_bytes} bytes at op {index}")

    def _hold(self, name: str, value: Any) -> None:
        self._values[name] = value
        for storage in _storages(value):
            self._storages[storage.data_ptr()] += 1
            if self._storages[storage.data_ptr()] == 1:
                self._num_bytes += storage.nbytes()

    def _release(self, name: str) -> None:
        for storage in _storages(self._values.pop(name, None)):
            self._storages[storage.data_ptr()] -= 1
            if self._storages[storage.data_ptr()] == 0:
                self._num_bytes -= storage.nbytes()

    def _begin(self, number: int) -> None:
        self._at_start[number] = (_versions(self._arguments(number)), torch.get_rng_state())

    def _arguments(self, number: int) -> list[Any]:
        specs = self._subgraphs[number].graph.tensors
        return [self._values[_name_in_parent(spec)] for spec in specs]

    def _end(self, number: int) -> None:
        """Run a subgraph whose range is done.

        Raises:
            CutError: it changed values of the parent, which is of no use any more.
        """
        subgraph = self._subgraphs[number]
        start, stop = subgraph.start, subgraph.stop
        versions, random_state = self._at_start.pop(number)
        arguments = self._arguments(number)
        if _versions(arguments) != versions:
            self._results[number] = VerifiedRange(start, stop, "failed", None, WRITES)
            return
        expected = self._expected(subgraph)
        try:
            with boundary(CutError, "the subgraph fails"), ExitStack() as stack:
                if any(is_random(op.target) for op in subgraph.graph.program.ops):
                    stack.enter_context(torch.random.fork_rng(devices=[]))
                    torch.set_rng_state(random_state)
                stack.enter_context(torch.no_grad())
                stack.enter_context(torch.autocast("cpu", enabled=False))
                outputs = build(retarget(subgraph.graph, "cpu").program)(*arguments)
                error, reason = difference(expected, outputs, arguments)
        except PassnetError as cause:
            self._results[number] = VerifiedRange(start, stop, "failed", None, str(cause))
            return
        has_written = _versions(arguments) != versions
        reason = WRITES if has_written else reason
        status = "different" if reason else "equal"
        self._results[number] = VerifiedRange(start, stop, status, error, reason)
        if has_written:
            raise CutError(f"not checked: [{start}, {stop}) wrote into the parent")

    def _expected(self, subgraph: Subgraph) -> list[Any]:
        """The parent's values of what a subgraph returns."""
        program = subgraph.graph.program
        indices = {op.output: index for index, op in enumerate(program.ops, subgraph.start)}
        names = [arg.name for arg in program.outputs if isinstance(arg, Ref)]
        return [self._values[self._ops[indices[name]].output] for name in names]


def _name_in_parent(spec: TensorSpec) -> str:
    """The name that an argument of a subgraph has in its parent."""
    assert spec.original_name is not None, "a cut graph says where its arguments come from"
    return spec.original_name


def _storages(value: Any) -> Iterator[torch.UntypedStorage]:
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _storages(part)
    elif isinstance(value, torch.Tensor) and value.layout == torch.strided:
        yield value.untyped_storage()


def _versions(values: Sequence[Any]) -> list[int | None]:
    """How often each tensor has been written to."""
    return [value._version if isinstance(value, torch.Tensor) else None for value in values]
