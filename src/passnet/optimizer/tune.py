"""All backends for one input signature, tried in turn, and the one that is kept."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from passnet.core.jobs.process import JobRunner
from passnet.errors import PassnetError
from passnet.optimizer.backends.backend import Backend
from passnet.optimizer.blocks import block_times
from passnet.optimizer.call.net_call import BuiltBackend, NetCall, leaf_in_words
from passnet.optimizer.record import (
    BackendRecord,
    SignatureRecord,
    SizeRecord,
)
from passnet.optimizer.settings import OptimizeSettings
from passnet.optimizer.size_times import SizeTimes
from passnet.optimizer.trial import (
    GAIN_BY_SIZE,
    BackendTrials,
    as_used,
    fastest_of,
    for_all,
    plain,
    timed,
)

Progress = Callable[[BackendRecord], None]


def optimize_signature(
    call: NetCall,
    folder: Path,
    plan: Mapping[str, Backend],
    settings: OptimizeSettings,
    deadline: float,
    progress: Progress | None,
    runner: JobRunner | None = None,
    serves: str = "",
    may_fold: bool = True,
) -> tuple[SignatureRecord, BuiltBackend | None]:
    """Build, compare and time all backends; return the chosen one, None for eager torch.

    `runner` runs their children; `progress` is called with each record. The backend `serves` is
    chosen if it is right, fast or not. `may_fold` is False where earlier signatures hold as many
    folded weights as may be.
    """
    if call.refusal:
        return _refused(call, plan, progress), None
    try:
        trial = BackendTrials(call, folder, plan, settings, deadline, runner, may_fold)
    except PassnetError:
        raise
    except Exception as cause:  # noqa: BLE001 (boundary: ops lack some dtypes)
        call.refusal = f"other arguments cannot be made ({type(cause).__name__}: {cause})"
        return _refused(call, plan, progress), None
    for name, backend in plan.items():
        record = trial.tried(name, backend, name == [*plan][-1])
        trial.records[name] = replace(record, says=record.says or backend.says)
        if progress is not None:
            progress(trial.records[name])
    times, steadiness = trial.last_times()
    for name in trial.alive:
        trial.records[name] = timed(trial.records[name], times)
    times = trial.with_expensive_sizes(times)
    usable = {name: times.ms(as_used(name)) for name in trial.alive}
    fastest = serves if serves in usable else min(usable, key=usable.__getitem__)
    sizes = _by_size(call, trial, times, serves) if call.ranges else ()
    if fastest == "eager":  # and for some sizes another one
        fastest = next((each.chosen for each in sizes if each.chosen != "eager"), fastest)
    instead = _instead(fastest, trial.alive, usable)
    used = {fastest, instead, *(each.chosen for each in sizes)}
    names = [as_used(each.chosen) for each in sizes] or [as_used(fastest)]
    speedup = times.fastest_speedup(names)
    ranges = trial.ranges
    signature = SignatureRecord(
        tuple(map(leaf_in_words, call.leaves)),
        fastest,
        tuple(trial.records.values()),
        times.fastest_ms(names),
        usable["eager"],
        speedup.value,
        speedup.low,
        speedup.high,
        block_times(call),
        ranges.ranges if ranges else (),
        instead,
        ranges.op_blocks if ranges else (),
        any(plan[name].when == "authors" for name in used - {""}),
        steadiness,
        sizes=sizes,
        size_ranges=call.ranges,
        allowed_error=settings.allowed_error,
    )
    for name in plan:
        if name not in used:
            shutil.rmtree(folder / name, ignore_errors=True)
    if fastest == "eager":
        return signature, None
    return signature, chosen_backend(signature, trial.alive)


def chosen_backend(signature: SignatureRecord, built: Mapping[str, BuiltBackend]) -> BuiltBackend:
    """Return the chosen backend of an input signature and its substitutes."""
    instead = built.get(signature.instead)
    backends = {
        name: one if name == signature.instead else replace(one, instead=instead)
        for name, one in built.items()
        if name != "eager"
    }
    by_size = tuple((each.sizes, backends.get(each.chosen)) for each in signature.sizes)
    return replace(backends[signature.chosen], by_size=by_size)


def _by_size(
    call: NetCall, trial: BackendTrials, times: SizeTimes, serves: str
) -> tuple[SizeRecord, ...]:
    """Return the times and the fastest backend at each size."""
    records = []
    for sizes, rounds in zip(trial.measured, times.rounds, strict=True):
        ms = {name: rounds.ms(as_used(name)) for name in trial.alive}
        chosen = serves if serves in ms else min(ms, key=ms.__getitem__)
        if (
            sizes in trial.expensive
            and chosen != serves
            and ms["eager"] < GAIN_BY_SIZE * ms[chosen]
        ):
            chosen = "eager"  # a few calls show no more
        speedup = rounds.speedup(as_used(chosen), over=plain("eager"))
        figures = speedup.value, speedup.low, speedup.high
        records.append(SizeRecord(sizes, chosen, ms, *figures))
    return tuple(records)


def _refused(
    call: NetCall, plan: Mapping[str, Backend], progress: Progress | None
) -> SignatureRecord:
    """Return the record of a net that no backend may serve. It is not called again, as it may keep
    a state or fail: its time is that of its first call.
    """
    ms = call.seconds * 1e3
    records = []
    for name, backend in plan.items():
        record = BackendRecord(name, "refused", call.refusal, says=backend.says)
        if name == "eager":
            record = replace(record, status="ok", reason=None, plain_ms=ms, speedup=1.0)
        records.append(record)
        if progress is not None:
            progress(record)
    inputs = tuple(map(leaf_in_words, call.leaves))
    return SignatureRecord(inputs, "eager", tuple(records), ms, ms, 1.0, 1.0, 1.0)


def _instead(name: str, built_backends: Mapping[str, BuiltBackend], ms: Mapping[str, float]) -> str:
    """Return the fastest backend for calls whose values this one refuses; "" for eager or none."""
    built = built_backends[name]
    if name == "eager" or not (built.compares or built.is_bounded):
        return ""
    [best] = fastest_of(for_all(built_backends), ms)
    return "" if best == "eager" else best
