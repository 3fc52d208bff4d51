"""What runs in a worker process: the graph under one candidate, called when the judge says so.

Candidate code runs here. Nothing that this process says is evidence: its outputs are compared, and
its time is taken, by the judge.
"""

import gc
import mmap
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from passnet.errors import PassError, PassFolderError
from passnet.graph.build import build
from passnet.graph.parse import parse_program
from passnet.judge.protocol.channel import Channel, ChannelClosedError
from passnet.judge.protocol.messages import (
    Arm,
    Armed,
    CheckMatches,
    Disarmed,
    Failed,
    Fetch,
    Fetched,
    Load,
    Loaded,
    MatchesChecked,
    MissText,
    Observed,
    OutputForm,
    Profile,
    Profiled,
    Ran,
    Request,
    Run,
)
from passnet.judge.protocol.shared_memory import ControlPage
from passnet.judge.worker.arguments import WorkerArguments, copy_out, pin, place_arguments
from passnet.judge.worker.float64 import run_exact
from passnet.passes.backend import compile_with_inductor, passnet_backend
from passnet.passes.folder import inspect_folder
from passnet.passes.load import load_passes
from passnet.passes.op_observer import Observer
from passnet.passes.rewrite import PassReport, apply_passes
from passnet.records.dtypes import STORAGE

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
    broken = (PassError, PassFolderError)
    unready = next((error for error in chain if isinstance(error, broken)), None)
    text = str(cause).strip()
    if any(_is_memory(error) for error in chain):
        status = "out_of_memory"
    elif unready is not None:
        status, text = "compile_error", str(unready).strip()
    elif type(cause).__module__.startswith("torch._dynamo"):
        status = "compile_error"
    else:
        status = "runtime_error"
    return Failed(status, type(cause).__name__, text[:MAX_ERROR_CHARACTERS])


def _is_memory(cause: BaseException) -> bool:
    return isinstance(cause, (MemoryError, torch.OutOfMemoryError)) or any(
        text in str(cause) for text in ("can't allocate memory", "Cannot allocate memory")
    )


class _Worker:
    """The state of one worker: the callable, its inputs, its last outputs."""

    def __init__(self) -> None:
        self._call: Callable[..., Any] | None = None
        self._placement: WorkerArguments | None = None
        self._outputs: Any = ()
        self._nothing: tuple[Any, ...] = ()  # what an empty bracket "returns"
        self._matches: tuple[MissText, ...] = ()
        self._control: ControlPage | None = None
        self._delivery: mmap.mmap | None = None
        self._observer = Observer()

    def answer(self, request: Any, fds: list[int], channel: Channel) -> Any:
        if isinstance(request, Load):
            return self._load(request, fds)
        if isinstance(request, Run):
            return self._run(request)
        if isinstance(request, Fetch):
            copy_out(_as_tuple(self._outputs), _map(fds[0], request.num_bytes))
            return Fetched()
        if isinstance(request, CheckMatches):
            return _check_matches(request)
        if isinstance(request, Profile):
            return self._profile(request.num_calls)
        assert isinstance(request, Arm), "the judge sends requests only"
        return self._watch(request.observed, fds, channel)

    def _load(self, request: Load, fds: list[int]) -> Loaded:
        start = time.perf_counter()
        memory = _map(fds[0], request.num_bytes)
        if request.device.startswith("cuda"):
            _get_ready_for_cuda(request.device_mib)
        self._placement = place_arguments(request.inputs, memory, request.num_bytes, request.device)
        module = build(parse_program(request.program))
        self._call = self._ready(module, request, self._placement.give(0))
        return Loaded(time.perf_counter() - start, self._placement.addresses())

    def _ready(
        self, module: torch.fx.GraphModule, request: Load, arguments: list[Any]
    ) -> Callable[..., Any]:
        if request.kind == "eager":
            return module.forward
        # The method and not the module is compiled: the layers that torch.compile puts around a
        # module cost another 10 microseconds a call.
        if request.kind == "inductor":
            if request.call == "compiled":
                return torch.compile(module.forward, dynamic=False)
            return compile_with_inductor(module, arguments)
        options = {
            "passes": request.passes,
            "residual": request.residual,
            "report": self._note,
            "observer": self._observer,
        }
        backend = partial(passnet_backend, options=options)
        if request.call == "compiled":
            return torch.compile(module.forward, backend=backend, dynamic=False)
        return backend(module, arguments)

    def _note(self, reports: list[PassReport]) -> None:
        self._matches += _match_texts(reports)

    def _run(self, request: Run) -> Ran:
        placement = self._placement
        assert self._call is not None and placement is not None, "the judge loads before it runs"
        torch.manual_seed(request.seed)
        self._outputs = ()
        arguments, flops = placement.give(request.input_set), 0
        start = time.perf_counter()
        if request.exact:
            self._outputs, flops = run_exact(self._call, arguments)
        else:
            self._outputs = self._call(*arguments)
        if placement.wait is not None:
            placement.wait()
        seconds = time.perf_counter() - start
        placement.settle(request.input_set)
        forms = tuple(_form(output) for output in _as_tuple(self._outputs))
        return Ran(forms, self._matches, seconds, flops)

    def _profile(self, num_calls: int) -> Profiled:
        call, placement = self._call, self._placement
        assert call is not None and placement is not None, "profiled before it was loaded"
        arguments = placement.give(-1)
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(num_calls):
            call(*arguments)
        stop.record()
        stop.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(num_calls):
                call(*arguments)
            torch.cuda.synchronize()
        times_us = [
            event.device_time
            for event in profile.events() or ()
            if event.device_type == torch.autograd.DeviceType.CUDA
        ]
        return Profiled(
            start.elapsed_time(stop) / num_calls,
            sum(times_us) / 1e3 / num_calls,
            len(times_us) / num_calls,
        )

    def _watch(self, observed: frozenset[int], fds: list[int], channel: Channel) -> Disarmed:
        """Call the graph as the control page says, until it says stop.

        Between calls this spins, so that no system call lies between the judge's clock and the
        work. The arguments are those of the last set, whose values the judge writes anew before
        every call.
        """
        if fds:
            self._control = ControlPage(_map(fds[0], mmap.PAGESIZE))
        if len(fds) > 1:
            self._delivery = _map(fds[1], os.fstat(fds[1]).st_size)
            if self._placement is not None and self._placement.wait is not None:
                pin(self._delivery)
        placement = self._placement
        assert self._control is not None, "armed without a page"
        assert self._call is not None and placement is not None, "armed before it was loaded"
        words, call, args = self._control.words, self._call, placement.give(-1)
        go, done_word, free, ready, command, keep, first = (
            ControlPage.GO, ControlPage.DONE, ControlPage.FREE, ControlPage.READY,
            ControlPage.COMMAND, ControlPage.KEEP, ControlPage.OUTPUTS,
        )  # fmt: skip
        warm, wait, delivery = placement.warm, placement.wait, self._delivery
        self._nothing = tuple(self._outputs) or self._nothing
        self._outputs = outputs = held = ()
        self._observer.observations.clear()
        last_go, number = words[go], 0
        gc.collect()
        gc.freeze()  # the next turn need not look at what lives now
        gc.disable()
        channel.send(Armed())
        try:
            while True:
                while words[go] == last_go:
                    pass
                last_go = words[go]
                order = words[command]
                if order == ControlPage.WARM:
                    warm()
                    words[done_word] = last_go
                    continue
                if order == ControlPage.BURST:
                    for _ in range(words[ControlPage.COUNT]):
                        outputs = call(*args)
                    if wait is not None:
                        wait()
                    words[done_word] = last_go
                    outputs = ()
                    continue
                if order == ControlPage.STOP:
                    words[done_word] = last_go
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
                if wait is not None:
                    wait()
                spot = first
                for output in outputs:
                    words[spot] = output.data_ptr() if isinstance(output, torch.Tensor) else 0
                    spot += 1
                words[done_word] = last_go
                while words[free] != last_go:
                    if words[go] != last_go:  # to be delivered, while they are held
                        last_go = words[go]
                        assert delivery is not None, "there is nowhere to deliver to"
                        late = words[command] == ControlPage.DELIVER_HELD
                        copy_out(held if late else outputs, delivery)
                        if words[command] == ControlPage.DELIVER_ALL:
                            placement.settle(-1)
                        words[done_word] = last_go
                held, outputs = (outputs if words[keep] else ()), ()
                words[ready] = last_go
        finally:
            gc.enable()

    def _observed(self) -> tuple[Observed, ...]:
        return tuple(
            Observed(name, tuple(observation.ops), observation.same_as_pattern)
            for name, observation in self._observer.observations.items()
        )


def _check_matches(request: CheckMatches) -> MatchesChecked:
    passes = load_passes(inspect_folder(Path(request.passes)))
    reports, _ = apply_passes(build(parse_program(request.program)), passes)
    return MatchesChecked(_match_texts(reports))


def _match_texts(reports: Sequence[PassReport]) -> tuple[MissText, ...]:
    return tuple(
        MissText(report.name, report.num_matches, report.miss.sentence() if report.miss else None)
        for report in reports
    )


def _map(fd: int, num_bytes: int) -> mmap.mmap:
    memory = mmap.mmap(fd, max(num_bytes, 1))
    os.close(fd)
    return memory


def _get_ready_for_cuda(device_mib: int) -> None:
    """Make this process's CUDA context, and bound what torch may allocate in it."""
    torch.cuda.init()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, device_mib * 2**20 / total))


def _as_tuple(outputs: Any) -> Sequence[Any]:
    return outputs if isinstance(outputs, (tuple, list)) else (outputs,)


def _form(output: Any) -> OutputForm:
    is_plain = type(output) in (torch.Tensor, torch.nn.Parameter)
    if is_plain and output.layout is torch.strided:
        dtype = str(output.dtype).removeprefix("torch.")
        if dtype not in STORAGE:
            return OutputForm("other", dtype=f"{dtype} tensor")
        return OutputForm(
            "tensor",
            dtype,
            tuple(output.shape),
            tuple(output.stride()),
            device=output.device.type,
        )
    if isinstance(output, (bool, int, float)):
        return OutputForm("number", dtype=type(output).__name__, number=repr(output))
    return OutputForm("other", dtype=type(output).__name__)
