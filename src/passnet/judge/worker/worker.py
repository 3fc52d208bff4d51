"""The process of a worker: the graph under one candidate, called when the judge says so.

Candidate code runs here. Nothing that this process says is evidence.
"""

import errno
import gc
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from passnet.core.records.dtypes import STORAGE
from passnet.core.records.serialise import read_json
from passnet.errors import (
    BackendError,
    GraphError,
    PassError,
    PassFolderError,
    missing_for_kernels,
    os_error_sentence,
)
from passnet.graph.fx.build import build
from passnet.graph.text.parse import parse_program
from passnet.graph.values.fake import fake_input, fake_mode
from passnet.inductor.compiler import compile_with_inductor, is_dynamo_error
from passnet.judge.candidate import LOADER_FILE
from passnet.judge.protocol import messages
from passnet.judge.protocol.channel import Channel, ChannelClosedError
from passnet.judge.protocol.messages import OVERHEADS, OverheadName
from passnet.judge.protocol.shared_memory import ControlPage
from passnet.judge.worker.aoti_package import packaged
from passnet.judge.worker.arguments import (
    FencedArguments,
    WorkerArguments,
    copy_out,
    place_arguments,
)
from passnet.judge.worker.float64 import run_exact
from passnet.judge.worker.heap import fill_gaps
from passnet.judge.worker.op_counter import OpCounter, ops_outside
from passnet.judge.worker.work import count_work
from passnet.passes.apply.guarded_call import guarded_call
from passnet.passes.apply.op_observer import Observer
from passnet.passes.apply.rewrite import PassReport, apply_passes
from passnet.passes.backend import passnet_backend
from passnet.passes.folder import inspect_folder
from passnet.passes.load import load_passes
from passnet.passes.match.guards import ValuesNeededError, note_inputs

MAX_COUNTED_S = 1.0
"""Longest exact call whose work is counted, which takes some times as long."""
MAX_ERROR_CHARACTERS = 2000
SWITCH_INTERVAL_S = 0.0005
"""Longest wait of another Python thread for its turn: work after a call is seen in an idle run."""
INDUCTOR_SETTINGS: dict[str, dict[str, Any] | None] = {
    "inductor": None,
    "inductor-precise": {"emulate_precision_casts": True},
}
"""Options for Inductor by kind of candidate; None is its default."""


def serve(channel: Channel) -> None:
    """Answer the judge until it hangs up."""
    worker = _Worker()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    worker.stand_still()  # before any candidate code: the judge sees where a worker stops
    with torch.no_grad():
        while True:
            try:
                request, fds = channel.receive(messages.Request)
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


def _failure(cause: Exception) -> messages.Failed:
    chain = [cause]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) and inner not in chain:
        if not isinstance(inner, Exception):
            break
        chain.append(inner)
    broken = (PassError, PassFolderError, BackendError)
    unready = next((error for error in chain if isinstance(error, broken)), None)
    lacking = next(filter(None, map(missing_for_kernels, reversed(chain))), None)
    text = _disk_sentence(chain) or lacking or str(cause).strip()
    if any(_is_memory(error) for error in chain):
        status = "out_of_memory"
    elif unready is not None:
        status, text = "compile_error", str(unready).strip()
    elif is_dynamo_error(cause):
        status = "compile_error"
    else:
        status = "runtime_error"
    return messages.Failed(status, type(cause).__name__, text[:MAX_ERROR_CHARACTERS])


def _disk_sentence(chain: Sequence[Exception]) -> str | None:
    """Return a sentence for an error from a full disk, which torch.compile's own errors hide."""
    for error in chain:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            is_cache = any(type(cause).__module__.startswith("torch.") for cause in chain)
            if error.filename is None and is_cache:
                error.filename = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
            return os_error_sentence(error)
    return None


def _is_memory(cause: BaseException) -> bool:
    return isinstance(cause, (MemoryError, torch.OutOfMemoryError)) or any(
        text in str(cause) for text in ("can't allocate memory", "Cannot allocate memory")
    )


class _Worker:
    def __init__(self) -> None:
        self._call: Callable[..., Any] | None = None
        self._placement: WorkerArguments | None = None
        self._outputs: Any = ()
        self._text = ""
        self._matches: tuple[messages.MissText, ...] = ()
        self._observer = Observer()
        # The interpreter calls a partial in the same way at every count of calls, so the stack is
        # the same at every stop.
        self.stand_still = partial(os.kill, os.getpid(), signal.SIGSTOP)

    def answer(self, request: Any, fds: list[int], channel: Channel) -> Any:
        if isinstance(request, messages.Load):
            return self._load(request, fds)
        if isinstance(request, messages.Run):
            return self._run(request)
        if isinstance(request, messages.Fetch):
            copy_out(_as_tuple(self._outputs), _map(fds[0], request.num_bytes))
            return messages.Fetched()
        if isinstance(request, messages.CheckMatches):
            return _check_matches(request)
        if isinstance(request, messages.Profile):
            return self._profile(request.num_calls)
        assert isinstance(request, messages.Arm), "the judge sends requests only"
        return self._take_orders(request, fds, channel)

    def _load(self, request: messages.Load, fds: list[int]) -> messages.Loaded:
        start = time.perf_counter()
        memory = _map(fds[0], request.num_bytes)
        if request.device.startswith("cuda"):
            _get_ready_for_cuda(request.device_mib)
        self._placement = place_arguments(request.inputs, memory, request.device, request.fence)
        self._text = request.program
        program, arguments = parse_program(request.program), self._placement.give(0)
        num_ops = 0
        if request.op_counter is not None and request.passes is not None:
            counter = OpCounter(request.op_counter, fds[1])
            num_ops = ops_outside(counter, build(program), arguments, request.passes)
        self._call = self._ready(build(program), request, arguments)
        if request.call == "guarded":
            self._call = guarded_call(build(program), self._call, arguments)
        return messages.Loaded(time.perf_counter() - start, num_ops)

    def _ready(
        self, module: torch.fx.GraphModule, request: messages.Load, arguments: list[Any]
    ) -> Callable[..., Any]:
        if request.kind == "eager":
            return module.forward
        # The method and not the module is compiled: the layers that torch.compile puts around a
        # module cost another 10 microseconds a call.
        if request.kind in INDUCTOR_SETTINGS:
            settings = INDUCTOR_SETTINGS[request.kind]
            if request.call == "compiled":
                return torch.compile(module.forward, dynamic=False, options=settings)
            return compile_with_inductor(module, arguments, settings)
        if request.kind == "module":
            return _loaded_module(Path(str(request.passes)), arguments)
        if request.kind == "aoti":
            return packaged(module, request.program, arguments, request.call == "compiled")
        options = {
            "passes": request.passes,
            "residual": request.residual,
            "report": self._note,
            "observer": self._observer,
            "is_judged": True,
        }
        backend = partial(passnet_backend, options=options)
        if request.call == "compiled":
            return torch.compile(module.forward, backend=backend, dynamic=False)
        return backend(module, arguments)

    def _note(self, reports: list[PassReport]) -> None:
        self._matches += _match_texts(reports)

    def _run(self, request: messages.Run) -> messages.Ran:
        placement = self._placement
        assert self._call is not None and placement is not None, "the judge loads before it runs"
        torch.manual_seed(request.seed)
        self._outputs = ()
        arguments, work = placement.give(request.input_set), (0, 0, 0)
        start = time.perf_counter()
        if request.exact:
            self._outputs = run_exact(self._call, arguments)
        else:
            self._outputs = self._call(*arguments)
        if placement.wait is not None:
            placement.wait()
        seconds = time.perf_counter() - start
        if request.counted and seconds < MAX_COUNTED_S:
            work = count_work(self._call, arguments)
        placement.settle(request.input_set)
        forms = tuple(_form(output) for output in _as_tuple(self._outputs))
        addresses = (_addresses(_as_tuple(self._outputs)), _addresses(arguments))
        return messages.Ran(forms, self._matches, seconds, *addresses, work)

    def _profile(self, num_calls: int) -> messages.Profiled:
        call, placement = self._call, self._placement
        assert call is not None and placement is not None, "profiled before it was loaded"
        arguments = placement.give(0)
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
        return messages.Profiled(
            start.elapsed_time(stop) / num_calls,
            sum(times_us) / 1e3 / num_calls,
            len(times_us) / num_calls,
        )

    def _take_orders(
        self, request: messages.Arm, fds: list[int], channel: Channel
    ) -> messages.Disarmed:
        """Obey the control page, and stand still between orders, until one says to leave."""
        placement = self._placement
        assert self._call is not None and placement is not None, "armed before it was loaded"
        assert not isinstance(placement, FencedArguments), "a fenced worker is not timed"
        page, slot_memory, *more = (
            _map(fd, num_bytes) for fd, num_bytes in zip(fds, request.num_bytes, strict=True)
        )
        delivery = more[0] if more else None
        addresses = placement.place_slots(request.slots, slot_memory, delivery)
        words, call, slots = ControlPage(page).words, self._call, placement.slots
        wait, stand_still, sleep = placement.wait, self.stand_still, time.sleep
        usual, self._outputs = tuple(_as_tuple(self._outputs)), ()
        results: list[Any] = []
        held: list[Any] = []
        idle_calls = {OVERHEADS.index(way): self._idle_call(way) for way in request.overheads}
        aside: list[torch.Tensor] = []
        self._observer.observations.clear()
        gc.collect()
        fill_gaps()
        gc.freeze()  # present objects need no further collection
        gc.disable()
        channel.send(messages.Armed(addresses))
        try:
            while True:
                stand_still()  # until the judge lets it go
                order, count = words[ControlPage.ORDER], words[ControlPage.COUNT]
                match order:
                    case ControlPage.CALL:
                        results = [call(*slots[number]) for number in range(count)]
                    case ControlPage.EMPTY:
                        results = [usual for number in range(count)]
                    case ControlPage.OVERHEAD:
                        idle_call = idle_calls[words[ControlPage.ASIDE]]
                        results = [idle_call(*slots[number]) for number in range(count)]
                    case ControlPage.HOLD:
                        held.append(results)
                        results = []
                    case ControlPage.FREE:
                        results = []
                    case ControlPage.UP:
                        placement.bring_up(count)
                    case ControlPage.REPEAT:
                        for _ in range(count):
                            results = [call(*slots[0])]
                    case ControlPage.OBSERVE:
                        with self._observer.watching():
                            results = [call(*slots[0])]
                    case ControlPage.WARM:
                        aside.clear()
                        aside.append(torch.empty(words[ControlPage.ASIDE], dtype=torch.uint8))
                        results = [call(*slots[number]) for number in range(count)]
                        results = []
                    case ControlPage.IDLE:
                        sleep(count / 1e3)  # code that is not done yet can be seen at work
                    case ControlPage.LEAVE:
                        words[ControlPage.DONE] = words[ControlPage.GO]
                        return messages.Disarmed(self._observed())
                    case _:
                        assert delivery is not None, "there is nowhere to deliver to"
                        calls = words[ControlPage.OUTPUTS : ControlPage.OUTPUTS + count].tolist()
                        copy_out(
                            [output for number in calls for output in results[number]], delivery
                        )
                        if order == ControlPage.DOWN_ALL:
                            for number in calls:
                                placement.settle_slot(number)
                        words[ControlPage.DONE] = words[ControlPage.GO]
                        continue
                if wait is not None:
                    wait()
                spot = ControlPage.OUTPUTS
                for outputs in results:
                    for output in outputs:
                        words[spot] = output.data_ptr() if isinstance(output, torch.Tensor) else 0
                        spot += 1
                words[ControlPage.DONE] = words[ControlPage.GO]
        finally:
            gc.enable()
            placement.drop_slots()

    def _idle_call(self, way: OverheadName) -> Callable[..., Any]:
        """Return a call of the graph in some way that returns the same outputs every time.

        Only a reference makes it, which runs no candidate code.
        """
        module, placement = build(parse_program(self._text)), self._placement
        assert placement is not None, "armed before it was loaded"
        arguments = placement.give(0)
        if way == "guarded":
            call = guarded_call(module, _idle_backend(module, arguments), arguments)
        else:
            call = torch.compile(module.forward, backend=_idle_backend, dynamic=False)
        call(*arguments)
        return call

    def _observed(self) -> tuple[messages.Observed, ...]:
        return tuple(
            messages.Observed(name, tuple(observation.ops), observation.same_as_pattern)
            for name, observation in self._observer.observations.items()
        )


def _idle_backend(module: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
    """Return a function that computes a graph once, and gives the same outputs from then on."""
    kept: Any = None

    def idle(*arguments: Any) -> Any:
        nonlocal kept
        if kept is None:
            kept = module.forward(*arguments)
        return kept

    return idle


def _loaded_module(folder: Path, arguments: list[Any]) -> Callable[..., Any]:
    module, _, name = read_json(folder / LOADER_FILE, str).partition(":")
    return getattr(import_module(module), name)(folder, arguments)


def _check_matches(request: messages.CheckMatches) -> messages.MatchesChecked:
    passes = load_passes(inspect_folder(Path(request.passes)))
    program = parse_program(request.program)
    module = build(program)
    pairs = list(zip(request.tensors, program.params, strict=False))
    try:  # without fake tensors, which import Dynamo
        note_inputs(module, [fake_input(spec, param.annotation) for spec, param in pairs])
        reports, _ = apply_passes(module, passes)
    except (ValuesNeededError, GraphError):
        with fake_mode():
            inputs = [fake_input(spec, param.annotation) for spec, param in pairs]
        reports, _ = apply_passes(build(program), passes, inputs)
    return messages.MatchesChecked(_match_texts(reports))


def _match_texts(reports: Sequence[PassReport]) -> tuple[messages.MissText, ...]:
    return tuple(
        messages.MissText(report.name, report.num_matches, report.sentence()) for report in reports
    )


def _map(fd: int, num_bytes: int) -> mmap.mmap:
    memory = mmap.mmap(fd, max(num_bytes, 1))
    os.close(fd)
    return memory


def _get_ready_for_cuda(device_mib: int) -> None:
    torch.cuda.init()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, device_mib * 2**20 / total))


def _as_tuple(outputs: Any) -> Sequence[Any]:
    return outputs if isinstance(outputs, (tuple, list)) else (outputs,)


def _addresses(values: Sequence[Any]) -> tuple[int, ...]:
    has_address = [isinstance(v, torch.Tensor) and v.layout is torch.strided for v in values]
    return tuple(v.data_ptr() if has else 0 for v, has in zip(values, has_address, strict=True))


def _form(output: Any) -> messages.OutputForm:
    is_plain = type(output) in (torch.Tensor, torch.nn.Parameter)
    if is_plain and output.layout is torch.strided:
        dtype = str(output.dtype).removeprefix("torch.")
        if dtype not in STORAGE:
            return messages.OutputForm("other", dtype=f"{dtype} tensor")
        return messages.OutputForm(
            "tensor", dtype, tuple(output.shape), tuple(output.stride()), device=output.device.type
        )
    if isinstance(output, (bool, int, float)):
        return messages.OutputForm("number", dtype=type(output).__name__, number=repr(output))
    return messages.OutputForm("other", dtype=type(output).__name__)
