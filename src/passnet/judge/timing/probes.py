"""Reads of a worker's memory, at random places of its outputs or whole, while it stands still."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from passnet.core.records.dtypes import Array, storage
from passnet.judge.processes.worker_process import Worker
from passnet.judge.protocol.messages import OutputForm
from passnet.judge.score.tolerance import LEVELS, forgiving
from passnet.judge.verdict.compare import Comparison, compare_array, worse

NUM_PLACES = 8
"""Places that are read in one call, over all outputs: work that left out a share f of an output
goes unseen in one call with probability (1 - f)^8, in fifty calls with (1 - f)^400."""
RUN_ELEMENTS = 64
"""Neighbouring elements that are read at a place, where the memory order allows."""


@dataclass(frozen=True, slots=True)
class ProbedPlaces:
    """Places in one output: multi-indices [places, dimensions], each with a run along `axis`."""

    output: int
    dtype: str
    indices: Array
    axis: int
    run: int


def draw_places(forms: Sequence[OutputForm], random: np.random.Generator) -> list[ProbedPlaces]:
    """Draw random places in the outputs of the reference."""
    tensors = [
        (number, form)
        for number, form in enumerate(forms)
        if form.kind == "tensor" and 0 not in form.shape
    ]
    count = max(2, NUM_PLACES // max(len(tensors), 1))
    probes = []
    for number, form in tensors:
        dense = [dim for dim, stride in enumerate(form.stride) if stride == 1]
        axis = max(dense, key=lambda dim: form.shape[dim], default=-1)
        run = min(RUN_ELEMENTS, form.shape[axis]) if dense else 1
        highest = [size - (run - 1 if dim == axis else 0) for dim, size in enumerate(form.shape)]
        indices = random.integers(0, np.array(highest, np.int64), (count, len(highest)))
        probes.append(ProbedPlaces(number, form.dtype, indices, axis, run))
    return probes


def read_places(
    worker: Worker,
    pointers: Sequence[int],
    forms: Sequence[OutputForm],
    probes: Sequence[ProbedPlaces],
) -> list[bytes]:
    """Read a worker's memory at some places; a wrong address raises WorkerFailureError."""
    contents = []
    for probe in probes:
        form = forms[probe.output]
        item_bytes = storage(form.dtype).itemsize
        strides = np.array(form.stride, np.int64) * item_bytes
        starts = pointers[probe.output] + probe.indices @ strides
        step = form.stride[probe.axis] if probe.run > 1 else 1
        num_bytes = probe.run * item_bytes
        if step == 1:
            parts = [worker.read(int(start), num_bytes) for start in starts]
        else:  # the candidate lays its output out with gaps
            offsets = range(0, num_bytes * step, item_bytes * step)
            parts = [
                worker.read(int(start) + offset, item_bytes)
                for start in starts
                for offset in offsets
            ]
        contents.append(b"".join(parts))
    return contents


def read_whole(worker: Worker, pointers: Sequence[int], forms: Sequence[OutputForm]) -> list[bytes]:
    """Read all bytes of a worker's outputs, none unless a tensor; see `read_places`."""
    return [
        worker.read(pointer, form.span_bytes) if form.kind == "tensor" else b""
        for pointer, form in zip(pointers, forms, strict=True)
    ]


def as_arrays(whole: Sequence[bytes], forms: Sequence[OutputForm]) -> list[Array | None]:
    """Return the result of `read_whole` as arrays; None unless a tensor."""
    outputs: list[Array | None] = [None] * len(forms)
    for index, (data, form) in enumerate(zip(whole, forms, strict=True)):
        if form.kind == "tensor":
            flat = np.frombuffer(data, storage(form.dtype))
            strides = [step * flat.itemsize for step in form.stride]
            shown = np.lib.stride_tricks.as_strided(flat, form.shape, strides)
            outputs[index] = np.ascontiguousarray(shown)
    return outputs


def compare_places(
    probes: Sequence[ProbedPlaces],
    actual: Sequence[bytes],
    expected: Sequence[bytes],
    slack: Sequence[float] | None = None,
) -> Comparison:
    """Return the smallest level at which the values at some places agree.

    `slack` is the error that is forgiven in an output.
    """
    comparison = Comparison("ok", LEVELS[0])
    for probe, actual_bytes, expected_bytes in zip(probes, actual, expected, strict=True):
        if actual_bytes == expected_bytes:
            continue
        kind = storage(probe.dtype)
        values, right = (np.frombuffer(seen, kind) for seen in (actual_bytes, expected_bytes))
        if slack is not None:
            values = forgiving(values, right, probe.dtype, slack[probe.output])
        name = f"output {probe.output} of a timed call"
        sides = (values, right, probe.dtype, partial(_index, probe))
        comparison = worse(comparison, compare_array(name, *sides))
        if comparison.t is None:
            break
    return comparison


def _index(probe: ProbedPlaces, place: int) -> list[int]:
    """Return the index of a read value in its output."""
    number, offset = divmod(place, probe.run)
    index = probe.indices[number].tolist()
    if offset:
        index[probe.axis] += offset
    return index


SharedPair: TypeAlias = tuple[tuple[str, int], tuple[str, int]]
"""Two tensors that share memory: ("argument" or "output", its number), twice."""


def shared(
    pointers: Sequence[int], forms: Sequence[OutputForm], arguments: Mapping[int, range]
) -> frozenset[SharedPair]:
    """Return the outputs that share memory with each other, or with the addresses of arguments."""
    spans = {
        ("output", number): range(pointer, pointer + form.span_bytes)
        for number, (pointer, form) in enumerate(zip(pointers, forms, strict=True))
        if form.kind == "tensor"
    }
    argument_spans = {("argument", index): span for index, span in arguments.items()}
    return frozenset(
        (min(name, name_beside), max(name, name_beside))
        for name, span in spans.items()
        for name_beside, beside in (argument_spans | spans).items()
        if name_beside != name and max(span.start, beside.start) < min(span.stop, beside.stop)
    )


def compare_shared(actual: frozenset[SharedPair], expected: frozenset[SharedPair]) -> Comparison:
    """Compare shared memory: a later write into one of two tensors changes both."""
    comparison = Comparison("ok", LEVELS[0])
    for pair in sorted(actual ^ expected):
        (first, index), (second, number) = pair
        does = "share memory" if pair in actual else "share no memory"
        text = f"{first} {index} and {second} {number} {does}, unlike in the reference"
        comparison = worse(comparison, Comparison("ok", None, text))
    return comparison


def overlap_between_calls(
    pointers: Sequence[Sequence[int]], forms: Sequence[OutputForm], left_out: Container[int]
) -> bool:
    """Return whether outputs of two calls overlap in memory; some outputs are left out."""
    spans = sorted(
        (call_pointers[number], call_pointers[number] + num_bytes, call)
        for number, form in enumerate(forms)
        if form.kind == "tensor" and number not in left_out and (num_bytes := form.span_bytes)
        for call, call_pointers in enumerate(pointers)
    )
    end, owner = 0, -1
    for start, stop, call in spans:
        if start < end and call != owner:
            return True
        if stop > end:
            end, owner = stop, call
    return False


def outputs_in(pairs: Iterable[SharedPair], kind: str) -> set[int]:
    """Return the outputs that share memory with an "argument", or with another "output"."""
    return {
        number
        for pair in pairs
        for (side, number), (other_side, _) in (pair, pair[::-1])
        if side == "output" and other_side == kind
    }
