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

from passnet.errors import CutError, PassnetError, boundary
from passnet.graph.build import build
from passnet.graph.device import retarget
from passnet.graph.effects import is_random
from passnet.graph.inputs import InputValue, make_inputs
from passnet.graph.meta import DTYPE_BYTES
from passnet.graph.spec import Graph, Ref, TensorSpec
from passnet.mine.cut import parent_of, single_assignment
from passnet.mine.subgraphs import Subgraph
from passnet.mine.tensor_differences import difference

MAX_HELD_BYTES = 2 * 2**30
"""Most memory for the values of a parent that are held at once; looked at between ops, so that what
one op makes comes on top, and so do the outputs of one subgraph."""

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
    graph: Graph, found: Sequence[Subgraph], seed: int = 0, max_bytes: int = MAX_HELD_BYTES
) -> list[VerifiedRange]:
    """Run a graph once on the CPU, and each of its subgraphs on the values that it had there.

    Random numbers are drawn anew for a subgraph from the state that the parent had at its start.

    Args:
        graph: the parent.
        found: subgraphs of it, in any order; they may overlap.
        seed: of the parent's inputs and of its random numbers.
        max_bytes: most memory for values that are held.

    Returns:
        One for each subgraph, in their order.

    Raises:
        GraphError: the parent cannot be built, or its inputs cannot be drawn.
        CutError: the parent's arguments take more than `max_bytes`.
    """
    parent = retarget(Graph(single_assignment(graph.program), graph.tensors), "cpu")
    size = sum(item.num_elements * DTYPE_BYTES[item.dtype] for item in parent.tensors)
    if size > max_bytes:
        raise CutError(f"the arguments take {size} bytes, more than {max_bytes}; allow for more")
    values = make_inputs(parent, "recorded", seed)
    given = [tensor(value, spec) for value, spec in zip(values, parent.tensors, strict=True)]
    with _own_state(seed):
        return _Run(parent, found, max_bytes).checked(given)


def tensor(value: InputValue, spec: TensorSpec) -> torch.Tensor | int:
    """What `make_inputs` gives, as an argument for torch."""
    if isinstance(value, int):
        return value
    made = torch.from_numpy(value)
    return made.view(torch.bfloat16) if spec.dtype == "bfloat16" else made


@contextmanager
def _own_state(seed: int) -> Iterator[None]:
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


class _Run:
    """The state of one run of a parent."""

    def __init__(self, parent: Graph, found: Sequence[Subgraph], max_bytes: int) -> None:
        self._found = found
        self._max_bytes = max_bytes
        self._ops = parent.program.ops
        self._params = [item.name for item in parent.program.params]
        module = build(parent.program)
        self._nodes = [node for node in module.graph.nodes if "custom" in node.meta]
        self._names = {node: op.output for node, op in zip(self._nodes, self._ops, strict=True)} | {
            node: node.target for node in module.graph.nodes if node.op == "placeholder"
        }
        until = dict(parent_of(parent.program, {}).needed_until)
        for item in found:
            for name in (_source(spec) for spec in item.graph.tensors):
                until[name] = max(until[name], item.stop)
        self._ending: dict[int, list[str]] = defaultdict(list)
        for name, stop in until.items():
            self._ending[stop].append(name)
        self._values: dict[str | None, Any] = {}
        self._storages: Counter[int] = Counter()
        self._num_bytes = 0
        self._begun: dict[int, tuple[list[int | None], torch.Tensor]] = {}
        self._results: dict[int, VerifiedRange] = {}

    def checked(self, given: Sequence[Any]) -> list[VerifiedRange]:
        """The outcome of each subgraph, on the given arguments."""
        for name, value in zip(self._params, given, strict=True):
            self._hold(name, value)
        starting, stopping = defaultdict(list), defaultdict(list)
        for number, item in enumerate(self._found):
            starting[item.start].append(number)
            stopping[item.stop].append(number)
        reason = ""
        for index in range(len(self._ops)):
            try:
                for number in starting[index]:
                    self._begin(number)
                self._step(index)
                for number in stopping[index + 1]:
                    self._end(number)
            except CutError as cause:
                reason = str(cause)
                break
            for name in self._ending.pop(index + 1, ()):
                self._release(name)
        return [
            self._results.get(number)
            or VerifiedRange(item.start, item.stop, "failed", reason=reason)
            for number, item in enumerate(self._found)
        ]

    def _step(self, index: int) -> None:
        node, op = self._nodes[index], self._ops[index]
        args, kwargs = torch.fx.node.map_arg(
            (node.args, node.kwargs), lambda at: self._values[self._names[at]]
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
        self._begun[number] = (_versions(self._given(number)), torch.get_rng_state())

    def _given(self, number: int) -> list[Any]:
        return [self._values[_source(spec)] for spec in self._found[number].graph.tensors]

    def _end(self, number: int) -> None:
        """Run a subgraph whose range is done.

        Raises:
            CutError: it changed values of the parent, which is of no use any more.
        """
        item = self._found[number]
        versions, random = self._begun.pop(number)
        given = self._given(number)
        if _versions(given) != versions:
            outcome = VerifiedRange(
                item.start, item.stop, "failed", reason="writes into an argument"
            )
            self._results[number] = outcome
            return
        places = {op.output: at for at, op in enumerate(item.graph.program.ops, item.start)}
        names = [arg.name for arg in item.graph.program.outputs if isinstance(arg, Ref)]
        expected = [self._values[self._ops[places[name]].output] for name in names]
        try:
            with boundary(CutError, "the subgraph fails"), ExitStack() as stack:
                if any(is_random(op.target) for op in item.graph.program.ops):
                    stack.enter_context(torch.random.fork_rng(devices=[]))
                    torch.set_rng_state(random)
                stack.enter_context(torch.no_grad())
                stack.enter_context(torch.autocast("cpu", enabled=False))
                results = build(retarget(item.graph, "cpu").program)(*given)
                error, reason = difference(expected, results, given)
        except PassnetError as cause:
            self._results[number] = VerifiedRange(
                item.start, item.stop, "failed", reason=str(cause)
            )
            return
        if _versions(given) != versions:
            reason = "writes into an argument"
        status = "different" if reason else "equal"
        self._results[number] = VerifiedRange(item.start, item.stop, status, error, reason)
        if _versions(given) != versions:
            raise CutError(f"not checked: [{item.start}, {item.stop}) wrote into the parent")


def _source(spec: TensorSpec) -> str:
    """The name that an argument of a subgraph has in its parent."""
    assert spec.original_name is not None, "a cut graph says where its arguments come from"
    return spec.original_name


def _storages(value: Any) -> Iterator[torch.UntypedStorage]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _storages(item)
    elif isinstance(value, torch.Tensor) and value.layout == torch.strided:
        yield value.untyped_storage()


def _versions(values: Sequence[Any]) -> list[int | None]:
    """How often each tensor has been written to."""
    return [item._version if isinstance(item, torch.Tensor) else None for item in values]
