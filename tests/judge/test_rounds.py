import time

import pytest

from passnet.judge.timing.rounds import RoundLimits, TimedCall, run_rounds, time_calls


def busy(milliseconds: float) -> None:
    end = time.perf_counter() + milliseconds / 1e3
    while time.perf_counter() < end:
        pass


def test_times_and_speedups_are_those_of_the_calls() -> None:
    times = time_calls({"long": lambda: busy(1.2), "short": lambda: busy(1.0)}, seconds=0.1)
    assert times.ms("long") / times.ms("short") == pytest.approx(1.2, abs=0.1)
    found = times.speedup("short", over="long")
    assert found.low <= found.value <= found.high
    assert found.value == pytest.approx(1.2, abs=0.1)


def test_hopeless_calls_are_dropped_after_the_first_rounds() -> None:
    calls = {"short": lambda: busy(0.1), "long": lambda: busy(0.5), "kept": lambda: busy(0.5)}
    times = time_calls(calls, 10, ("kept",), RoundLimits(max_rounds=12))
    rounds = {name: len(turns.ms) for name, turns in times.turns.items()}
    assert rounds == {"short": 12, "long": RoundLimits().min_rounds, "kept": 12}


def test_rounds_end_where_no_call_is_to_go_on_and_counts_are_those_of_one_call() -> None:
    num_calls = [0]

    def count() -> None:
        num_calls[0] += 1
        busy(0.01)

    call = TimedCall(count, counts=lambda: (num_calls[0],))
    times = run_rounds({"call": call}, 10, RoundLimits(3, 80, ((20.0, 2),)), go_on=lambda _: ())
    assert times.num_rounds == 3
    assert times.turns["call"].low()[1] == pytest.approx([1.0])


def test_slow_calls_need_fewer_rounds() -> None:
    limits = RoundLimits(12, 80, ((20.0, 4), (500.0, 2)), max)
    assert [limits.least(ms) for ms in (1.0, 30.0, 600.0)] == [12, 4, 2]
    assert [limits.is_slow(ms) for ms in (1.0, 30.0)] == [False, True]
