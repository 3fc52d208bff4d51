"""Admission of tasks: whether wrong programs fail on a graph, on the inputs of the judge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from passnet.errors import GraphError
from passnet.graph.device import retarget
from passnet.graph.inputs import InputKind, InputValue, make_inputs
from passnet.graph.spec import Graph
from passnet.records.dtypes import Array, from_storage
from passnet.score.tolerance import CHUNK_ELEMENTS, CORRECT_AT, smallest_t
from passnet.suite.suite import Suite, SuiteGraph

if TYPE_CHECKING:
    from passnet.suite.wrong_programs import Edit, Kept, Value, WrongPrograms

KINDS: tuple[InputKind, ...] = ("recorded", "fresh")
"""The input sets on which the judge compares all values, in its order; the seed grows by one from
set to set."""

OTHER_ROUND = 1000
"""Distance of the seeds of another round of inputs."""

FIRST_PIECE_ELEMENTS = 1 << 10
"""Elements that are compared first; most wrong programs fail on these."""

ProgramName: TypeAlias = Literal[
    "zeros", "ones", "identity", "previous_outputs", "random", "constant", "mean",
    "skipped_op", "zeroed_op", "ignored_argument", "nothing_to_compute", "reference_error",
]  # fmt: skip
"""A wrong program; the last two say that a graph has no right one to compare with."""

NoteName: TypeAlias = Literal["constant_input", "idle_op", "passed_through", "not_finite"]


@dataclass(frozen=True, slots=True)
class WrongProgramPass:
    """A wrong program that passes: what it does, where, and on which input sets."""

    program: ProgramName
    place: str
    kinds: tuple[InputKind, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """What is odd about a graph but tells against nothing.

    `constant_input`: all values of an argument are equal, on the sets named. `idle_op`: an op
    that gives its argument to the bit. `passed_through`: an output that is an argument.
    `not_finite`: an output that holds NaN or infinities, on the sets named.
    """

    name: NoteName
    place: str
    kinds: tuple[InputKind, ...] = KINDS


@dataclass(frozen=True, slots=True)
class Admission:
    """What wrong programs do on one graph.

    `degenerate` are those that pass on all sets that the judge uses: with any, the graph should
    not be scored. `partial` pass on one set and fail on another.
    """

    task: str
    graph: str
    degenerate: tuple[WrongProgramPass, ...]
    partial: tuple[WrongProgramPass, ...]
    notes: tuple[Note, ...]

    def reasons(self, kinds: Collection[InputKind]) -> tuple[WrongProgramPass, ...]:
        """The wrong programs that would pass if only inputs of these kinds were judged with."""
        both = (*self.degenerate, *self.partial)
        return tuple(item for item in both if set(kinds) <= set(item.kinds))


def admit_suite(
    suite: Suite, progress: Callable[[str], None] | None = None, seed: int = 0
) -> list[Admission]:
    """The admission of every graph of a suite, in order.

    The graphs run in this process, from allow-listed ops only; torch is imported.

    Args:
        suite: what to check.
        progress: called with the name of each graph that is done.
        seed: that of the judge.
    """
    admissions = []
    for task in suite.tasks:
        for item in task.graphs:
            admissions.append(admit_graph(item, seed))
            if progress is not None:
                progress(item.name)
    return admissions


def admit_graph(item: SuiteGraph, seed: int = 0, is_brief: bool = False) -> Admission:
    """The admission of one graph; one that cannot be run is degenerate for `reference_error`.

    A brief one only tells whether the graph is degenerate: it ends at the first edit of an op that
    passes on all sets, does not run one that fails on a set on the others, and has no `partial`.
    """
    try:
        return _admit(item, seed, is_brief)
    except GraphError as cause:
        reason = WrongProgramPass("reference_error", str(cause), KINDS)
        return Admission(item.task, item.name, (reason,), (), ())


@dataclass(frozen=True, slots=True)
class _Round:
    """One set of inputs with the true outputs, the true outputs of another such set, and the
    values of the true run, if an edit can begin with them.
    """

    kind: InputKind
    inputs: list[InputValue]
    truth: list[Value]
    other: list[Value]
    kept: Kept | None


def _admit(item: SuiteGraph, seed: int, is_brief: bool) -> Admission:
    from passnet.suite.wrong_programs import make_wrong_programs

    graph = retarget(item.graph, "cpu")
    sets, others = (
        [make_inputs(graph, kind, start + place) for place, kind in enumerate(KINDS)]
        for start in (seed, seed + OTHER_ROUND)
    )
    programs = make_wrong_programs(graph, [*sets, others[KINDS.index("fresh")]])
    rounds = [
        _round(programs, kind, mine, other)
        for kind, mine, other in zip(KINDS, sets, others, strict=True)
    ]
    passed: dict[tuple[ProgramName, str], list[InputKind]] = {}
    for one in rounds:
        for found in _wrong_outputs(graph, one, seed):
            passed.setdefault(found, []).append(one.kind)
    notes = [Note("idle_op", edit.place) for edit in programs.idle]
    through = _passed_through(graph, rounds)
    for output, name in through:
        notes.append(Note("passed_through", f"{output}: {name}"))
        passed.pop(("identity", f"{output}: {name}"))
    views = {value.name for value in rounds[0].truth if value.is_view}
    if _computed(rounds) <= {output for output, _ in through} | views:
        passed["nothing_to_compute", "all outputs"] = list(KINDS)
    if not is_brief or all(len(kinds) < len(KINDS) for kinds in passed.values()):
        passed.update(_passing_edits(programs, rounds, is_brief))
    reasons = [WrongProgramPass(*found, tuple(kinds)) for found, kinds in passed.items()]
    return Admission(
        item.task,
        item.name,
        tuple(reason for reason in reasons if reason.kinds == KINDS),
        () if is_brief else tuple(reason for reason in reasons if reason.kinds != KINDS),
        (*notes, *_notes(graph, rounds)),
    )


def _passing_edits(
    programs: WrongPrograms, rounds: Sequence[_Round], is_brief: bool
) -> dict[tuple[ProgramName, str], list[InputKind]]:
    """The edits that pass, with the sets on which they do; in brief, up to the first on all."""
    passed: dict[tuple[ProgramName, str], list[InputKind]] = {}
    for edit in reversed(programs.edits) if is_brief else programs.edits:  # the quickest first
        kinds: list[InputKind] = []
        for one in rounds:
            if _passes(programs, one, edit):
                kinds.append(one.kind)
            elif is_brief:
                break
        if kinds:
            passed[edit.kind, edit.place] = kinds
        if is_brief and len(kinds) == len(rounds):
            break
    return passed


def _round(
    programs: WrongPrograms, kind: InputKind, inputs: list[InputValue], other: list[InputValue]
) -> _Round:
    from passnet.suite.wrong_programs import keep, run

    truth, again = run(programs, inputs), run(programs, other)
    places = _places(inputs, truth)
    # by an op whose name does not tell, as a batch norm writes its statistics
    is_written = len(places) > len(truth) - len(inputs)
    kept = None if is_written else keep(programs, inputs)
    return _Round(kind, inputs, [truth[i] for i in places], [again[i] for i in places], kept)


def _places(inputs: Sequence[InputValue], values: Sequence[Value]) -> list[int]:
    """Which values of a run are to be compared: the outputs, and the arguments written to."""
    num_outputs = len(values) - len(inputs)
    written = [
        num_outputs + place
        for place, before in enumerate(inputs)
        if not isinstance(before, int) and not _same_bits(before, values[num_outputs + place].array)
    ]
    return [*range(num_outputs), *written]


def _same_bits(mine: Array, theirs: Array | None) -> bool:
    return theirs is not None and mine.shape == theirs.shape and mine.tobytes() == theirs.tobytes()


def agrees(actual: Array, expected: Array, dtype: str) -> bool:
    """Whether a tensor passes at t = -5; compared in growing pieces, up to the first that fails.

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
        part = slice(start, start + size)
        level = smallest_t(actual[part], expected[part], dtype)
        if level is None or level > CORRECT_AT:
            return False
        start, size = start + size, CHUNK_ELEMENTS
    return True


def _passes(programs: WrongPrograms, one: _Round, edit: Edit) -> bool:
    """Whether an edit passes: every output, and every argument written to, agrees."""
    from passnet.suite.wrong_programs import edited, run

    right = {value.name: value for value in one.truth}
    try:
        if one.kept is not None:
            found = edited(programs, edit, one.kept)
        else:
            found = (value for value in run(programs, one.inputs, edit) if value.name in right)
        return all(_equal(value, right[value.name]) for value in found)
    except GraphError:
        return False


def _equal(mine: Value, right: Value) -> bool:
    if mine.array is None or right.array is None:
        return mine.array is right.array and mine.number == right.number
    return mine.dtype == right.dtype and agrees(mine.array, right.array, right.dtype)


def _wrong_outputs(graph: Graph, one: _Round, seed: int) -> Iterator[tuple[ProgramName, str]]:
    """The wrong values of one output that pass for it; a program is right in all others."""
    from passnet.suite.wrong_programs import wrong_values

    for right, other in zip(one.truth, one.other, strict=True):
        if right.array is None:
            continue
        values: list[tuple[ProgramName, str, Array]] = [
            (program, right.name, wrong) for program, wrong in wrong_values(right, seed)
        ]
        if other.array is not None:
            values.append(("previous_outputs", right.name, other.array))
        for spec, given in zip(graph.tensors, one.inputs, strict=True):
            if spec.dtype == right.dtype and not isinstance(given, int):
                values.append(("identity", f"{right.name}: {spec.name}", given))
        for program, place, wrong in values:
            if agrees(wrong, right.array, right.dtype):
                yield program, place


def _passed_through(graph: Graph, rounds: Sequence[_Round]) -> list[tuple[str, str]]:
    """Pairs of an output and the argument that it is, to the bit, on all sets."""
    return [
        (right.name, spec.name)
        for place, right in enumerate(rounds[0].truth)
        for number, spec in enumerate(graph.tensors)
        if all(_is(one.inputs[number], one.truth[place], spec.dtype) for one in rounds)
    ]


def _computed(rounds: Sequence[_Round]) -> set[str]:
    """The outputs that are tensors, or numbers that differ from round to round."""
    names = set()
    for place, right in enumerate(rounds[0].truth):
        numbers = {one.number for item in rounds for one in (item.truth[place], item.other[place])}
        if right.array is not None or len(numbers) > 1:
            names.add(right.name)
    return names


def _is(given: InputValue, value: Value, dtype: str) -> bool:
    if isinstance(given, int) or value.dtype != dtype:
        return False
    return _same_bits(given, value.array)


def _notes(graph: Graph, rounds: Sequence[_Round]) -> Iterator[Note]:
    for number, spec in enumerate(graph.tensors):
        kinds = tuple(one.kind for one in rounds if _is_constant(one.inputs[number]))
        if kinds:
            yield Note("constant_input", spec.name, kinds)
    for place, right in enumerate(rounds[0].truth):
        kinds = tuple(one.kind for one in rounds if not _is_finite(one.truth[place]))
        if kinds:
            yield Note("not_finite", right.name, kinds)


def _is_constant(value: InputValue) -> bool:
    return not isinstance(value, int) and value.size > 1 and bool((value == value.flat[0]).all())


def _is_finite(value: Value) -> bool:
    return value.array is None or bool(np.isfinite(from_storage(value.array, value.dtype)).all())
