"""One worker under one candidate: its inputs, its calls, and its results as raw bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from passnet.core.records.dtypes import Array, storage
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.render import render_program
from passnet.graph.values.inputs import InputValue
from passnet.judge.candidate import INDUCTOR_KINDS, Candidate
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.processes.worker_process import Worker, WorkerFailureError
from passnet.judge.protocol import messages
from passnet.judge.protocol.device import kind_of
from passnet.judge.protocol.op_counts import OpBudget
from passnet.judge.protocol.shared_memory import SharedMemory, aligned, lay_out
from passnet.judge.settings import JudgeSettings

MAX_OUTPUT_BYTES = 8 * 2**30
INPUT_MEMORY = "passnet-inputs"


@dataclass(frozen=True, slots=True)
class PreparedGraph:
    """A graph with its input sets; `content` is the input memory before any call."""

    text: str
    tensors: tuple[TensorSpec, ...]
    layouts: tuple[messages.InputLayout, ...]
    input_sets: tuple[Sequence[InputValue], ...]
    content: Array

    def values(self, input_set: int, index: int) -> Array:
        """Return the values of a tensor argument in a set, flat, of its storage type."""
        layout = self.layouts[index]
        count = int(np.prod(layout.shape, dtype=np.int64))
        kind = storage(layout.dtype)
        return np.frombuffer(self.content, kind, count, layout.offsets[input_set])


def prepare_graph(graph: Graph, input_sets: Sequence[Sequence[InputValue]]) -> PreparedGraph:
    """Lay out a graph with some sets of inputs for workers."""
    layouts, num_bytes = lay_out(graph.tensors, input_sets)
    content = np.zeros(num_bytes, np.uint8)
    for layout, values in zip(layouts, zip(*input_sets, strict=True), strict=True):
        for offset, value in zip(layout.offsets, values, strict=False):
            if not isinstance(value, int):
                flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
                content[offset : offset + value.nbytes] = flat
    return PreparedGraph(
        render_program(graph.program), graph.tensors, layouts, tuple(input_sets), content
    )


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """A call's outputs (None unless tensors), changed arguments, and claimed addresses."""

    forms: tuple[messages.OutputForm, ...]
    outputs: tuple[Array | None, ...]
    changed: dict[int, Array]
    outputs_at: tuple[int, ...]
    arguments_at: dict[int, range]


@dataclass(frozen=True, slots=True)
class Float64Result:
    """The outputs of the graph in float64, and its least work (see `messages.Ran`)."""

    outputs: tuple[Array | None, ...]
    work: tuple[int, int, int]


class LoadedWorker:
    """A loaded worker; use it as a context manager. Raises WorkerFailureError if it cannot load.

    The inputs' memory is granted beyond the limits of the settings; on "cuda", `limits.memory_mib`
    of the device's memory too. With a fence library, tensors lie between pages without access, and
    the worker cannot be timed. With a library that counts, `op_budget` has what torch computes.
    """

    def __init__(
        self,
        parent: WorkerParent,
        prepared: PreparedGraph,
        candidate: Candidate,
        settings: JudgeSettings,
        fence: Path | None = None,
        op_counter: Path | None = None,
    ) -> None:
        self.prepared = prepared
        self.device = settings.device
        self.matches: tuple[messages.MissText, ...] = ()
        self.forms: tuple[messages.OutputForm, ...] = ()
        self.load_s = 0.0
        self.first_call_s = 0.0
        self.call_s = 0.0
        """Seconds of its last call, by the judge's clock."""
        self.candidate = candidate
        self._settings = settings
        self._fence = fence
        self._op_counter = op_counter
        self.op_budget = None if op_counter is None else OpBudget()
        self._output_memory: SharedMemory | None = None
        self._num_calls = 0
        self._places: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
        num_bytes = prepared.content.nbytes
        self._memory = SharedMemory(INPUT_MEMORY, num_bytes)
        self._content = self._memory.array("uint8", prepared.content.shape, 0)
        self._before = prepared.content
        is_cpu = kind_of(settings.device) == "cpu"
        if candidate.kind in INDUCTOR_KINDS and is_cpu:
            parent.warm_inductor()
        limits = msgspec.structs.replace(
            settings.limits,
            memory_mib=settings.limits.memory_mib + (num_bytes >> 20),
            is_address_space_bound=is_cpu,
        )
        self.worker: Worker = parent.fork(limits)

    def __enter__(self) -> LoadedWorker:
        self._content[...] = self.prepared.content
        request = messages.Load(
            self.prepared.text,
            self.prepared.layouts,
            self.prepared.content.nbytes,
            self.candidate.kind,
            self.candidate.passes,
            self.candidate.call,
            self.candidate.residual,
            self.device,
            self._settings.limits.memory_mib,
            None if self._fence is None else str(self._fence),
            None if self._op_counter is None else str(self._op_counter),
        )
        timeout_s = self._settings.compile_timeout_s
        self.worker.allow(timeout_s)  # of which the first call has what remains
        try:
            fds = (self._memory.fd, *([self.op_budget.memory.fd] if self.op_budget else []))
            reply = self.worker.ask(request, messages.Loaded, timeout_s, fds)
        except BaseException:
            self.close()
            raise
        self.load_s = reply.seconds
        if self.op_budget is not None:
            self.op_budget.ops_per_call = reply.ops_per_call
        self.note_calls(0)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker, and free the memory shared with it."""
        self.worker.close(is_awaited=False)
        self._memory.close()
        if self._output_memory is not None:
            self._output_memory.close()
        if self.op_budget is not None:
            self.op_budget.memory.close()

    def note_calls(self, num_calls: int | None) -> None:
        """Note that it has made so many calls, or with None what may compute anything."""
        if self.op_budget is not None:
            self.op_budget.note(num_calls)

    def _parts(self, input_set: int) -> dict[int, slice]:
        parts = {}
        for index, layout in enumerate(self.prepared.layouts):
            if layout.offsets:
                start = layout.offsets[input_set]
                num_bytes = self._memory.array(layout.dtype, layout.shape, 0).nbytes
                parts[index] = slice(start, start + num_bytes)
        return parts

    def memory_of(self, input_set: int) -> list[Array | None]:
        """Return the memory of the arguments of a set, flat; None unless a tensor."""
        return [
            self._memory.array(layout.dtype, layout.shape, layout.offsets[input_set]).reshape(-1)
            if layout.offsets
            else None
            for layout in self.prepared.layouts
        ]

    def write(self, input_set: int, values: Sequence[InputValue]) -> None:
        """Write other values into the arguments of a set, until it is restored."""
        self._before = self._before.copy()
        for index, part in self._parts(input_set).items():
            flat = np.ascontiguousarray(values[index]).reshape(-1).view(np.uint8)
            self._content[part] = self._before[part] = flat

    def restore(self, input_set: int) -> None:
        """Restore the arguments of a set."""
        self._before = self.prepared.content
        for part in self._parts(input_set).values():
            self._content[part] = self.prepared.content[part]

    def run(self, input_set: int, seed: int = 0) -> tuple[messages.OutputForm, ...]:
        """Call once on a set and return the form of the outputs, or raise WorkerFailureError."""
        timeout_s = self._settings.call_timeout_s
        if self._num_calls == 0:
            timeout_s = self._settings.compile_timeout_s
        elapsed_s = self.worker.stopwatch()
        reply = self.worker.ask(messages.Run(input_set, seed), messages.Ran, timeout_s)
        self.call_s = elapsed_s()
        is_compiling = self._num_calls == 0 and self.candidate.residual != "eager"
        self.note_calls(None if is_compiling else 1)
        if self._num_calls == 0:
            self.first_call_s = reply.seconds
            self.worker.allow(self._settings.trial_timeout_s)
        self._num_calls += 1
        counts = (len(reply.outputs), len(self.prepared.layouts))
        if (len(reply.outputs_at), len(reply.arguments_at)) != counts:
            text = "the worker does not give the addresses of all outputs and arguments"
            raise self.worker.end_for("crash", "Protocol", text)
        self._places = (reply.outputs_at, reply.arguments_at)
        self.matches = reply.matches
        self.forms = reply.outputs
        return reply.outputs

    def exact(self, input_set: int, is_counted: bool = False) -> Float64Result | None:
        """Return a reference's outputs in float64; None where an op does not work in it."""
        try:
            reply = self.worker.ask(
                messages.Run(input_set, exact=True, counted=is_counted),
                messages.Ran,
                self._settings.call_timeout_s,
            )
            return Float64Result(self._fetched(reply.outputs), reply.work)
        except WorkerFailureError as failure:
            if failure.status in ("crash", "timeout"):
                raise
            return None

    def profile(self, num_calls: int) -> messages.Profiled | None:
        """Return the GPU activity in a call by the worker's account; None where it cannot tell."""
        try:
            return self.worker.ask(
                messages.Profile(num_calls), messages.Profiled, self._settings.compile_timeout_s
            )
        except WorkerFailureError:
            return None

    def outcome(self, forms: tuple[messages.OutputForm, ...], input_set: int) -> CallOutcome:
        """Return copies of the last outputs' values and of the changed arguments."""
        outputs, changed = self._fetched(forms), {}
        parts = self._parts(input_set)
        for index, part in parts.items():
            if not np.array_equal(self._content[part], self._before[part]):
                layout = self.prepared.layouts[index]
                values = self._memory.array(layout.dtype, layout.shape, part.start)
                changed[index] = values.copy()
        outputs_at, arguments_at = self._places
        spans = {
            index: range(arguments_at[index], arguments_at[index] + part.stop - part.start)
            for index, part in parts.items()
        }
        return CallOutcome(forms, outputs, changed, outputs_at, spans)

    def _fetched(self, forms: tuple[messages.OutputForm, ...]) -> tuple[Array | None, ...]:
        offsets, num_bytes = output_offsets(forms)
        if num_bytes > MAX_OUTPUT_BYTES:
            raise WorkerFailureError("out_of_memory", "TooLarge", f"outputs of {num_bytes} bytes")
        if self._output_memory is None or self._output_memory.num_bytes < num_bytes:
            if self._output_memory is not None:
                self._output_memory.close()
            self._output_memory = SharedMemory("passnet-outputs", num_bytes)
        memory = self._output_memory
        request = messages.Fetch(memory.num_bytes)
        self.worker.ask(request, messages.Fetched, self._settings.call_timeout_s, (memory.fd,))
        return tuple(
            None if offset is None else memory.array(form.dtype, form.shape, offset).copy()
            for form, offset in zip(forms, offsets, strict=True)
        )


def output_offsets(forms: Sequence[messages.OutputForm]) -> tuple[list[int | None], int]:
    """Return the offset of the copy of each output (None unless a tensor), and the bytes of all."""
    position = 0
    offsets: list[int | None] = [None] * len(forms)
    for index, form in enumerate(forms):
        if form.kind == "tensor":
            offsets[index] = position
            position = aligned(position + form.num_bytes)
    return offsets, position


class PreparedGraphs:
    """A cache of prepared graphs, which keeps the first ones while there is room.

    Graphs are judged in turn, so any evicted graph would be the next one needed. `max_bytes` is the
    memory of all, twice the memory that workers see.
    """

    def __init__(self, max_bytes: int = 0) -> None:
        self._free_bytes = max_bytes
        self._cached: dict[tuple[str, int, int], tuple[Graph, PreparedGraph]] = {}
        self._lock = threading.Lock()

    def get(
        self, graph: Graph, device: str, seed: int, make: Callable[[], PreparedGraph]
    ) -> PreparedGraph:
        """Return a graph prepared for a device and a seed: cached, or made by `make`."""
        key = (device, seed, id(graph))  # a cached graph keeps its id
        if key in self._cached:
            return self._cached[key][1]
        prepared = make()
        with self._lock:
            num_bytes = 2 * prepared.content.nbytes
            if num_bytes <= self._free_bytes and key not in self._cached:
                self._free_bytes -= num_bytes
                self._cached[key] = (graph, prepared)
        return prepared
