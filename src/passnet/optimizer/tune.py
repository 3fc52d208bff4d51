"""All backends for one input signature: built, compared with eager torch, and timed."""

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from passnet.core.records.folders import cache_folder
from passnet.core.records.serialise import make_folder, read_json, write_json
from passnet.errors import BackendError, PassnetError, boundary
from passnet.judge.timing.rounds import RoundTimes, time_calls
from passnet.optimizer.backends.backends import Backend, build_backend, load_backend, with_checks
from passnet.optimizer.blocks import block_times
from passnet.optimizer.call.fast_net import FastNet
from passnet.optimizer.call.net_call import BuiltBackend, NetCall, leaf_in_words
from passnet.optimizer.compare.agreement import EagerComparison
from passnet.optimizer.record import BackendRecord, RangesRecord, SignatureRecord
from passnet.optimizer.settings import WITH_PASSES, OptimizeSettings

BACKEND_FILE = "engine.json"
"""The record of a build, for resumed runs."""

Progress = Callable[[BackendRecord], None]


def optimize_signature(
    call: NetCall,
    folder: Path,
    plan: Mapping[str, Backend],
    settings: OptimizeSettings,
    deadline: float,
    progress: Progress | None,
) -> tuple[SignatureRecord, BuiltBackend | None]:
    """Build, compare and time all backends; return the chosen one, None for eager torch."""
    comparison = EagerComparison(call, settings.finite)
    records: dict[str, BackendRecord] = {}
    ranges: RangesRecord | None = None
    built_backends: dict[str, BuiltBackend] = {}
    for name in plan:
        has_passes = name in WITH_PASSES and ranges is not None  # their time was spent
        is_late = time.monotonic() > deadline and not has_passes
        reason = "the budget was spent" if is_late else None
        if name != "eager" and (reason := reason or records["eager"].reason):
            records[name] = BackendRecord(name, "untried", reason)
        else:
            if name in WITH_PASSES and ranges is None:
                ranges = _choose_passes(call, folder, settings, deadline)
            try_backend = _eager if name == "eager" else _tried
            records[name], built = try_backend(
                name, plan[name], call, folder / name, comparison, settings.freeze
            )
            if built is not None:
                built_backends[name] = with_checks(built, settings.freeze, records[name])
        records[name] = replace(records[name], says=records[name].says or plan[name].says)
        if progress is not None:
            progress(records[name])
    times = _time(call, built_backends, settings.seconds)
    for name in built_backends:
        records[name] = _timed(records[name], times)
    usable = {name: times.ms(name if name != "eager" else _plain(name)) for name in built_backends}
    fastest = min(usable, key=usable.__getitem__)
    instead = _instead(fastest, built_backends, usable)
    timed = fastest if fastest != "eager" else _plain(fastest)
    speedup = times.speedup(timed, over=_plain("eager"))
    signature = SignatureRecord(
        tuple(map(leaf_in_words, call.leaves)),
        fastest,
        tuple(records.values()),
        times.ms(timed),
        times.ms(_plain("eager")),
        speedup.value,
        speedup.low,
        speedup.high,
        block_times(call),
        ranges.ranges if ranges else (),
        instead,
        ranges.op_blocks if ranges else (),
        not {fastest, instead}.isdisjoint(WITH_PASSES),
    )
    for name in plan:
        if name not in (fastest, instead):
            shutil.rmtree(folder / name, ignore_errors=True)
    if fastest == "eager":
        return signature, None
    return signature, replace(built_backends[fastest], instead=built_backends.get(instead))


def _instead(name: str, built_backends: Mapping[str, BuiltBackend], ms: Mapping[str, float]) -> str:
    """Return the fastest backend for calls whose values this one refuses; "" for eager or none."""
    built = built_backends[name]
    if name == "eager" or not (built.compares or built.is_bounded):
        return ""
    best = min(
        (name for name, b in built_backends.items() if not (b.is_frozen or b.is_bounded)),
        key=ms.__getitem__,
    )
    return "" if best == "eager" else best


def _choose_passes(
    call: NetCall, folder: Path, settings: OptimizeSettings, deadline: float
) -> RangesRecord:
    from passnet.optimizer.choose.chosen_passes import passes_of_signature

    library = Path(settings.library) if settings.library else cache_folder("library")
    seconds = max(deadline - time.monotonic(), 1.0)
    return passes_of_signature(
        call, folder, WITH_PASSES, library, settings.authors, settings.asked, seconds
    )


def _tried(
    name: str,
    backend: Backend,
    call: NetCall,
    folder: Path,
    comparison: EagerComparison,
    freeze: bool,
) -> tuple[BackendRecord, BuiltBackend | None]:
    """Build or reload one backend and compare it with eager torch."""
    start = time.monotonic()
    file = folder / BACKEND_FILE
    try:
        if file.is_file():
            record = read_json(file, BackendRecord)
            if record.status != "ok":
                return record, None
            return record, load_backend(name, backend, call, folder)
        built = build_backend(name, backend, call, folder, freeze)
        with boundary(BackendError, f"{name}, on other arguments"):
            agreement = comparison.agreement(built)
    except PassnetError as cause:  # of a pass too
        text = " ".join(str(cause).split())[:400]
        record = BackendRecord(name, "refused", text, time.monotonic() - start)
        make_folder(folder)
        write_json(file, record)
        return record, None
    record = BackendRecord(
        name,
        "wrong" if agreement.wrong else "ok",
        agreement.wrong,
        time.monotonic() - start,
        error=agreement.error,
        eager_error=agreement.eager_error,
        bound=agreement.bound,
        index_bounds=agreement.index_bounds,
        says=built.says,
    )
    write_json(file, record)
    return record, None if agreement.wrong else built


def _eager(
    name: str,
    backend: Backend,
    call: NetCall,
    folder: Path,
    comparison: EagerComparison,
    freeze: bool,
) -> tuple[BackendRecord, BuiltBackend]:
    """Return eager torch, always available; its record says where outputs are not repeatable."""
    record, built = _tried(name, backend, call, folder, comparison, freeze)
    wrong = record.reason if built is None else comparison.repeated()
    if built is not None and wrong is None:
        return record, built
    reason = f"the net does not return the same twice ({wrong})"
    record = replace(record, status="wrong", reason=reason)
    return record, build_backend(name, backend, call, folder, freeze)


def _time(call: NetCall, built_backends: Mapping[str, BuiltBackend], seconds: float) -> RoundTimes:
    """Time all backends as the returned net calls them, and torch's as torch does."""

    def run(net: Callable[..., Any]) -> Any:
        return net(*call.args, **call.kwargs)

    calls: dict[str, Callable[[], object]] = {}
    for name, built in built_backends.items():
        if name != "eager":
            calls[name] = partial(run, FastNet(call.given, [built]))
        if built.is_frozen and not built.compares and call.is_on_cpu:
            compared = replace(built, compares=True)
            calls[_compared(name)] = partial(run, FastNet(call.given, [compared]))
        plain = call.given if name == "eager" else built.plain
        if plain is not None:
            calls[_plain(name)] = partial(run, plain)
    with torch.no_grad():
        return time_calls(calls, seconds, always=(_plain("eager"),))


def _timed(record: BackendRecord, times: RoundTimes) -> BackendRecord:
    """Return a record with times and speedup as the returned net calls the backend."""
    name, plain = record.engine, _plain(record.engine)
    all_ms = {call: times.ms(call) for call in times.turns}
    speedup = times.speedup(name if name in all_ms else plain, over=_plain("eager"))
    return replace(
        record,
        ms=all_ms.get(name),
        plain_ms=all_ms.get(plain),
        compared_ms=all_ms.get(_compared(name)),
        speedup=speedup.value,
        speedup_low=speedup.low,
        speedup_high=speedup.high,
    )


def _plain(name: str) -> str:
    return f"{name} of torch"


def _compared(name: str) -> str:
    return f"{name} compared"
