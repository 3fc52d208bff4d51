"""Admission of tasks: wrong programs fail on the judge's inputs, and right ones agree there."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from passnet.core.records.dtypes import Array, from_storage
from passnet.errors import GraphError
from passnet.graph.spec import Graph, ValueDomain, retarget
from passnet.graph.values.inputs import InputKind, InputValue, make_inputs, varies
from passnet.inductor.compiler import compile_with_inductor
from passnet.judge.score.tolerance import CHUNK_ELEMENTS, CORRECT_AT, smallest_t
from passnet.judge.task import TaskGraph
from passnet_audit.suites.domains import declare, proposals
from passnet_audit.suites.soundness import Fault, find_fault
from passnet_audit.suites.wrong_programs import (
    Edit,
    NodeValues,
    Value,
    WrongPrograms,
    make_wrong_programs,
    record_values,
    run_edit,
    run_program,
    wrong_values,
)

INPUT_KINDS: tuple[InputKind, ...] = ("recorded", "fresh")
"""The input sets on which the judge compares all values; each has the next seed."""
OTHER_ROUND = 1000
"""The distance between the seeds of two rounds of inputs."""
FIRST_PIECE_ELEMENTS = 1 << 10
"""The elements to compare first; most wrong programs fail on them."""
TRIVIAL_AT = -4
"""The level at which made-up outputs and arguments must fail; the rest must at t = -5."""
ProgramName: TypeAlias = Literal[
    "zeros", "ones", "identity", "previous_outputs", "random", "constant", "mean", "overall_mean",
    "skipped_op", "zeroed_op", "ignored_argument", "nothing_to_compute", "nothing_varies",
    "reference_error",
]  # fmt: skip
"""A wrong program. The last three mean that no program can be told from a right one."""

NoteName: TypeAlias = Literal["constant_input", "idle_op", "passed_through", "not_finite"]


@dataclass(frozen=True, slots=True)
class AdmissionPlan:
    """The seed of the inputs, and the questions to a graph.

    A brief admission only decides whether a graph is admitted: it ends at the first edit that
    passes on all sets, and has no `partial`. With `compiles`, Inductor must agree with float64;
    without `runs_wrong`, wrong programs are run in domains that are new only.
    """

    seed: int = 0
    is_brief: bool = False
    compiles: bool = True
    runs_wrong: bool = True


@dataclass(frozen=True, slots=True)
class WrongProgramPass:
    """A wrong program that passes: its edit, place and input sets."""

    program: ProgramName
    place: str
    kinds: tuple[InputKind, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """An odd property of a graph that does not speak against it.

    `constant_input`: all values of an argument are equal, on the sets named. `idle_op`: an op
    that gives its argument to the bit. `passed_through`: an output that is an argument.
    `not_finite`: an output that holds NaN or infinities, on the sets named.
    """

    name: NoteName
    place: str
    kinds: tuple[InputKind, ...] = INPUT_KINDS


@dataclass(frozen=True, slots=True)
class Admission:
    """Wrong programs that pass on all sets of a graph (`degenerate`), or on one (`partial`).

    `fault` makes a graph unsound; with the domains declared for it here, it is sound.
    """

    task: str
    graph: str
    degenerate: tuple[WrongProgramPass, ...]
    partial: tuple[WrongProgramPass, ...]
    notes: tuple[Note, ...]
    fault: Fault | None = None
    domains: dict[str, ValueDomain] = field(default_factory=dict)

    @property
    def is_admitted(self) -> bool:
        """Return whether the graph, with its domains, may be part of a suite."""
        return not self.degenerate and self.fault is None

    def texts(self) -> tuple[str, ...]:
        """Return why the graph is not admitted, each reason with its place."""
        wrong = tuple(f"{reason.program} ({reason.place})" for reason in self.degenerate)
        return wrong + ((f"{self.fault.name} ({self.fault.place})",) if self.fault else ())

    def reasons(self, kinds: Collection[InputKind]) -> tuple[WrongProgramPass, ...]:
        """Return the wrong programs that would pass if only these kinds of inputs were used."""
        reasons = (*self.degenerate, *self.partial)
        return tuple(reason for reason in reasons if set(kinds) <= set(reason.kinds))


def admit_in_domain(candidate: TaskGraph, plan: AdmissionPlan = AdmissionPlan()) -> Admission:
    """Return the admission of one graph; of an unsound one, in the smallest domains that help."""
    admission = admit_graph(candidate, plan)
    for domains in proposals(candidate.graph) if admission.fault else ():
        declared = replace(candidate, graph=declare(candidate.graph, domains))
        again = admit_graph(declared, replace(plan, runs_wrong=True))
        if again.is_admitted:
            return replace(again, domains=domains)
    return admission


def admit_graph(candidate: TaskGraph, plan: AdmissionPlan = AdmissionPlan()) -> Admission:
    """Return the admission of one graph; `reference_error` is the reason if it cannot be run."""
    graph, fault = retarget(candidate.graph, "cpu"), None
    reasons: list[WrongProgramPass] = []
    notes: list[Note] = []
    try:
        if plan.runs_wrong:
            reasons, notes = _reasons_and_notes(graph, plan.seed, plan.is_brief)
        if not (plan.is_brief and any(reason.kinds == INPUT_KINDS for reason in reasons)):
            fault = find_fault(graph, plan.seed, compile_with_inductor if plan.compiles else None)
    except GraphError as cause:
        reasons = [WrongProgramPass("reference_error", str(cause), INPUT_KINDS)]
    is_brief = plan.is_brief
    return Admission(
        candidate.task,
        candidate.name,
        tuple(reason for reason in reasons if reason.kinds == INPUT_KINDS),
        () if is_brief else tuple(reason for reason in reasons if reason.kinds != INPUT_KINDS),
        tuple(notes),
        fault,
    )


@dataclass(frozen=True, slots=True)
class _RightRun:
    kind: InputKind
    inputs: list[InputValue]
    outputs: list[Value]
    other_outputs: list[Value]
    node_values: NodeValues | None


_Passes: TypeAlias = dict[tuple[ProgramName, str], list[InputKind]]
"""Wrong programs that pass, by name and place, with the input sets on which they do."""


def _reasons_and_notes(
    graph: Graph, seed: int, is_brief: bool
) -> tuple[list[WrongProgramPass], list[Note]]:
    inputs, other_inputs = (
        [make_inputs(graph, kind, start + index) for index, kind in enumerate(INPUT_KINDS)]
        for start in (seed, seed + OTHER_ROUND)
    )
    programs = make_wrong_programs(graph, [*inputs, other_inputs[INPUT_KINDS.index("fresh")]])
    runs = _right_runs(programs, inputs, other_inputs)
    passes: _Passes = {}
    for run in runs:
        for program in _passing_outputs(graph, run, seed):
            passes.setdefault(program, []).append(run.kind)
    notes = [Note("idle_op", edit.description) for edit in programs.idle]
    passed_through = _passed_through(graph, runs)
    for output, argument in passed_through:
        notes.append(Note("passed_through", f"{output}: {argument}"))
        passes.pop(("identity", f"{output}: {argument}"))
    views = {output.name for output in runs[0].outputs if output.is_view}
    if _computed(runs) <= {output for output, _ in passed_through} | views:
        passes["nothing_to_compute", "all outputs"] = list(INPUT_KINDS)
    if not varies(graph):
        passes["nothing_varies", "all arguments"] = list(INPUT_KINDS)
    if not is_brief or all(len(kinds) < len(INPUT_KINDS) for kinds in passes.values()):
        passes.update(_passing_edits(programs, runs, is_brief))
    notes.extend(_value_notes(graph, runs))
    return [WrongProgramPass(*program, tuple(kinds)) for program, kinds in passes.items()], notes


def _passing_edits(programs: WrongPrograms, runs: Sequence[_RightRun], is_brief: bool) -> _Passes:
    """Return the passing edits with their input sets; if brief, up to the first on all sets."""
    passes: _Passes = {}
    for edit in reversed(programs.edits) if is_brief else programs.edits:  # the quickest first
        kinds: list[InputKind] = []
        for run in runs:
            if _edit_passes(programs, run, edit):
                kinds.append(run.kind)
            elif is_brief:
                break
        if kinds:
            passes[edit.kind, edit.description] = kinds
        if is_brief and len(kinds) == len(runs):
            break
    return passes


def _right_runs(
    programs: WrongPrograms, inputs: list[list[InputValue]], other_inputs: list[list[InputValue]]
) -> list[_RightRun]:
    values = [run_program(programs, arguments) for arguments in inputs]
    num_outputs = len(values[0]) - len(inputs[0])
    # by an op whose name does not tell, as a batch norm writes its statistics
    written_arguments = {
        num_outputs + index
        for arguments, run_values in zip(inputs, values, strict=True)
        for index, argument in enumerate(arguments)
        if not isinstance(argument, int)
        and not _same_bits(argument, run_values[num_outputs + index].array)
    }
    compared = [*range(num_outputs), *sorted(written_arguments)]
    other_values = [run_program(programs, arguments) for arguments in other_inputs]
    return [
        _RightRun(
            kind,
            inputs[index],
            [values[index][number] for number in compared],
            [other_values[index][number] for number in compared],
            None if written_arguments else record_values(programs, inputs[index]),
        )
        for index, kind in enumerate(INPUT_KINDS)
    ]


def _same_bits(first: InputValue, second: Array | None) -> bool:
    if isinstance(first, int) or second is None:
        return False
    return first.shape == second.shape and first.tobytes() == second.tobytes()


def agrees(actual: Array, expected: Array, dtype: str, at: int = CORRECT_AT) -> bool:
    """Return whether a tensor passes at a level, comparing growing pieces up to a failure.

    Examples:
        >>> agrees(np.zeros(2, np.float32), np.full(2, 1e-6, np.float32), "float32")
        True
        >>> agrees(np.zeros(2, np.float32), np.full(2, 1e-4, np.float32), "float32")
        False
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    actual, expected = actual.reshape(-1), expected.reshape(-1)
    start, size = 0, FIRST_PIECE_ELEMENTS
    while start < expected.size:
        piece = slice(start, start + size)
        level = smallest_t(actual[piece], expected[piece], dtype)
        if level is None or level > at:
            return False
        start, size = start + size, CHUNK_ELEMENTS
    return True


def _edit_passes(programs: WrongPrograms, run: _RightRun, edit: Edit) -> bool:
    expected = {value.name: value for value in run.outputs}
    try:
        if run.node_values is not None:
            values = run_edit(programs, edit, run.node_values)
        else:
            values = run_program(programs, run.inputs, edit)
        return all(
            _value_agrees(value, expected[value.name]) for value in values if value.name in expected
        )
    except GraphError:
        return False


def _value_agrees(actual: Value, expected: Value) -> bool:
    if actual.array is None or expected.array is None:
        return actual.array is expected.array and actual.number == expected.number
    return actual.dtype == expected.dtype and agrees(actual.array, expected.array, expected.dtype)


def _passing_outputs(graph: Graph, run: _RightRun, seed: int) -> Iterator[tuple[ProgramName, str]]:
    for expected, other_output in zip(run.outputs, run.other_outputs, strict=True):
        if expected.array is None:
            continue
        attempts: list[tuple[ProgramName, str, Array]] = [
            (program, expected.name, wrong) for program, wrong in wrong_values(expected, seed)
        ]
        if other_output.array is not None:
            attempts.append(("previous_outputs", expected.name, other_output.array))
        for spec, argument in zip(graph.tensors, run.inputs, strict=True):
            if spec.dtype == expected.dtype and not isinstance(argument, int):
                attempts.append(("identity", f"{expected.name}: {spec.name}", argument))
        for program, location, wrong in attempts:
            at = CORRECT_AT if program == "previous_outputs" else TRIVIAL_AT
            if agrees(wrong, expected.array, expected.dtype, at):
                yield program, location


def _passed_through(graph: Graph, runs: Sequence[_RightRun]) -> list[tuple[str, str]]:
    """Return pairs of an output and an argument that are equal to the bit on all sets."""
    return [
        (output.name, spec.name)
        for number, output in enumerate(runs[0].outputs)
        for argument, spec in enumerate(graph.tensors)
        if output.dtype == spec.dtype
        and all(_same_bits(run.inputs[argument], run.outputs[number].array) for run in runs)
    ]


def _computed(runs: Sequence[_RightRun]) -> set[str]:
    """Return the outputs that are tensors, or numbers that differ from run to run."""
    all_outputs = [outputs for run in runs for outputs in (run.outputs, run.other_outputs)]
    return {
        values[0].name
        for values in zip(*all_outputs, strict=True)
        if values[0].array is not None or len({value.number for value in values}) > 1
    }


def _value_notes(graph: Graph, runs: Sequence[_RightRun]) -> Iterator[Note]:
    for number, spec in enumerate(graph.tensors):
        values = [(run.kind, run.inputs[number]) for run in runs]
        kinds = tuple(
            kind
            for kind, value in values
            if not isinstance(value, int) and value.size > 1 and (value == value.flat[0]).all()
        )
        if kinds:
            yield Note("constant_input", spec.name, kinds)
    for number, output in enumerate(runs[0].outputs):
        arrays = [(run.kind, run.outputs[number].array) for run in runs]
        kinds = tuple(
            kind
            for kind, array in arrays
            if array is not None and not np.isfinite(from_storage(array, output.dtype)).all()
        )
        if kinds:
            yield Note("not_finite", output.name, kinds)
