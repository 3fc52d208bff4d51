"""A run of profiles: each item in a process of its own, recorded at once, and resumable."""

import hashlib
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from passnet.bench.environment import describe_environment
from passnet.bench.profiling.record import (
    ProfileInfo,
    ProfileRecord,
    ProfileSettings,
    ProfileSubject,
)
from passnet.bench.run_record import environment_difference
from passnet.core.hardware import version_of
from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobOutcome, JobRunner
from passnet.core.jobs.run_folder import RunFolder
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION, decode, encode, write_json
from passnet.data.capture.catalog import packages_of
from passnet.data.capture.run import file_hash
from passnet.errors import InputError, MeasureError, PassnetError, boundary

RUN_FILE = "profile.json"
RECORDS_FILE = "profiles.jsonl"

MAX_ERROR_CHARACTERS = 300

OUT_OF_MEMORY = (
    "out of memory", "allocate memory", "not enough memory", "memoryerror", "bad_alloc",
)  # fmt: skip
"""Texts of Python, C++, Linux and torch, in lower case, if a process may have no more memory."""

PATIENCE = 0.25
"""After this share of its time-out an item is not measured again."""


def profile_subjects(
    subjects: Sequence[ProfileSubject],
    settings: ProfileSettings,
    out: Path,
    plan: RunPlan = DEFAULT_PLAN,
) -> list[ProfileRecord]:
    """Profile items into a folder and return the records that it then has.

    Items that are profiled at the same time may disturb each other.

    Raises:
        InputError: `out` holds a run and `plan.resume` is off; it or one of `plan.parts` has other
            items or settings, or is of another machine; another process works in `out`; or it
            cannot be written to.
    """
    run = profile_folder(out)
    info = ProfileInfo(
        SCHEMA_VERSION,
        settings,
        items_hash(subjects),
        len(subjects),
        describe_environment(),
    )

    def continued(begun: ProfileInfo, info: ProfileInfo) -> ProfileInfo:
        if difference := _difference(begun, info):
            raise InputError(f"{out}: {difference}; choose another --out")
        return begun

    part_records: list[ProfileRecord] = []
    for folder in plan.parts:
        part = profile_folder(folder)
        if difference := _difference(part.read_info(), info):
            raise InputError(f"{folder}: {difference}, so it is no part of this run")
        part_records += part.records().values()
    with run.begin(info, plan.resume, continued):
        records = run.records()
        run.take(part_records, records, lambda record: record.status == "ok")
        by_name = {subject.name: subject for subject in subjects}
        missing = []
        for name in filter(plan.shard.has, by_name):
            if name in records and (records[name].status == "ok" or not plan.retry):
                plan.progress(records[name])
            else:
                missing.append(by_name[name])
        work = partial(profile_isolated, settings=settings)
        outcomes = plan.executor(missing, work, plan.num_workers)
        for record in run.keep(outcomes, len(records)):
            records[record.name] = record
            plan.progress(record)
        return list(records.values())


def items_hash(subjects: Sequence[ProfileSubject]) -> str:
    """Return a SHA-256 of the content of items, in any order: the text and weight of subgraphs, the
    files of nets or the versions of their packages.
    """
    digest = hashlib.sha256()
    for subject in sorted(subjects, key=attrgetter("name")):
        digest.update(encode(subject) + b"\n")
        if subject.kind == "net":
            versions = {name: version_of(name) for name in packages_of(subject.name)}
            digest.update(encode((file_hash(subject.name), versions)) + b"\n")
    return digest.hexdigest()


def _difference(old: ProfileInfo, new: ProfileInfo) -> str | None:
    """Return the reason, as the end of a sentence, why two runs cannot be one; None if they can."""
    if (old.settings, old.items_hash) != (new.settings, new.items_hash):
        return "profiles other items, or other content of them, or with other settings"
    if difference := environment_difference(old.environment, new.environment):
        name, before, now = difference
        return f"was measured with {name} {before}, and here it is {now}"
    return None


def profile_folder(out: Path) -> RunFolder[ProfileInfo, ProfileRecord, str]:
    """Return the folder of a run of profiles."""
    name = attrgetter("name")
    return RunFolder(out, RUN_FILE, ProfileInfo, RECORDS_FILE, ProfileRecord, name, "profiles")


def read_profiles(folders: Sequence[Path]) -> list[ProfileRecord]:
    """Return the records of several runs, each item once and measured if possible.

    Raises:
        InputError: a folder holds no profiles.
    """
    best: dict[str, ProfileRecord] = {}
    for folder in folders:
        records = profile_folder(folder).records()
        if not records:
            raise InputError(f"{folder}: holds no profiles ({RECORDS_FILE})")
        for name, record in records.items():
            if name not in best or best[name].status != "ok" or record.status == "ok":
                best[name] = record
    return list(best.values())


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """The order to a process: the item, and its settings."""

    subject: ProfileSubject
    settings: ProfileSettings


def profile_isolated(
    runner: JobRunner, subject: ProfileSubject, settings: ProfileSettings
) -> JobOutcome[ProfileRecord]:
    """Profile an item in a process of its own; its failure is in its record.

    Raises:
        WorkerError: our own machinery failed.
    """
    job = Job(
        "passnet.bench.profiling.run:profile_to",
        encode(ProfileRequest(subject, settings)).decode(),
        JobLimits(settings.timeout_s, settings.memory_mib),
        "passnet.bench.profiling.run:prepare",
        str(settings.threads),
    )
    result = runner.run(job)
    outcome = result.outcome(ProfileRecord)
    if outcome is not None:
        return JobOutcome(replace(outcome.record, wall_s=round(result.end.wall_s, 3)))
    cause = "time-out" if result.end.timed_out else "crash"
    log = result.log[-2000:].lower()
    if not result.end.timed_out and any(text in log for text in OUT_OF_MEMORY):
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
        attempt = 1
        while result.unstable and attempt < settings.attempts and time.monotonic() <= deadline:
            time.sleep(0.2 * attempt)  # the disturbance may pass
            attempt += 1
            result = measure(call, settings.seconds * attempt, _clock_cost())
        eager = None
        if subject.kind == "subgraph" and not result.unstable:
            with boundary(MeasureError, "eager torch op by op"):
                eager = eager_parts(function, args, result.eager_ms)  # type: ignore[arg-type]
    names = (
        "eager_ms",
        "compiled_ms",
        "direct_ms",
        "parts",
        "residue_ms",
        "self_ratio",
        "num_rounds",
    )
    return replace(
        _about(subject),
        **{name: getattr(result, name) for name in names},
        status="unstable" if result.unstable else "ok",
        cause=result.unstable,
        speedup=result.speedup.value,
        speedup_low=result.speedup.low,
        speedup_high=result.speedup.high,
        eager=eager,
        num_graphs=call.num_graphs,
        num_generated=call.num_calls_of("generated"),
        num_library=call.num_calls_of("library"),
        num_copies=call.num_calls_of("copies") + (len(call.moving.calls) if call.moving else 0),
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
