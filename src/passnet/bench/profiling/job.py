"""One item profiled, in a process of its own."""

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from passnet.bench.profiling.record import ProfileItem, ProfileRecord, ProfileSettings
from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobOutcome, JobRunner
from passnet.core.records.serialise import decode, encode, write_json
from passnet.errors import MeasureError, PassnetError, boundary

MAX_ERROR_CHARACTERS = 300

PATIENCE = 0.25
"""After this share of its time-out an item is not measured again."""


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """The order to a process: the item, and its settings."""

    item: ProfileItem
    settings: ProfileSettings


def profile_isolated(
    runner: JobRunner, name: str, items: Mapping[str, ProfileItem], settings: ProfileSettings
) -> JobOutcome[ProfileRecord]:
    """Profile one of some items in a process of its own. What goes wrong with it is in its record.

    Raises:
        WorkerError: our own machinery failed.
    """
    item = items[name]
    job = Job(
        "passnet.bench.profiling.job:profile_to",
        encode(ProfileRequest(item, settings)).decode(),
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
    record = replace(_about(item), cause=cause, error=error, wall_s=round(result.end.wall_s, 3))
    return JobOutcome(record)


def _about(item: ProfileItem) -> ProfileRecord:
    """Return the record of a failure, with the facts known before an item runs."""
    return ProfileRecord(
        item.name, item.kind, "failed", item.library, item.domain, item.dtype, item.ops,
        len(item.ops), round(item.input_mib, 6), item.weight, machine=socket.gethostname(),
    )  # fmt: skip


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
        record = _profiled(request.item, request.settings)
    except PassnetError as error:
        text = " ".join(str(error).split())
        cause = text.partition(":")[0] if isinstance(error, MeasureError) else "unreadable"
        record = replace(_about(request.item), cause=cause, error=text[:MAX_ERROR_CHARACTERS])
    write_json(folder / RECORD_FILE, record)


def _profiled(item: ProfileItem, settings: ProfileSettings) -> ProfileRecord:
    import torch

    torch.set_num_threads(settings.threads)
    function, args, kwargs, item = _subject(item, settings.seed)
    return _measured(item, function, args, kwargs, settings)


def _measured(
    item: ProfileItem,
    function: Callable[..., Any],
    args: list[Any],
    kwargs: dict[str, Any],
    settings: ProfileSettings,
) -> ProfileRecord:
    from passnet.bench.profiling.eager_ops import eager_parts
    from passnet.bench.profiling.measure import measure, profiled_call

    deadline = time.monotonic() + PATIENCE * settings.timeout_s
    with profiled_call(function, args, kwargs) as call:
        found = measure(call, settings.seconds, _clock_cost())
        for attempt in range(2, settings.attempts + 1):
            if not found.unstable or time.monotonic() > deadline:
                break
            time.sleep(0.2 * (attempt - 1))  # what disturbs may pass
            found = measure(call, settings.seconds * attempt, _clock_cost())
        eager = None
        if item.kind == "subgraph" and not found.unstable:
            with boundary(MeasureError, "eager torch op by op"):
                eager = eager_parts(function, args, found.eager_ms)  # type: ignore[arg-type]
    return replace(
        _about(item),
        status="unstable" if found.unstable else "ok",
        cause=found.unstable,
        eager_ms=found.eager_ms,
        compiled_ms=found.compiled_ms,
        direct_ms=found.direct_ms,
        speedup=found.speedup.value,
        speedup_low=found.speedup.low,
        speedup_high=found.speedup.high,
        parts=found.parts,
        residue_ms=found.residue_ms,
        eager=eager,
        self_ratio=found.self_ratio,
        num_graphs=call.num_graphs,
        num_generated=call.num_calls_of("generated"),
        num_library=call.num_calls_of("library"),
        num_copies=call.num_calls_of("copies") + (len(call.moving.calls) if call.moving else 0),
        num_rounds=found.num_rounds,
        attempts=attempt,
        compile_s=round(call.compile_s, 3),
    )


def _subject(
    item: ProfileItem, seed: int
) -> tuple[Callable[..., Any], list[Any], dict[str, Any], ProfileItem]:
    """Return an item's function with its arguments, and the item with the facts known then.

    Raises:
        MeasureError: a net cannot be built.
        GraphError: a graph cannot be read or built, or its inputs drawn.
    """
    if item.kind == "net":
        return _net(item)
    from passnet.graph.fx.build import build
    from passnet.graph.spec import retarget
    from passnet.graph.text.files import graph_from_row
    from passnet.graph.values.cost import torch_arguments

    graph = retarget(graph_from_row(item.program, item.tensors, item.name), "cpu")
    module = build(graph.program, item.name)
    return module, list(torch_arguments(graph, "fresh", seed)), {}, item


def _net(
    item: ProfileItem,
) -> tuple[Callable[..., Any], list[Any], dict[str, Any], ProfileItem]:
    from torch import Tensor
    from torch.utils._pytree import tree_leaves

    from passnet.data.capture.catalog import build_entry
    from passnet.data.capture.net import input_values

    with boundary(MeasureError, "building the net"):
        net = build_entry(item.name)
    args, kwargs = input_values(net)
    tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    module: Any = net.module
    weights = [*module.parameters(), *module.buffers()] if hasattr(module, "parameters") else []
    floats = [each for each in (*weights, *tensors) if each.is_floating_point()]
    largest = max(floats, key=lambda each: each.numel(), default=None)
    dtype = "none" if largest is None else str(largest.dtype).removeprefix("torch.")
    size = sum(each.numel() * each.element_size() for each in tensors) / 2**20
    about = replace(item, domain=net.domain, dtype=dtype, input_mib=size)
    return net.module, args, kwargs, about
