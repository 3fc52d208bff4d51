"""The loops of an answer run by torch, to find wrong answers without a compiler.

Every step of a nest runs for all rounds of the loops at once: a loop variable is an axis of a
tensor. This is slower than C++, but needs neither a compiler nor a process. A wrong answer here is
wrong; the judge decides on the others with more inputs, stricter comparisons and the code itself.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import torch

from passnet.errors import CutError, GraphError, InputError, boundary
from passnet.graph.fx.build import build, op_number
from passnet.graph.spec import refs
from passnet.graph.values.cost import torch_arguments
from passnet.graph.values.effects import writes_first
from passnet_loops.language.answer_text import parse_answer
from passnet_loops.language.expand import span_of
from passnet_loops.language.language import FusedRange
from passnet_loops.language.nests.range_memory import spanned_elements
from passnet_loops.language.prompt import Prompt
from passnet_loops.language.run_nest import NestRun, RunLimits, UnknownLoopsError, WrongLoopsError

WRONG_SHARE = 1e-3
"""Largest share of wrong elements: rounding decides on some, as in a comparison."""

TOLERANCES = {"float32": 1e-3, "float64": 1e-3, "bfloat16": 5e-2, "float16": 1e-2}
"""Tolerance of an element, relative to it and to the root mean square of all."""


@dataclass(frozen=True)
class EagerRun:
    """A run of a prompt's graph in eager torch."""

    prompt: Prompt
    seed: int
    values: Mapping[str, torch.Tensor] | None
    """All values by their names in the prompt; None where an op writes into a value."""

    tied: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Arguments and other outputs that share the memory of an output, by its name."""

    limits: RunLimits = RunLimits()

    def around(
        self, span: tuple[int, int], read: Sequence[str], results: Sequence[str]
    ) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Return `read` values before some ops, and `results` values after them.

        Raises:
            GraphError, KeyError: Torch cannot run the graph, or a value is no tensor.
        """
        if self.values is None:
            start, stop = span
            states = _states(self.prompt, self.seed, {start: read, stop: results})
            return states[start], states[stop]
        return {n: self.values[n] for n in read}, {n: self.values[n] for n in results}


def eager_run(prompt: Prompt, seed: int = 0) -> EagerRun:
    """Run the graph of a prompt on fresh inputs; later, where an op writes into a value.

    Raises:
        GraphError: Its inputs cannot be drawn, or torch cannot run it.
    """
    ops = prompt.graph.program.ops
    if any(writes_first(op.target, dict(op.kwargs)) for op in ops):
        return EagerRun(prompt, seed, None)
    values = _states(prompt, seed, {len(ops): None})[len(ops)]
    return EagerRun(prompt, seed, values, _tied(prompt, values))


def _tied(prompt: Prompt, values: Mapping[str, torch.Tensor]) -> dict[str, frozenset[str]]:
    """Return the outputs that share memory with arguments or with each other."""
    program = prompt.graph.program
    returned = [prompt.names.get(name) for output in program.outputs for name in refs(output)]
    arguments = [prompt.names.get(param.name) for param in program.params]
    spans = {name: _span(values[name]) for name in (*arguments, *returned) if name in values}
    return {
        name: frozenset(
            sharer
            for sharer, span in spans.items()
            if sharer != name
            and max(spans[name].start, span.start) < min(spans[name].stop, span.stop)
        )
        for name in returned
        if name in spans
    }


def _span(value: torch.Tensor) -> range:
    """Return the addresses from the first to the last element."""
    pairs = zip(value.shape, value.stride(), strict=True)
    length = 1 + sum((size - 1) * stride for size, stride in pairs) if value.numel() else 0
    return range(value.data_ptr(), value.data_ptr() + length * value.element_size())


def _states(
    prompt: Prompt, seed: int, names_by_op: Mapping[int, Sequence[str] | None]
) -> dict[int, dict[str, torch.Tensor]]:
    """Return copies of values before the op of a number, by names of the prompt; for None all."""
    program = prompt.graph.program
    module = build(program)
    arguments = torch_arguments(prompt.graph, "fresh", seed)
    values: dict[str, torch.Tensor] = {}
    states: dict[int, dict[str, torch.Tensor]] = {}

    def put(name: str | None, value: object) -> None:
        if name in prompt.names and isinstance(value, torch.Tensor):
            values[prompt.names[name]] = value.detach()

    def keep(number: int) -> None:
        if number in names_by_op:
            names = names_by_op[number]
            states[number] = values if names is None else {n: values[n].clone() for n in names}

    for param, value in zip(program.params, arguments, strict=True):
        put(param.name, value)
    interpreter = torch.fx.Interpreter(module)
    interpreter.args_iter = iter(arguments)
    with torch.no_grad(), boundary(GraphError, "running the graph"):
        torch.manual_seed(seed)
        for node in list(module.graph.nodes)[:-1]:  # the last is the output
            number = op_number(node)
            if number is not None:
                keep(number)
            value = interpreter.env[node] = interpreter.run_node(node)
            if number is not None:
                put(program.ops[number].output, value)
        keep(len(program.ops))
    return states


def what_is_wrong(eager: EagerRun, answer: str) -> str | None:
    """Return the error that a run of the loops finds, if any; too long loops are not run.

    Raises:
        InputError: It is no answer, or a part of it has no meaning.
    """
    try:
        _run(eager, answer)
    except WrongLoopsError as cause:
        return str(cause)
    except UnknownLoopsError:
        return None
    return None


def is_right_where_run(eager: EagerRun, answer: str) -> bool:
    """Return True if all loops of an answer can be run, and agree with eager torch."""
    try:
        _run(eager, answer)
    except (InputError, WrongLoopsError, UnknownLoopsError):
        return False
    return True


def not_shown_wrong(prompt: Prompt, answers: Sequence[str]) -> list[str]:
    """Return the answers that pass a run of their loops; all where none passes or can be run."""
    try:
        eager = eager_run(prompt)
    except GraphError:
        return list(answers)
    passing = []
    for answer in answers:
        with suppress(InputError):
            if what_is_wrong(eager, answer) is None:
                passing.append(answer)
    return passing or list(answers)


def _run(eager: EagerRun, answer: str) -> None:
    for fused in parse_answer(answer):
        _run_range(eager, fused)


def _run_range(eager: EagerRun, fused: FusedRange) -> None:
    prompt = eager.prompt
    span = span_of(prompt, fused)
    try:
        prompt_range = prompt.range(span)
    except (CutError, GraphError) as cause:
        raise InputError(f"the range cannot be replaced: {cause}") from cause
    for name in prompt_range.results:
        # Values computed after these ops may still view the results of their loops.
        if any(prompt.op_numbers.get(sharer, -1) < span[1] for sharer in eager.tied.get(name, ())):
            raise WrongLoopsError(f"{name} shares memory in eager torch, and has its own here")
    try:
        before, expected = eager.around(span, prompt_range.arguments, prompt_range.results)
    except (GraphError, KeyError) as cause:
        raise UnknownLoopsError("the graph cannot be run") from cause
    for name, value in expected.items():
        if value.numel() > eager.limits.max_rounds:
            raise UnknownLoopsError(f"{name} is too large")
    unset = {name: _unset(value.dtype, value.shape) for name, value in expected.items()}
    memory = before | unset
    for buffer in fused.memory:
        shape = [prompt.symbols.index_value(size) for size in buffer.shape]
        if min(shape, default=0) < 0 or spanned_elements(shape) > eager.limits.max_rounds:
            raise UnknownLoopsError(f"{buffer.name} is too large")
        memory[buffer.name] = _unset(getattr(torch, buffer.dtype), shape)
    for nest in fused.nests:
        with boundary(UnknownLoopsError, "running the loops"):  # torch refuses what C++ may not
            arguments = frozenset(prompt_range.arguments)
            NestRun(memory, arguments, prompt.symbols, eager.limits).run(nest)
    for name, right in expected.items():
        if (share := wrong_share(memory[name], right)) > WRONG_SHARE:
            raise WrongLoopsError(f"{100 * share:.1f} % of {name} is not what eager torch computes")


def _unset(dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    """Return memory with values that no correct result has."""
    if dtype.is_floating_point:
        return torch.full(tuple(shape), float("nan"), dtype=dtype)
    return torch.full(tuple(shape), 119 if dtype is not torch.bool else True, dtype=dtype)


def wrong_share(values: torch.Tensor, right: torch.Tensor) -> float:
    """Return the share of elements beyond the tolerance of their dtype.

    Examples:
        >>> wrong_share(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]))
        0.5
    """
    if not right.numel():
        return 0.0
    if not right.dtype.is_floating_point:
        return float((values != right).double().mean())
    tolerance = TOLERANCES[str(right.dtype).removeprefix("torch.")]
    values, right = values.double(), right.double()
    finite = right[right.isfinite()]
    scale = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    is_near = (values - right).abs() <= tolerance * (right.abs() + scale)
    is_same = (values == right) | (values.isnan() & right.isnan()) | is_near
    return float((~is_same).double().mean())
