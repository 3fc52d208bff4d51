"""One item profiled, in a process of its own."""

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from passnet.bench.profiling.record import ProfileRecord, ProfileSettings, ProfileSubject
from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobOutcome, JobRunner
from passnet.core.records.serialise import decode, encode, write_json
from passnet.errors import MeasureError, PassnetError, boundary

MAX_ERROR_CHARACTERS = 300

PATIENCE = 0.25
"""After this share of its time-out an item is not measured again."""


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """The order to a process: the item, and its settings."""

    subject: ProfileSubject
    settings: ProfileSettings


def profile_isolated(
    runner: JobRunner, name: str, subjects: Mapping[str, ProfileSubject], settings: ProfileSettings
) -> JobOutcome[ProfileRecord]:
    """Profile an item by its name in a process of its own; its failure is in its record.

    Raises:
        WorkerError: our own machinery failed.
    """
    subject = subjects[name]
    job = Job(
        "passnet.bench.profiling.job:profile_to",
        encode(ProfileRequest(subject, settings)).decode(),
        JobLimits(settings.timeout_s, settings.memory_mib),
        "passnet.bench.profiling.job:prepare",
        str(settings.threads),
    )
    result = runner.run(job)
    outcome = result.outcome(ProfileRecord)
    if outcome is not None:
        return JobOutcome(replace(outcome.record, wall_s=round(result.end.wall_s, 3)))
    cause = "time-out" if result.end.timed_out else "crash"
    if "memory" in result.log[-2000:].lower():
        cause = "out of memory"
    error = result.failure[-MAX_ERROR_CHARACTERS:]
    record = replace(_about(subject), cause=cause, error=error, wall_s=round(result.end.wall_s, 3))
    return JobOutcome(record)


def _about(subject: ProfileSubject) -> ProfileRecord:
    """Return the record of a failure, with the facts known before an item runs."""
    names = ("name", "kind", "library", "domain", "dtype", "ops", "weight")
    return ProfileRecord(
        **{name: getattr(subject, name) for name in names},
        status="failed",
        num_ops=len(subject.ops),
        input_mib=round(subject.input_mib, 6),
        machine=socket.gethostname(),
    )


def prepare(threads: str) -> None:
    """Import the modules of the processes once in their parent, and measure the cost of clocks."""
    import torch

    torch.set_num_threads(int(threads))
    _clock_cost()


@cache
def _clock_cost() -> Any:
    from passnet.bench.profiling.measure import calibrate

    return calibrate()


def profile_to(payload: str, folder: Path) -> None:
    """Write the record of an item into a folder; runs in the item's process."""
    request = decode(payload, ProfileRequest)
    try:
        record = _profiled(request.subject, request.settings)
    except PassnetError as error:
        text = " ".join(str(error).split())
        cause = text.partition(":")[0] if isinstance(error, MeasureError) else "unreadable"
        record = replace(_about(request.subject), cause=cause, error=text[:MAX_ERROR_CHARACTERS])
    write_json(folder / RECORD_FILE, record)


def _profiled(subject: ProfileSubject, settings: ProfileSettings) -> ProfileRecord:
    import torch

    from passnet.bench.profiling.eager_ops import eager_parts
    from passnet.bench.profiling.measure import measure, profiled_call

    torch.set_num_threads(settings.threads)
    function, args, kwargs, subject = _built(subject, settings.seed)
    deadline = time.monotonic() + PATIENCE * settings.timeout_s
    with profiled_call(function, args, kwargs) as call:
        result = measure(call, settings.seconds, _clock_cost())
        for attempt in range(2, settings.attempts + 1):
            if not result.unstable or time.monotonic() > deadline:
                break
            time.sleep(0.2 * (attempt - 1))  # the disturbance may pass
            result = measure(call, settings.seconds * attempt, _clock_cost())
        eager = None
        if subject.kind == "subgraph" and not result.unstable:
            with boundary(MeasureError, "eager torch op by op"):
                eager = eager_parts(function, args, result.eager_ms)  # type: ignore[arg-type]
    return replace(
        _about(subject),
        status="unstable" if result.unstable else "ok",
        cause=result.unstable,
        eager_ms=result.eager_ms,
        compiled_ms=result.compiled_ms,
        direct_ms=result.direct_ms,
        speedup=result.speedup.value,
        speedup_low=result.speedup.low,
        speedup_high=result.speedup.high,
        parts=result.parts,
        residue_ms=result.residue_ms,
        eager=eager,
        self_ratio=result.self_ratio,
        num_graphs=call.num_graphs,
        num_generated=call.num_calls_of("generated"),
        num_library=call.num_calls_of("library"),
        num_copies=call.num_calls_of("copies") + (len(call.moving.calls) if call.moving else 0),
        num_rounds=result.num_rounds,
        attempts=attempt,
        compile_s=round(call.compile_s, 3),
    )


_Built: TypeAlias = tuple[Callable[..., Any], list[Any], dict[str, Any], ProfileSubject]
"""A function, its arguments, and the item with the facts that are known once it is built."""


def _built(subject: ProfileSubject, seed: int) -> _Built:
    if subject.kind == "net":
        return _net(subject)
    from passnet.graph.fx.build import build
    from passnet.graph.spec import retarget
    from passnet.graph.text.files import graph_from_row
    from passnet.graph.values.cost import torch_arguments

    graph = retarget(graph_from_row(subject.program, subject.tensors, subject.name), "cpu")
    module = build(graph.program, subject.name)
    return module, list(torch_arguments(graph, "fresh", seed)), {}, subject


def _net(subject: ProfileSubject) -> _Built:
    from torch import Tensor
    from torch.utils._pytree import tree_leaves

    from passnet.data.capture.catalog import build_entry
    from passnet.data.capture.net import input_values

    with boundary(MeasureError, "building the net"):
        net = build_entry(subject.name)
    args, kwargs = input_values(net)
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    module: Any = net.module
    weights = [*module.parameters(), *module.buffers()] if hasattr(module, "parameters") else []
    floats = [tensor for tensor in (*weights, *tensors) if tensor.is_floating_point()]
    largest = max(floats, key=Tensor.numel, default=None)
    dtype = "none" if largest is None else str(largest.dtype).removeprefix("torch.")
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors) / 2**20
    about = replace(subject, domain=net.domain, dtype=dtype, input_mib=size)
    return net.module, args, kwargs, about
