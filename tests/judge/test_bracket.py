"""The promises of the bracket: who runs when, which draws come when, and the time of a burst."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from passnet.core.jobs.children import descendants
from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import REFERENCE
from passnet.judge.judge import prepared_graph
from passnet.judge.processes.loaded_worker import LoadedWorker, PreparedGraph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.standstill import Spent, Standstill, StopPlace, _Account, account_after
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import JudgeSettings, TimingPlan
from passnet.judge.timing import clock, fresh_inputs
from passnet.judge.timing.fresh_inputs import Draw, FreshInputs
from passnet.judge.timing.timed_worker import Look, Seen, TimedWorker, burst_ns
from passnet.judge.verdict.check import FRESH, RECORDED
from passnet.judge.verdict.compare import Comparison
from passnet.judge.verdict.findings import Finding, finding
from tests.judge.folders import small_graph

pytestmark = pytest.mark.xdist_group("worker")

MS = 1_000_000

STOPS = """
import ctypes, os, signal, threading, time
from functools import partial
stop = partial(os.kill, os.getpid(), signal.SIGSTOP)
def spin(clock=time.thread_time):
    end = clock() + 0.01
    while clock() < end:
        pass
"""


@contextmanager
def stopping(
    body: str, sleep: Callable[[float], None] = time.sleep
) -> Iterator[tuple[int, Standstill]]:
    """A process that has stopped itself for the first time, and is let run by the test."""
    with subprocess.Popen([sys.executable, "-c", STOPS + body]) as process:
        still = Standstill(process.pid, has_own_processes=True, sleep=sleep)
        try:
            still.await_stop(lambda: None)
            yield process.pid, still
        finally:
            still.close()
            process.kill()


def test_what_a_process_runs_while_it_should_stand_still_is_seen() -> None:
    with stopping("while True:\n    stop()\n    spin()\n") as (pid, still):
        assert still.run(lambda: None).cpu_ns >= 10 * MS
        assert still.ran_meanwhile_ns() == 0
        os.kill(pid, signal.SIGCONT)  # as a timer of its own would
        still.await_stop(lambda: None)
        assert still.ran_meanwhile_ns() >= 10 * MS
        still.run(lambda: None)
        assert 10 * MS <= still.ran_meanwhile_ns() < 20 * MS, (
            "it is not forgotten, nor is a run in it"
        )


def test_what_ran_is_counted_once_the_process_has_left_its_processor() -> None:
    """By its state it has stopped before that, and the kernel counts what it ran afterwards."""
    before = _Account(cpu_ns=0, main_ns=0, waited_ns=0, num_waits=1, last_pid=7)
    after = replace(before, cpu_ns=10 * MS, main_ns=10 * MS, num_waits=2)
    accounts = [after, before, before, before]
    assert account_after(before, accounts.pop) == after and not accounts


def test_a_long_wait_asks_seldom() -> None:
    """Each question takes the processor from a worker that shares it with the judge."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(seconds)

    with stopping("while True:\n    stop()\n    time.sleep(0.6)\n", pause) as (_, still):
        pauses.clear()
        spent = still.run(lambda: None)
    assert spent.wall_ns >= 600 * MS
    assert pauses[0] < 0.0001, "short calls are seen to end at once"
    assert len(pauses) < 300 and max(pauses) <= 0.005


def test_what_all_threads_ran_counts() -> None:
    body = (
        "while True:\n    stop()\n    one = threading.Thread(target=spin)\n"
        "    one.start()\n    spin()\n    one.join()\n"
    )
    with stopping(body) as (_, still):
        spent = still.run(lambda: None)
    assert spent.cpu_ns >= 20 * MS and spent.main_ns <= spent.cpu_ns - 10 * MS
    assert spent.num_started >= 1 and burst_ns(spent, 1, is_on_device=False) == spent.wall_ns


def test_a_stop_in_another_place_is_told_apart() -> None:
    body = "libc = ctypes.CDLL(None)\nstop(); stop(); libc.kill(os.getpid(), signal.SIGSTOP)\n"
    with stopping(body) as (_, still):
        first = still.place()
        still.run(lambda: None)
        second = still.place()
        if first is None or second is None:
            pytest.skip("this kernel does not say where a process has stopped")
        offsets = still.returns(first, second)
        [hole, *_] = [each for each in range(0, 512, 8) if each not in offsets]
        going_on = int.from_bytes(first.word(offsets[0]), sys.byteorder)
        for address, is_one in ((going_on, True), (going_on + 1, False)):
            left_over = [_with_word(stop, hole, address) for stop in (first, second)]
            assert (hole in still.returns(*left_over)) == is_one, "nobody called from there"
        assert not still._is_called(going_on >> 32 << 32), "half of an address over a 0"
        still.run(lambda: None)
        elsewhere = still.place()
    assert offsets and second.is_same(first, offsets)
    assert elsewhere is not None and not elsewhere.is_same(first, offsets)
    returning = StopPlace(62, 4096, 8192, bytes(range(32)))
    forged = StopPlace(62, 4096, 8192, bytes(range(16)) + bytes(16))
    assert forged.is_same(returning, [0, 8]) and not forged.is_same(returning, [16])


def _with_word(stop: StopPlace, offset: int, word: int) -> StopPlace:
    stack = bytearray(stop.stack)
    stack[offset : offset + 8] = word.to_bytes(8, sys.byteorder)
    return replace(stop, stack=bytes(stack))


TIMES = {
    "others had the processor": (Spent(100, 100, 900, 1000, 1, 0), 1, False, 100),
    "it waited by itself": (Spent(100, 100, 0, 1000, 2, 0), 1, False, 1000),
    "both": (Spent(100, 100, 300, 1000, 2, 0), 1, False, 700),
    "its own threads had the processor": (Spent(500, 100, 300, 1000, 2, 0), 1, False, 1000),
    "its threads ran side by side": (Spent(1500, 800, 0, 1000, 2, 0), 1, False, 1500),
    "several threads are allowed": (Spent(1500, 800, 0, 1000, 1, 0), 2, False, 1000),
    "something was started": (Spent(100, 100, 900, 1000, 1, 1), 1, False, 1000),
    "a device worked": (Spent(100, 100, 0, 1000, 1, 0), 1, True, 1000),
}


@pytest.mark.parametrize("name", TIMES)
def test_the_time_of_a_burst(name: str) -> None:
    spent, num_threads, is_on_device, ns = TIMES[name]
    assert burst_ns(spent, num_threads, is_on_device) == ns


def test_one_call_in_eight_is_on_extreme_inputs() -> None:
    graph, random = small_graph().graph, np.random.default_rng(0)
    sets = [make_inputs(graph, kind, 0) for kind in ("fresh", "recorded", "extreme")]
    fresh = FreshInputs(graph.tensors, sets, random)
    for num_calls, num_bursts in ((3, 4000), (100, 40)):
        given: Any = ([], None, TimingPlan(), fresh, random, None, [], 1, set(), num_calls)
        rounds = clock._Interleaving(*given)
        draws = [draw for _ in range(num_bursts) for draw in rounds._draws()]
        share = np.mean([draw.input_set == fresh_inputs.EXTREME_SET for draw in draws])
        assert len(draws) == num_calls * num_bursts and 0.115 < share < 0.135
        assert fresh_inputs.RECORDED_SET not in {draw.input_set for draw in draws}


def test_wrong_values_of_an_earlier_measurement_are_remembered() -> None:
    right, wrong = Comparison("ok", -10), Comparison("ok", None, "output 0 is wrong")
    first, last = (
        clock.Measurement(
            (clock.WorkerTiming((), (), 3, 0.0, seen, (), (), None, None, None),), frozenset()
        )
        for seen in (wrong, right)
    )
    assert last.remembering(first).timings[0].comparison == wrong


def test_an_impossible_time_counts_if_it_is_measured_again() -> None:
    floor, reads = finding("physical_floor", "by 1 us"), finding("static_buffer", "overlaps")
    again = finding("physical_floor", "by 2 us")

    def measured(*findings: Finding) -> clock.Measurement:
        right = Comparison("ok", -10)
        timing = clock.WorkerTiming((), (), 3, 0.0, right, findings, (), None, None, None)
        return clock.Measurement((timing,), frozenset())

    assert measured(floor).needs_repeat and not measured(reads).needs_repeat
    repeated = measured().remembering(measured(floor, reads))
    assert repeated.timings[0].findings == (reads,)
    assert measured(again).remembering(measured(floor)).timings[0].findings == (again,)


Event = tuple[int, str, tuple[Draw, ...]]
"""A worker by its number, what was done to it (or to all, "d": where to look was drawn), and what
was written."""
TIMED, ORACLE = (0, 1, 2), 3


class LoggedWorker(TimedWorker):
    """A worker that logs the calls of its clock."""

    log: list[Event]
    number: int

    def write(self, fresh: FreshInputs, draws: Sequence[Draw]) -> None:
        self.log.append((self.number, "w", tuple(draws)))
        super().write(fresh, draws)

    def call(self, count: int) -> Spent:
        self.log.append((self.number, "c", ()))
        return super().call(count)

    def look_at(self, fresh: FreshInputs, look: Look) -> Seen:
        self.log.append((self.number, "l", ()))
        return super().look_at(fresh, look)

    def free(self) -> None:
        self.log.append((self.number, "f", ()))
        super().free()


class LoggedRandom:
    """A random generator that logs the draws of calls to look at."""

    def __init__(self, log: list[Event]) -> None:
        self._log = log
        self._random = np.random.default_rng(0)

    def permutation(self, values: Any) -> Any:
        if isinstance(values, int):
            self._log.append((self._log[-1][0], "d", ()))
        return self._random.permutation(values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._random, name)


@pytest.fixture
def events(parents: ParentPool) -> list[Event]:
    """The events, in order, while a reference and two equal candidates were timed."""
    log: list[Event] = []
    plan = TimingPlan(seconds=0.02, min_rounds=3, max_rounds=3, audit_share=0.5)
    settings = JudgeSettings(timing=plan, limits=WorkerLimits(1024), self_tolerance=1e9)
    prepared = prepared_graph(parents, small_graph(), settings)
    input_sets = [prepared.input_sets[number] for number in (FRESH, RECORDED)]
    input_sets.append(make_inputs(small_graph().graph, "extreme", 2))
    fresh = FreshInputs(prepared.tensors, input_sets, np.random.default_rng(1))
    random: Any = LoggedRandom(log)
    with ExitStack() as stack:
        workers = []
        for _ in range(4):
            loaded = LoadedWorker(parents.reference(), prepared, REFERENCE, settings)
            stack.enter_context(loaded).run(0)
            worker = LoggedWorker(loaded, plan.max_calls, settings.call_timeout_s)
            worker.log, worker.number = log, len(workers)
            workers.append(worker)
            stack.callback(worker.close)
        *timed, oracle = workers
        measurement = clock.interleave(timed, oracle, plan, fresh, random, prepared)
    assert all(timing.comparison.status == "ok" for timing in measurement.timings)
    return log


def test_where_to_look_is_drawn_when_all_workers_have_run_their_bursts(
    events: list[Event],
) -> None:
    stories, num_draws = dict.fromkeys((*TIMED, ORACLE), ""), 0
    for worker, letter, _ in events:
        if letter != "d":
            stories[worker] += letter
            continue
        num_draws += 1
        assert all(stories[number].endswith("wc") for number in TIMED[1:]), stories
    assert num_draws > 4
    for number in TIMED:
        # Warm-up; then turns: new values written, a call, in some a look, outputs freed, or held
        # once; and for candidates after some a burst like it that does not count, and a call that
        # is observed. At the end some calls are made while caches are cold.
        extra, cold = "(wclfwf)?" if number else "", "(wcf){4}"
        story = stories[number]
        assert re.fullmatch(f"(wcf){{6}}(wc(l?f)?{extra}){{7}}{cold}", story), story
        assert re.search(f"wclf{extra}{cold}$", story)  # the last turn is always looked at


def test_no_value_is_used_twice_and_the_oracle_gets_it_when_all_have_called(
    events: list[Event],
) -> None:
    written: dict[int, list[tuple[Draw, ...]]] = {number: [] for number in (*TIMED, ORACLE)}
    called = dict.fromkeys(TIMED, 0)
    num_answered = 0
    for worker, letter, draws in events:
        if letter == "w":
            written[worker].append(draws)
        elif letter == "c" and worker != ORACLE:
            called[worker] = len(written[worker])
        if letter == "w" and worker == ORACLE and written[TIMED[1]]:  # first it has some of its own
            num_answered += 1
            for number in TIMED[1:]:
                assert called[number] == len(written[number])
                assert set(draws) <= set(written[number][-1])
    assert num_answered > 4
    for number in TIMED:
        every = [draw for burst in written[number] for draw in burst]
        assert len(every) > 15 and len(set(every)) == len(every)


@contextmanager
def three_workers(
    parents: ParentPool, prepared: PreparedGraph, settings: JudgeSettings
) -> Iterator[list[TimedWorker]]:
    """Three workers of the reference that have run once, the last one as an oracle."""
    assert settings.timing is not None, "they are timed"
    with ExitStack() as stack:
        workers = []
        for _ in range(3):
            loaded = LoadedWorker(parents.reference(), prepared, REFERENCE, settings)
            stack.enter_context(loaded).run(0)
            max_calls = settings.timing.max_calls
            workers.append(TimedWorker(loaded, max_calls, settings.call_timeout_s))
            stack.callback(workers[-1].close)
        yield workers


def test_a_repeated_measurement_holds_a_burst_of_its_own(parents: ParentPool) -> None:
    plan = TimingPlan(seconds=0.02, min_rounds=3, max_rounds=3)
    settings = JudgeSettings(timing=plan, limits=WorkerLimits(1024))
    prepared = prepared_graph(parents, small_graph(), settings)
    fresh = FreshInputs(prepared.tensors, prepared.input_sets[:2], np.random.default_rng(1))
    with three_workers(parents, prepared, settings) as (*timed, oracle):
        for _ in range(2):
            random = np.random.default_rng(3)
            measurement = clock.interleave(timed, oracle, plan, fresh, random, prepared)
            assert not [timing.findings for timing in measurement.timings if timing.findings]
            assert all(worker.may_hold for worker in timed)


@pytest.mark.parametrize("keeps_awake", [True, False])
def test_processors_are_kept_awake_while_workers_are_timed(
    parents: ParentPool, keeps_awake: bool
) -> None:
    policies: list[int] = []

    class Watched(FreshInputs):
        def write(self, draw: Draw, index: int, target: np.ndarray) -> None:
            policies.extend(map(os.sched_getscheduler, descendants(os.getpid())))
            super().write(draw, index, target)

    plan = TimingPlan(seconds=0.1, min_rounds=3, max_rounds=9, keeps_awake=keeps_awake)
    settings = JudgeSettings(timing=plan, limits=WorkerLimits(1024))
    prepared = prepared_graph(parents, small_graph(), settings)
    random = np.random.default_rng(1)
    fresh = Watched(prepared.tensors, prepared.input_sets[:2], random)
    with three_workers(parents, prepared, settings) as (*timed, oracle):
        clock.interleave(timed, oracle, plan, fresh, random, prepared)
    assert (os.SCHED_IDLE in policies) is keeps_awake
    assert os.SCHED_IDLE not in map(os.sched_getscheduler, descendants(os.getpid()))
