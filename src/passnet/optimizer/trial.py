"""The trial of one input signature: backends built, compared with eager torch, timed, and dropped
where slower.
"""

import errno
import gc
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import torch

from passnet.core.jobs.process import JobRunner
from passnet.core.records.folders import cache_folder
from passnet.core.records.serialise import make_folder, read_json, write_json
from passnet.errors import BackendError, InputError, PassnetError, StoppedError, boundary
from passnet.judge.timing.rounds import RoundLimits, RoundTimes, time_calls
from passnet.optimizer.backends.backend import Backend, build_backend, load_backend, with_checks
from passnet.optimizer.call import effects
from passnet.optimizer.call.fast_net import FastNet
from passnet.optimizer.call.net_call import BuiltBackend, NetCall
from passnet.optimizer.call.sizes import CallSizes
from passnet.optimizer.call.weight_file import LARGE_BYTES
from passnet.optimizer.compare.agreement import MAX_DRAWS_S, EagerComparison
from passnet.optimizer.compare.outputs import Agreement
from passnet.optimizer.outside.quiet import quiet
from passnet.optimizer.record import (
    BackendRecord,
    RangesRecord,
    Steadiness,
)
from passnet.optimizer.settings import OptimizeSettings
from passnet.optimizer.size_times import SizeTimes

BACKEND_FILE = "engine.json"
"""The record of a build, for resumed runs."""

SHARE, FIRST_SHARE = 0.5, 0.8
"""The most of the rest of the budget that a backend gets, except the last one, and the first that
Inductor builds: where that takes longer, so do all others.
"""

TIMED_SHARE = 0.02
"""The most of the budget for the rounds of one call."""

DRAWS_SHARE = 0.1
"""The most of the budget for eager torch's calls on other arguments."""

MEASURED_SHARE, COMPARED_SHARE = 0.006, 0.005
"""The most of the budget for one call of eager torch at each size that is measured or compared."""

EXPENSIVE_SHARE = 0.08
"""The most of the budget that a few calls at more expensive sizes may take after its end."""

FEW, FEW_CALLS = RoundLimits(min_rounds=1, slow=((50.0, 1),)), 3
"""The rounds of these calls, and the calls of slow ones."""

MOST_OF_KIND = 2
"""Sets of arguments of each kind in comparisons at other sizes than the example's."""

GAIN_BY_SIZE = 1.05
"""A backend is kept for some sizes alone if it is so much faster there than all others."""

MOST_FOLDED = 2
"""Backends with folded weights that are kept; of a net with large weights one is."""

NUM_TIMED, NUM_LAST = 3, 5
"""Calls in the rounds of a backend, and in the last rounds, for which time is kept."""

LEAST_CALLS = 6
"""Times that `time_calls` makes a slow call at least."""

UNKNOWN_SHARE, LONGER = 1 / 3, 1.5
"""What cannot be stopped begins if so much of the budget is left, or so many times the time of an
earlier build by Inductor.
"""

MAX_WIDTH, MAX_DRIFT = 0.2, 0.1
"""Rounds are disturbed if the interval of a speedup is wider than this share of it, or if first and
second turns differ by this share.
"""

HOLDS_FOLDED = "another input signature holds folded weights, which take their memory again"

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


@dataclass(slots=True)
class Budget:
    """The time for one input signature, with a part for the last rounds.

    Args:
        seconds: all of it.
        deadline: its end, by the clock.
        timed_s: for the rounds of one call.
        compared_s: of the longest comparison so far.
        compiled_s: of the longest build by Inductor so far.
        stopped_s: of the longest of these that was stopped.
        clock: returns the time in seconds.
    """

    seconds: float
    deadline: float
    timed_s: float
    compared_s: float = 0.0
    compiled_s: float | None = None
    stopped_s: float = 0.0
    clock: Callable[[], float] = time.monotonic

    def share_of(self, backend: Backend, is_last: bool) -> float:
        """Return the share of the rest that a backend gets."""
        is_first = backend.is_inductor and self.compiled_s is None
        return 1.0 if is_last else FIRST_SHARE if is_first else SHARE

    def left_s(self, share: float) -> float:
        """Return the seconds that a backend may build before it is compared and timed."""
        left_s = self.deadline - self.clock() - NUM_LAST * self.timed_s
        return min(share * left_s, left_s - self.compared_s - NUM_TIMED * self.timed_s)

    def objection(self, backend: Backend, share: float) -> str | None:
        """Return why a backend is not begun any more; None where it is."""
        if self.left_s(share) <= 0:
            return "the budget was spent"
        if backend.is_inductor and self.left_s(share) <= self.stopped_s:
            return f"a build by Inductor was stopped after {self.stopped_s:.0f} s"
        left_s, known_s = self.left_s(1.0), self.compiled_s
        needed_s = UNKNOWN_SHARE * self.seconds if known_s is None else LONGER * known_s
        if not backend.is_unstoppable or needed_s <= left_s:
            return None
        times = f"may take {needed_s:.0f} s; {left_s:.0f} s are left"
        return f"{backend.says} cannot be stopped and {times}"


@dataclass
class BackendTrials:
    """The trial of all backends of a call: records so far, and backends that may be used."""

    call: NetCall
    folder: Path
    plan: Mapping[str, Backend]
    settings: OptimizeSettings
    deadline: float
    runner: JobRunner | None
    may_fold: bool
    records: dict[str, BackendRecord] = field(default_factory=dict)
    alive: dict[str, BuiltBackend] = field(default_factory=dict)
    away: str = ""
    """The fastest backend of a large net, while it is on the disk alone."""
    ranges: RangesRecord | None = None
    metrics: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with quiet():
            self._begin()
        if self.settings.evaluate is not None:
            self.metrics["eager"] = self._metric(self.call.given)

    def _begin(self) -> None:
        """Call eager torch on the arguments and sizes of comparisons."""
        call, settings = self.call, self.settings
        seconds = max(self.deadline - time.monotonic(), 0.0)
        most_s = min(MAX_DRAWS_S, DRAWS_SHARE * seconds)
        allowed = settings.allowed_error
        self.comparison = EagerComparison(
            call, settings.finite, max_draws_s=most_s, allowed=allowed
        )
        self.measured: list[CallSizes] = []
        self.expensive: set[CallSizes] = set()
        self.calls = [call]
        self.others: list[EagerComparison] = []
        if call.ranges:
            self._take_other_sizes(seconds)
        timed_s = min(settings.seconds, TIMED_SHARE * seconds) / len(self.calls)
        eager_s = (
            [each.seconds for each in self.calls] if call.ranges else [self.comparison.eager_s]
        )
        self.timed_s = [max(timed_s, LEAST_CALLS * each) for each in eager_s]
        self.budget = Budget(seconds, self.deadline, sum(self.timed_s))
        # backends are then compared by their speedups, and the best is loaded again at the end
        self.is_large = self.call.num_bytes >= LARGE_BYTES

    def _take_other_sizes(self, seconds: float) -> None:
        """Take the sizes that are measured and compared, the cheapest first."""
        call, settings = self.call, self.settings
        a_number_s = self.comparison.eager_s / _num_numbers(call.sizes)
        of_sizes = _affordable(call, call.measured_sizes, a_number_s, MEASURED_SHARE * seconds)
        self.measured, self.calls = [*of_sizes], [*of_sizes.values()]
        affordable = _affordable(call, call.compared_sizes, a_number_s, COMPARED_SHARE * seconds)
        for number, other in enumerate(affordable.values(), 1):
            comparison = EagerComparison(
                other,
                settings.finite,
                number,
                most_of_kind=MOST_OF_KIND,
                allowed=settings.allowed_error,
            )
            self.others.append(comparison)

    def _agreement(self, built: BuiltBackend) -> Agreement:
        """Compare a backend with eager torch, at other sizes too."""
        with quiet():
            agreed = self.comparison.agreement(built)
        if built.precision is not None and self.settings.evaluate is not None:
            self.metrics[built.engine] = self._metric(FastNet(self.call.given, [built]))
            lost = self.metrics["eager"] - self.metrics[built.engine]
            if not lost <= self.settings.may_lose:
                return replace(agreed, wrong=f"the metric loses {lost:.3g}")
        with quiet():
            for comparison in self.others:
                if agreed.wrong is None:
                    agreed = comparison.within(built, agreed)
        return agreed

    def _metric(self, net: Callable[..., Any]) -> float:
        """Return the user's metric of a net."""
        assert self.settings.evaluate is not None
        with torch.no_grad(), boundary(InputError, "the function `evaluate` failed"):
            return float(self.settings.evaluate(net))

    def tried(self, name: str, backend: Backend, is_last: bool) -> BackendRecord:
        """Try a backend for a share of the time left, and keep it if it may be the best."""
        share = self.budget.share_of(backend, is_last)
        if name == "eager":
            record, self.alive[name] = self._eager(backend)
            return record
        if reason := self.records["eager"].reason or self.budget.objection(backend, share):
            return BackendRecord(name, "untried", reason)
        if backend.is_frozen and not self.may_fold:
            return BackendRecord(name, "untried", HOLDS_FOLDED)
        if backend.when == "authors" and self.ranges is None:
            self.ranges = self._choose_passes(self.budget.left_s(SHARE))
            return self.tried(name, backend, is_last)
        self._put_away()
        record, built = self._built(name, backend, self.budget.left_s(share))
        if built is None:
            return record
        self.alive[name] = with_checks(built, self.settings.freeze, record)
        times = self._time((name,))
        self._drop_slower(times)
        return timed(record, times)

    def _drop_slower(self, times: SizeTimes) -> None:
        """Keep eager torch and the fastest: of all, of those for any values, and at some size."""
        ms = {name: times.ms(as_used(name)) for name in self.alive}
        if self.away:
            ms[self.away] = ms["eager"] / (self.records[self.away].speedup or 1.0)
        others = ms.keys() - {"eager"}
        survivors = {
            "eager",
            *fastest_of(others, ms),
            *fastest_of(others & for_all(self.alive), ms),
        }
        used = [as_used(name) for name in self.alive]
        for name in times.fastest_somewhere(used, GAIN_BY_SIZE) & self.alive.keys():
            folded = [other for other in survivors if other == self.away or self._is_folded(other)]
            most = 1 if self.is_large else MOST_FOLDED
            if not self._is_folded(name) or len(folded) < most:
                survivors.add(name)
        self.away = self.away if self.away in survivors else ""
        for name in self.records.keys() & self.alive.keys() - survivors:  # not the one on trial
            self.records[name] = timed(self.records[name], times)
        self._keep(survivors)

    def _is_folded(self, name: str) -> bool:
        return name in self.alive and self.alive[name].is_frozen

    def _put_away(self) -> None:
        """Keep no folded weights of a large net while another backend is built."""
        folded = {name for name, built in self.alive.items() if built.is_frozen}
        if folded and self.is_large:
            [self.away] = folded
            self._keep(self.alive.keys() - folded)

    def _keep(self, names: Collection[str]) -> None:
        self.alive = {name: built for name, built in self.alive.items() if name in names}
        gc.collect()  # modules hold each other

    def _choose_passes(self, seconds: float) -> RangesRecord:
        from passnet.optimizer.choose.chosen_passes import passes_of_signature

        own, library = self.settings, self.settings.library
        home = Path(library) if library else cache_folder("library")
        authors = own.authors, own.asked
        engines = tuple(name for name, each in self.plan.items() if each.when == "authors")
        return passes_of_signature(self.call, self.folder, engines, home, *authors, seconds)

    def _built(
        self, name: str, backend: Backend, seconds: float
    ) -> tuple[BackendRecord, BuiltBackend | None]:
        """Build or reload one backend and compare it with eager torch."""
        start = time.monotonic()
        home = self.folder / name
        file, freeze = home / BACKEND_FILE, self.settings.freeze
        try:
            former = read_json(file, BackendRecord) if file.is_file() else None
            if former is not None and former.status != "ok":
                return former, None
            built = self._reloaded(name, backend, home) if former is not None else None
            if built is None:
                former = None
                built = build_backend(name, backend, self.call, home, freeze, self.runner, seconds)
            built_s = self._note_build(backend, start)
            with boundary(BackendError, f"{name}, on other arguments"):
                agreement = self._agreement(built)
            calls = [self.call, *self.calls, *(comparison.call for comparison in self.others)]
            refusal = next((each.refusal for each in calls if each.refusal), None)
            if refusal and name != "eager":  # comparing may find a reason
                raise BackendError(refusal)
        except StoppedError as cause:  # a resumed run tries it again
            spent_s = self._note_build(backend, start)
            if backend.is_inductor:
                self.budget.stopped_s = max(self.budget.stopped_s, spent_s)
            return BackendRecord(name, "untried", str(cause), spent_s), None
        except PassnetError as cause:  # of a pass too
            if isinstance(cause.__cause__, OSError) and cause.__cause__.errno in DISK_ERRORS:
                raise cause.__cause__ from None
            text = " ".join(str(cause).partition("Exception raised from")[0].split())[:400]
            record = BackendRecord(name, "refused", text, time.monotonic() - start)
            make_folder(home)
            write_json(file, record)
            return record, None
        if former is not None and agreement.wrong:  # it was built for another net
            file.unlink()
            return self._built(name, backend, seconds)
        spent_s = time.monotonic() - start
        # of eager torch the other arguments are drawn, and called for the first time
        seconds = sum(each.seconds for each in (self.comparison, *self.others))
        compared_s = seconds if name == "eager" else spent_s - built_s
        self.budget.compared_s = max(self.budget.compared_s, compared_s)
        record = BackendRecord(
            name,
            "wrong" if agreement.wrong else "ok",
            agreement.wrong,
            spent_s,
            error=agreement.error,
            eager_error=agreement.eager_error,
            bound=agreement.bound,
            index_bounds=agreement.index_bounds,
            says=built.says,
            filled_rows=agreement.filled_rows,
            precision=backend.precision,
            metric=self.metrics.get(name),
        )
        write_json(file, record)
        return record, None if agreement.wrong else built

    def _reloaded(self, name: str, backend: Backend, home: Path) -> BuiltBackend | None:
        with suppress(BackendError):
            return load_backend(name, backend, self.call, home)
        return None

    def _note_build(self, backend: Backend, start: float) -> float:
        spent_s = time.monotonic() - start
        if backend.is_inductor:
            self.budget.compiled_s = max(self.budget.compiled_s or 0.0, spent_s)
        return spent_s

    def _eager(self, backend: Backend) -> tuple[BackendRecord, BuiltBackend]:
        """Return eager torch, always available; its record says if outputs are not repeatable."""
        with self._without_moves():
            record, built = self._built("eager", backend, 0.0)
            with quiet():
                wrong = record.reason if built is None else self.comparison.repeated()
        if record.status != "refused":  # it cannot be compared
            if built is not None and wrong is None:
                return record, built
            record = replace(record, reason=f"the net does not return the same twice ({wrong})")
        record = replace(record, status="wrong")
        return record, build_backend("eager", backend, self.call, self.folder / "eager")

    @contextmanager
    def _without_moves(self) -> Iterator[None]:
        """Refuse a net in which calls on other arguments move attributes or variables that copies
        share, but for tables of other sizes.
        """
        net = self.call.net
        with effects.shared_kept(net):
            before = effects.attributes_of(net)
            yield
            moves = effects.differing(before, effects.attributes_of(net))
            if moves and not self.call.ranges and not self.call.refusal:
                self.call.refusal = f"some calls change {', '.join(moves[:3])}"

    def _time(self, fully: Collection[str]) -> SizeTimes:
        """Time eager torch, and other backends as the returned net calls them, at each size.

        Some are timed fully: also as torch calls them, and with weights compared at each call.
        """
        nets = self._nets(fully)
        pairs = zip(self.calls, self.timed_s, strict=True)
        rounds = tuple(_rounds(nets, call, seconds) for call, seconds in pairs)
        return SizeTimes(rounds, plain("eager"))

    def _nets(self, fully: Collection[str]) -> dict[str, Callable[..., Any]]:
        net = self.call.given
        nets: dict[str, Callable[..., Any]] = {plain("eager"): net}
        for name, alive in self.alive.items():
            built = replace(alive, keeps_values=False)  # this net's first call was made
            if name != "eager":
                nets[name] = FastNet(net, [built])
            if name in fully and built.is_frozen and not built.compares and self.call.is_on_cpu:
                nets[_compared(name)] = FastNet(net, [replace(built, compares=True)])
            if name in fully and built.plain is not None:
                nets[plain(name)] = built.plain
        return nets

    def with_expensive_sizes(self, times: SizeTimes) -> SizeTimes:
        """Time kept backends by a few calls at sizes too expensive to measure, the largest first.

        Without them the backend of the nearest size would serve all larger ones. They may exceed
        the deadline by a part of the budget.
        """
        if not self.call.ranges:
            return times
        pairs = zip(self.measured, self.calls, strict=True)
        a_number_s = min(each.seconds / _num_numbers(sizes) for sizes, each in pairs)
        left_s = max(self.budget.deadline - time.monotonic(), EXPENSIVE_SHARE * self.budget.seconds)
        nets, rounds = self._nets(()), [*times.rounds]
        missing = [sizes for sizes in self.call.measured_sizes if sizes not in self.measured]
        for sizes in sorted(missing, key=_num_numbers, reverse=True):
            needed_s = FEW_CALLS * len(nets) * a_number_s * _num_numbers(sizes)
            if needed_s > left_s:
                continue
            start = time.monotonic()
            with suppress(InputError):
                rounds.append(_rounds(nets, self.call.at(sizes), 0.0, FEW))
                self.measured.append(sizes)
                self.expensive.add(sizes)
            left_s -= time.monotonic() - start
        return replace(times, rounds=tuple(rounds))

    def last_times(self) -> tuple[SizeTimes, Steadiness]:
        """Time the kept backends, twice on a busy machine."""
        if self.away:
            with suppress(BackendError):
                backend, home = self.plan[self.away], self.folder / self.away
                built = load_backend(self.away, backend, self.call, home)
                record = self.records[self.away]
                self.alive[self.away] = with_checks(built, self.settings.freeze, record)
        start = time.monotonic()
        times = self._time(self.alive)
        if times.are_steady(MAX_WIDTH, MAX_DRIFT):
            return times, "steady"
        now = time.monotonic()
        if now + (now - start) > self.budget.deadline:
            return times, "busy"
        times = self._time(self.alive)
        return times, "repeated" if times.are_steady(MAX_WIDTH, MAX_DRIFT) else "busy"


def _num_numbers(sizes: CallSizes) -> int:
    """Return what a call's time grows with: the product of the first two sizes, or the one size."""
    return prod(sizes[:2])


def _affordable(
    call: NetCall, choices: Sequence[CallSizes], a_number_s: float, most_s: float
) -> dict[CallSizes, NetCall]:
    """Return calls of some sizes, the cheapest first, that take so many seconds; at least one.

    Large calls take less time a number than small ones, so the least so far is the estimate.
    """
    calls: dict[CallSizes, NetCall] = {}
    if choices:
        call.at(choices[0])  # whatever is done once is no part of the first time
    for sizes in choices:
        if calls and a_number_s * _num_numbers(sizes) > most_s:
            continue
        calls[sizes] = call.at(sizes)
        most_s -= calls[sizes].seconds
        a_number_s = min(a_number_s, calls[sizes].seconds / _num_numbers(sizes))
    return calls


def fastest_of(names: Collection[str], ms: Mapping[str, float]) -> list[str]:
    """Return the fastest name in a list, an empty one for no names."""
    return sorted(names, key=ms.__getitem__)[:1]


def for_all(built_backends: Mapping[str, BuiltBackend]) -> set[str]:
    """Return the backends that run all values of weights and arguments."""
    return {name for name, b in built_backends.items() if not (b.is_frozen or b.is_bounded)}


def timed(record: BackendRecord, times: SizeTimes) -> BackendRecord:
    """Return a record with times and speedup as the returned net calls the backend."""
    name = record.engine
    all_ms = {call: times.ms(call) for call in times.names}
    speedup = times.speedup(as_used(name))
    return replace(
        record,
        ms=all_ms.get(name),
        plain_ms=all_ms.get(plain(name), record.plain_ms),
        compared_ms=all_ms.get(_compared(name), record.compared_ms),
        speedup=speedup.value,
        speedup_low=speedup.low,
        speedup_high=speedup.high,
    )


def _rounds(
    nets: Mapping[str, Callable[..., Any]],
    call: NetCall,
    seconds: float,
    limits: RoundLimits = RoundLimits(),  # noqa: B008 (frozen)
) -> RoundTimes:
    """Time nets on the arguments of a call, eager torch in all rounds."""
    calls = {name: partial(net, *call.args, **call.kwargs) for name, net in nets.items()}
    with torch.no_grad(), quiet():
        return time_calls(calls, seconds, (plain("eager"),), limits)


def plain(name: str) -> str:
    """Return the name of the call of a backend as torch makes it."""
    return f"{name} of torch"


def _compared(name: str) -> str:
    return f"{name} compared"


def as_used(name: str) -> str:
    """Return the name of the call of a backend as the returned net makes it."""
    return plain(name) if name == "eager" else name
