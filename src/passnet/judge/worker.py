"""What runs in a worker process: the graph under one candidate, called when the judge says so.

Candidate code runs here. Nothing that this process says is evidence: its outputs are compared, and
its time is taken, by the judge.
"""

from __future__ import annotations

import gc
import mmap
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from passnet.errors import PassError, PassFolderError
from passnet.graph.build import build
from passnet.graph.parse import parse_program
from passnet.judge.channel import Channel, ChannelClosedError
from passnet.judge.exact import run_exact
from passnet.judge.memory import ControlPage, aligned
from passnet.judge.messages import (
    Arm,
    Armed,
    Disarmed,
    Failed,
    Fetch,
    Fetched,
    InputLayout,
    Load,
    Loaded,
    Look,
    Looked,
    MissText,
    Observed,
    OutputForm,
    Ran,
    Request,
    Run,
)
from passnet.passes.backend import compile_with_inductor, passnet_backend
from passnet.passes.folder import inspect_folder
from passnet.passes.load import load_passes
from passnet.passes.observe import Observer
from passnet.passes.rewrite import PassReport, apply_passes

MAX_ERROR_CHARACTERS = 2000
SWITCH_INTERVAL_S = 0.0005
"""How long another Python thread waits for its turn at most: one that works on after its call has
ended is to be seen at it while the judge looks."""


def serve(channel: Channel) -> None:
    """Answer the judge until it hangs up."""
    worker = _Worker()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with torch.no_grad():
        while True:
            try:
                request, fds = channel.receive(Request)
            except ChannelClosedError:
                return
            try:
                reply = worker.answer(request, fds, channel)
            except Exception as cause:  # noqa: BLE001 (top loop: any failure is an answer)
                reply = _failure(cause)
            try:
                channel.send(reply)
            except ChannelClosedError:
                return


def _failure(cause: Exception) -> Failed:
    chain = [cause]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) and inner not in chain:
        if not isinstance(inner, Exception):
            break
        chain.append(inner)
    text = str(cause).strip()
    broken = (PassError, PassFolderError)
    unready = next((item for item in chain if isinstance(item, broken)), None)
    if any(_is_memory(item) for item in chain):
        status = "out_of_memory"
    elif unready is not None:
        status = "compile_error"
        text = str(unready).strip()
    elif type(cause).__module__.startswith("torch._dynamo"):
        status = "compile_error"
    else:
        status = "runtime_error"
    return Failed(status, type(cause).__name__, text[:MAX_ERROR_CHARACTERS])


def _is_memory(cause: BaseException) -> bool:
    text = str(cause)
    return (
        isinstance(cause, (MemoryError, torch.OutOfMemoryError))
        or "can't allocate memory" in text
        or "Cannot allocate memory" in text
    )


class _Worker:
    """The state of one worker: the callable, its inputs, its last outputs."""

    def __init__(self) -> None:
        self._call: Callable[..., Any] | None = None
        self._args: list[list[Any]] = []
        self._outputs: Any = ()
        self._nothing: tuple[Any, ...] = ()  # what an empty bracket "returns"
        self._matches: tuple[MissText, ...] = ()
        self._control: ControlPage | None = None
        self._timed_inputs = np.empty(0, np.uint64)
        self._observer = Observer()

    def answer(self, request: Any, fds: list[int], channel: Channel) -> Any:
        if isinstance(request, Load):
            return self._load(request, fds)
        if isinstance(request, Run):
            return self._run(request)
        if isinstance(request, Fetch):
            return self._fetch(request, fds)
        if isinstance(request, Look):
            return _look(request)
        assert isinstance(request, Arm), "the judge sends requests only"
        return self._watch(request.observed, fds, channel)

    def _load(self, request: Load, fds: list[int]) -> Loaded:
        start = time.perf_counter()
        memory = _map(fds[0], request.num_bytes)
        num_sets = max([len(item.offsets) for item in request.inputs], default=1) or 1
        self._args = [
            [_argument(item, memory, number) for item in request.inputs]
            for number in range(num_sets)
        ]
        first = min([item.offsets[-1] for item in request.inputs if item.offsets], default=0)
        self._timed_inputs = np.frombuffer(
            memory, np.uint64, (request.num_bytes - first) // 8, first
        )
        module = build(parse_program(request.program))
        self._call = self._ready(module, request)
        return Loaded(time.perf_counter() - start)

    def _ready(self, module: torch.fx.GraphModule, request: Load) -> Callable[..., Any]:
        if request.kind == "eager":
            return module.forward
        # The method and not the module is compiled: the layers that torch.compile puts around a
        # module cost another 10 microseconds a call.
        if request.kind == "inductor":
            if request.call == "compiled":
                return torch.compile(module.forward, dynamic=False)
            return compile_with_inductor(module, self._args[0])
        options = {
            "passes": request.passes,
            "residual": request.residual,
            "report": self._note,
            "observer": self._observer,
        }
        backend = partial(passnet_backend, options=options)
        if request.call == "compiled":
            return torch.compile(module.forward, backend=backend, dynamic=False)
        return backend(module, self._args[0])

    def _note(self, reports: list[PassReport]) -> None:
        self._matches += _match_texts(reports)

    def _run(self, request: Run) -> Ran:
        assert self._call is not None, "the judge loads before it runs"
        torch.manual_seed(request.seed)
        self._outputs = ()
        arguments, flops = self._args[request.input_set], 0
        start = time.perf_counter()
        if request.exact:
            self._outputs, flops = run_exact(self._call, arguments)
        else:
            self._outputs = self._call(*arguments)
        seconds = time.perf_counter() - start
        return Ran(_forms(self._outputs), self._matches, seconds, flops)

    def _fetch(self, request: Fetch, fds: list[int]) -> Fetched:
        memory = _map(fds[0], request.num_bytes)
        position = 0
        for item in self._outputs:
            if isinstance(item, torch.Tensor):
                if item.numel():
                    target = torch.frombuffer(
                        memory, dtype=item.dtype, count=item.numel(), offset=position
                    )
                    target.view(item.shape).copy_(item)
                position = aligned(position + item.numel() * item.element_size())
        return Fetched()

    def _watch(self, observed: frozenset[int], fds: list[int], channel: Channel) -> Disarmed:
        """Call the graph as the control page says, until it says stop.

        Between calls this spins, so that no system call lies between the judge's clock and the
        work. The arguments are those of the last set, whose values the judge writes anew before
        every call.
        """
        if fds:
            self._control = ControlPage(_map(fds[0], mmap.PAGESIZE))
        assert self._control is not None and self._call is not None, "armed before it was loaded"
        words, call, args = self._control.words, self._call, self._args[-1]
        go, done, free, ready, command, keep, first = (
            ControlPage.GO, ControlPage.DONE, ControlPage.FREE, ControlPage.READY,
            ControlPage.COMMAND, ControlPage.KEEP, ControlPage.OUTPUTS,
        )  # fmt: skip
        inputs, read = self._timed_inputs, np.bitwise_xor.reduce
        self._nothing = tuple(self._outputs) or self._nothing
        self._outputs = outputs = held = ()
        self._observer.seen.clear()
        seen, number = words[go], 0
        gc.collect()
        gc.freeze()  # the next turn need not look at what lives now
        gc.disable()
        channel.send(Armed())
        try:
            while True:
                while words[go] == seen:
                    pass
                seen = words[go]
                order = words[command]
                if order == ControlPage.WARM:
                    read(inputs)
                    words[done] = seen
                    continue
                if order == ControlPage.STOP:
                    words[done] = seen
                    del held
                    return Disarmed(self._observed())
                if order == ControlPage.NOTHING:
                    outputs = self._nothing
                else:
                    if number in observed:
                        with self._observer.watching():
                            outputs = call(*args)
                    else:
                        outputs = call(*args)
                    number += 1
                place = first
                for item in outputs:
                    words[place] = item.data_ptr() if isinstance(item, torch.Tensor) else 0
                    place += 1
                words[done] = seen
                while words[free] != seen:
                    pass
                held, outputs = (outputs if words[keep] else ()), ()
                words[ready] = seen
        finally:
            gc.enable()

    def _observed(self) -> tuple[Observed, ...]:
        return tuple(
            Observed(name, tuple(item.ops), item.same_as_pattern)
            for name, item in self._observer.seen.items()
        )


def _look(request: Look) -> Looked:
    passes = load_passes(inspect_folder(Path(request.passes)))
    reports, _ = apply_passes(build(parse_program(request.program)), passes)
    return Looked(_match_texts(reports))


def _match_texts(reports: Sequence[PassReport]) -> tuple[MissText, ...]:
    return tuple(
        MissText(item.name, item.num_matches, item.miss.sentence() if item.miss else None)
        for item in reports
    )


def _map(fd: int, num_bytes: int) -> mmap.mmap:
    memory = mmap.mmap(fd, max(num_bytes, 1))
    os.close(fd)
    return memory


def _argument(layout: InputLayout, memory: mmap.mmap, number: int) -> Any:
    if layout.number is not None:
        return layout.number
    dtype = getattr(torch, layout.dtype)
    count = 1
    for size in layout.shape:
        count *= size
    if count == 0:
        return torch.empty(layout.shape, dtype=dtype)
    flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=layout.offsets[number])
    return flat.view(layout.shape)


def _forms(outputs: Any) -> tuple[OutputForm, ...]:
    items: Sequence[Any] = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    return tuple(_form(item) for item in items)


def _form(item: Any) -> OutputForm:
    if type(item) in (torch.Tensor, torch.nn.Parameter) and item.layout is torch.strided:
        return OutputForm(
            "tensor",
            str(item.dtype).removeprefix("torch."),
            tuple(item.shape),
            tuple(item.stride()),
        )
    if isinstance(item, (bool, int, float)):
        return OutputForm("number", dtype=type(item).__name__, number=repr(item))
    return OutputForm("other", dtype=type(item).__name__)
