"""The loops of an answer run by torch, to see without a compiler that they compute something else.

Each nest is run step by step, and every step for all rounds of the loops at once: a loop variable
is an axis of a tensor. This is slower than C++ and needs more memory, but no compiler and no
process of its own, since nothing is run but calls of the language. An answer that is wrong here is
wrong; whether one that is right here is correct is for the judge to say, who draws more inputs,
compares more strictly and runs the code itself.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod

import torch

from passnet.errors import GraphError, InputError, PassnetError, boundary
from passnet.graph.build import build
from passnet.graph.effects import writes_first
from passnet.graph.inputs import make_inputs
from passnet.graph.spec import refs
from passnet.mine.cut import cut_range, parent_of
from passnet.train.loops.language import (
    Call,
    Expr,
    FusedRange,
    Index,
    IndexValue,
    Inner,
    Let,
    LoopStep,
    MemoryRead,
    Nest,
    Pick,
    Put,
    Reduce,
    parse_answer,
)
from passnet.train.loops.prompt import Prompt
from passnet.train.loops.symbols import Symbols
from passnet.train.loops.torch_calls import reduced, torch_call, torch_cast

MAX_ROUNDS = 2**24
"""Rounds of a nest: beyond it, nothing is run, and nothing found."""

WRONG_SHARE = 1e-3
"""Of the elements of a result, so many may be off: where a rounding decides, as in a comparison."""

TOLERANCES = {"float32": 1e-3, "float64": 1e-3, "bfloat16": 5e-2, "float16": 1e-2}
"""How far an element may be off, relative to it and to the root mean square of all."""


@dataclass(frozen=True)
class EagerRun:
    """A run of a prompt's graph in eager torch, with all its values by their names; without them
    where an op writes into a value, so that one name has several.
    """

    prompt: Prompt
    seed: int
    values: Mapping[str, torch.Tensor] | None

    def around(
        self, span: tuple[int, int], read: Sequence[str], made: Sequence[str]
    ) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Values as they are before some ops, and others as these leave them.

        Raises:
            GraphError: torch cannot run the graph.
            KeyError: one of them is no tensor.
        """
        if self.values is None:
            start, stop = span
            states = _states(self.prompt, self.seed, {start: read, stop: made})
            return states[start], states[stop]
        return {n: self.values[n] for n in read}, {n: self.values[n] for n in made}


class _WrongError(PassnetError):
    """The loops do something that no right answer does."""


class _UnknownError(PassnetError):
    """The loops cannot be run here."""


def eager_run(prompt: Prompt, seed: int = 0) -> EagerRun:
    """A run of a prompt's graph on fresh inputs.

    Raises:
        GraphError: its inputs cannot be drawn, or torch cannot run it.
    """
    ops = prompt.graph.program.ops
    if any(writes_first(op.target, dict(op.kwargs)) for op in ops):
        _states(prompt, seed, {})
        return EagerRun(prompt, seed, None)
    return EagerRun(prompt, seed, _states(prompt, seed, {len(ops): None})[len(ops)])


def _states(
    prompt: Prompt, seed: int, wanted: Mapping[int, Sequence[str] | None]
) -> dict[int, dict[str, torch.Tensor]]:
    """Values as they are before the op of a number, by their names: copies of those that are
    wanted, or for None all as they are.
    """
    graph = prompt.graph
    module = build(graph.program)
    arguments = [
        value
        if isinstance(value, int)
        else torch.from_numpy(value.copy()).view(getattr(torch, spec.dtype))
        for value, spec in zip(make_inputs(graph, "fresh", seed), graph.tensors, strict=True)
    ]
    names = [param.name for param in graph.program.params]
    values = dict(zip(names, arguments, strict=True))
    states: dict[int, dict[str, torch.Tensor]] = {}

    def keep(number: int) -> None:
        if number in wanted:
            chosen = wanted[number]
            tensors = {n: v for n, v in values.items() if isinstance(v, torch.Tensor)}
            copies = {n: tensors[n].clone() for n in chosen} if chosen is not None else tensors
            states[number] = copies

    interpreter = torch.fx.Interpreter(module)
    interpreter.args_iter = iter(arguments)
    with torch.no_grad(), boundary(GraphError, "running the graph"):
        torch.manual_seed(seed)
        for node in list(module.graph.nodes)[:-1]:  # the last is the output
            number = node.meta.get("custom", {}).get("op")
            if number is not None:
                keep(number)
            value = interpreter.env[node] = interpreter.run_node(node)
            if number is not None and (name := graph.program.ops[number].output) is not None:
                values[name] = value
        keep(len(graph.program.ops))
    return states


def what_is_wrong(eager: EagerRun, answer: str) -> str | None:
    """What an answer computes otherwise than eager torch, in a sentence; None where nothing was
    found, be it that its loops have too many rounds to be run here.

    Raises:
        InputError: the answer is none, or something in it has no meaning.
    """
    try:
        for fused in parse_answer(answer):
            _run_range(eager, fused)
    except _WrongError as cause:
        return str(cause)
    except _UnknownError:
        return None
    return None


def not_shown_wrong(prompt: Prompt, answers: Sequence[str]) -> list[str]:
    """Those of some answers to a prompt that a run of their loops does not show to be wrong, in
    their order; all of them where none is left, or the prompt's graph cannot be run.
    """
    try:
        eager = eager_run(prompt)
    except GraphError:
        return list(answers)
    kept = []
    for answer in answers:
        with suppress(InputError):
            if what_is_wrong(eager, answer) is None:
                kept.append(answer)
    return kept or list(answers)


def _run_range(eager: EagerRun, fused: FusedRange) -> None:
    prompt = eager.prompt
    numbers = {prompt.names[op.output or ""]: n for n, op in enumerate(prompt.graph.program.ops)}
    if fused.first not in numbers or fused.last not in numbers:
        raise InputError(f"range {fused.first} {fused.last}: not both are ops of the prompt")
    span = numbers[fused.first], numbers[fused.last] + 1
    cut = cut_range(parent_of(prompt.graph.program, prompt.specs), *span)
    inner = {op.output: prompt.graph.program.ops[span[0] + n].output
             for n, op in enumerate(cut.program.ops)}  # fmt: skip
    read = [spec.original_name or "" for spec in cut.tensors]
    made = [inner[name] or "" for arg in cut.program.outputs for name in refs(arg)]
    with boundary(_UnknownError, "running the graph"):
        before, after = eager.around(span, read, made)
    memory = {prompt.names[name]: value for name, value in before.items()}
    arguments = frozenset(memory)
    expected = {prompt.names[name]: value for name, value in after.items()}
    memory |= {name: _unset(value.dtype, value.shape) for name, value in expected.items()}
    symbols = prompt.symbols
    for buffer in fused.memory:
        shape = [_number(symbols, size) for size in buffer.shape]
        if min(shape, default=0) < 0 or prod(shape) > MAX_ROUNDS:
            raise _UnknownError
        memory[buffer.name] = _unset(getattr(torch, buffer.dtype), shape)
    for nest in fused.nests:
        with boundary(_UnknownError, "running the loops"):  # torch refuses what C++ may not
            _NestRun(memory, arguments, symbols).run(nest)
    for name, right in expected.items():
        if (share := wrong_share(memory[name], right)) > WRONG_SHARE:
            raise _WrongError(f"{100 * share:.1f} % of {name} is not what eager torch computes")


def _unset(dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    """Memory that nothing was put into: no right result has such values."""
    if dtype.is_floating_point:
        return torch.full(tuple(shape), float("nan"), dtype=dtype)
    return torch.full(tuple(shape), 119 if dtype is not torch.bool else True, dtype=dtype)


def wrong_share(given: torch.Tensor, right: torch.Tensor) -> float:
    """The share of elements that are further off than their dtype allows.

    Examples:
        >>> wrong_share(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]))
        0.5
    """
    if not right.numel():
        return 0.0
    if not right.dtype.is_floating_point:
        return float((given != right).double().mean())
    tolerance = TOLERANCES[str(right.dtype).removeprefix("torch.")]
    given, right = given.double(), right.double()
    finite = right[right.isfinite()]
    scale = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    is_near = (given - right).abs() <= tolerance * (right.abs() + scale)
    is_same = (given == right) | (given.isnan() & right.isnan()) | is_near
    return float((~is_same).double().mean())


def _number(symbols: Symbols, index: Index) -> int:
    """The number that an index without variables is."""
    if isinstance(index, str):
        return symbols.whole_value(index)
    left, right = _number(symbols, index.left), _number(symbols, index.right)
    if index.name in ("//", "%") and right <= 0:
        raise InputError(f"an index is divided by {right}")
    match index.name:
        case "+":
            return left + right
        case "*":
            return left * right
        case "//":
            return left // right
    return left % right


class _NestRun:
    """Runs one nest. A value has an axis for each loop around the place where it was made, of size
    1 where it is the same in all of its rounds.
    """

    def __init__(
        self, memory: Mapping[str, torch.Tensor], arguments: frozenset[str], symbols: Symbols
    ) -> None:
        self._memory = memory
        self._arguments = arguments
        self._symbols = symbols
        self._loops: list[tuple[str, int]] = []
        self._values: dict[str, torch.Tensor] = {}

    def run(self, nest: Nest) -> None:
        """Run it, and put its results into memory."""
        self._enter(nest.loops)
        for step in nest.steps:
            if isinstance(step, Inner):
                self._inner(step)
            else:
                self._step(step)

    def _enter(self, loops: Sequence[tuple[str, Index]]) -> None:
        for name, size in loops:
            count = _number(self._symbols, size)
            if count <= 0:
                raise _UnknownError
            self._loops.append((name, count))
        if prod(count for _, count in self._loops) > MAX_ROUNDS:
            raise _UnknownError

    def _inner(self, inner: Inner) -> None:
        num_outer, known = len(self._loops), dict(self._values)
        self._enter(inner.loops)
        num_inner = len(self._loops) - num_outer
        results: dict[str, torch.Tensor] = {}
        for step in inner.steps:
            if not isinstance(step, Reduce):
                self._step(step)
                continue
            value = self._aligned(self._expr(step.value, None))
            sizes = [count for _, count in self._loops[num_outer:]]
            value = value.expand(*value.shape[:num_outer], *sizes)
            results.update(zip(step.names, reduced(step.kind, value, num_inner), strict=True))
        del self._loops[num_outer:]
        self._values = known | results

    def _step(self, step: LoopStep) -> None:
        match step:
            case Let(name, value):
                self._values[name] = self._expr(value, None)
            case Pick(name, size, value):
                count = _number(self._symbols, size)
                index = self._expr(value, None).long()
                index = torch.where(index < 0, index + count, index)
                if bool(((index < 0) | (index >= count)).any()):
                    raise _WrongError(f"{name} is out of bounds")
                self._values[name] = index
            case Put(memory, index, value):
                self._put(memory, index, self._expr(value, None))
            case _:
                raise InputError("a sum is only known after an inner loop: over ... done")

    def _aligned(self, value: torch.Tensor) -> torch.Tensor:
        """A value with an axis for each loop that there is now."""
        return value.reshape(*value.shape, *[1] * (len(self._loops) - value.ndim))

    def _expr(self, value: Expr, mask: torch.Tensor | None) -> torch.Tensor:
        """A value where `mask` holds; elsewhere it is never used."""
        match value:
            case str():
                return self._word(value)
            case MemoryRead(memory, index):
                return self._read(memory, index, mask)
            case IndexValue(index):
                return self._aligned(torch.as_tensor(self._index(index)))
            case Call("masked", (condition, inside, other)):
                holds = self._aligned(self._expr(condition, mask)).bool()
                within = holds if mask is None else holds & mask
                args = (holds, self._expr(inside, within), self._expr(other, mask))
                return torch_call("masked", [self._aligned(arg) for arg in args])
            case Call(name, args):
                return torch_call(name, [self._aligned(self._expr(arg, mask)) for arg in args])
        raise AssertionError("these are all")

    def _word(self, word: str) -> torch.Tensor:
        if word in self._values:
            return self._aligned(self._values[word])
        number = self._symbols.number_value(word)
        if number is None:
            raise InputError(f"{word!r} is not known where it is used")
        dtype = torch.float32 if isinstance(number, float) else None  # torch's own for the others
        return self._aligned(torch.tensor(number, dtype=dtype))

    def _index(self, index: Index) -> torch.Tensor | int:
        if isinstance(index, str):
            for place, (name, count) in enumerate(self._loops):
                if name == index:
                    sizes = [1] * len(self._loops)
                    sizes[place] = count
                    return torch.arange(count).reshape(sizes)
            if index in self._values:
                return self._aligned(self._values[index])
            return self._symbols.whole_value(index)
        left, right = self._index(index.left), self._index(index.right)
        match index.name:
            case "+":
                return left + right
            case "*":
                return left * right
        if isinstance(right, torch.Tensor) or right <= 0:
            raise InputError("an index is divided by what is not a number greater than 0")
        return left // right if index.name == "//" else left % right

    def _view(self, memory: torch.Tensor, index: Sequence[Index]) -> torch.Tensor | None:
        """Memory with an axis for each loop, where each axis is a whole loop, or a number."""
        places = {name: place for place, (name, _) in enumerate(self._loops)}
        taken: list[int] = []
        view = memory
        for part, size in zip(index, memory.shape, strict=True):
            axis = len(taken)
            if size == 1:
                view = view.select(axis, 0)
            elif isinstance(part, str) and part in places and places[part] not in taken:
                if self._loops[places[part]][1] > size:
                    return None
                view = view.narrow(axis, 0, self._loops[places[part]][1])
                taken.append(places[part])
            else:
                return None
        order = sorted(range(len(taken)), key=lambda axis: taken[axis])
        view = view.permute(order)
        for place in range(len(self._loops)):
            if place not in taken:
                view = view.unsqueeze(place)
        return view

    def _parts(
        self, memory: torch.Tensor, index: Sequence[Index], mask: torch.Tensor | None, name: str
    ) -> tuple[torch.Tensor, ...]:
        """An index for each axis, all within it."""
        parts = []
        for part, size in zip(index, memory.shape, strict=True):
            number = torch.as_tensor(0 if size == 1 else self._index(part))
            number = self._aligned(number)
            is_out = (number < 0) | (number >= size)
            if bool((is_out if mask is None else is_out & mask).any()):
                raise _WrongError(f"an index of {name} is beyond its axis of {size}")
            parts.append(number if mask is None else number.clamp(0, size - 1))
        return tuple(parts)

    def _of(self, name: str, index: Sequence[Index]) -> torch.Tensor:
        if name not in self._memory:
            raise InputError(f"{name!r} is no memory that can be read or put into here")
        memory = self._memory[name]
        if memory.ndim != len(index):
            raise InputError(f"{name} has {memory.ndim} axes, and an index of {len(index)} parts")
        return memory

    def _read(self, name: str, index: Sequence[Index], mask: torch.Tensor | None) -> torch.Tensor:
        memory = self._of(name, index)
        value = self._view(memory, index)
        if value is None:
            value = self._aligned(memory[self._parts(memory, index, mask, name)])
        elif name not in self._arguments:
            value = value.clone()  # what is put there later changes nothing
        return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value

    def _put(self, name: str, index: Sequence[Index], value: torch.Tensor) -> None:
        if name in self._arguments:
            raise InputError(f"{name} is an argument; nothing may be put into it")
        memory = self._of(name, index)
        sizes = [count for _, count in self._loops]
        value = torch_cast(str(memory.dtype).removeprefix("torch."), self._aligned(value))
        value = value.to(memory.dtype)
        view = self._view(memory, index)
        if view is not None and list(view.shape) == sizes:
            view.copy_(value.expand(sizes))
            return
        parts = [part.expand(sizes) for part in self._parts(memory, index, None, name)]
        memory[tuple(parts)] = value.expand(sizes)
