import time

import pytest

from passnet.optimizer.compare import interleaved
from passnet.optimizer.compare.interleaved import time_calls


def busy(milliseconds: float) -> None:
    end = time.perf_counter() + milliseconds / 1e3
    while time.perf_counter() < end:
        pass


def test_times_and_speedups_are_those_of_the_calls() -> None:
    times = time_calls({"long": lambda: busy(1.2), "short": lambda: busy(1.0)}, seconds=0.1)
    assert times.ms["long"] / times.ms["short"] == pytest.approx(1.2, abs=0.1)
    found = times.speedup("short", over="long")
    assert found.low <= found.value <= found.high
    assert found.value == pytest.approx(1.2, abs=0.1)


def test_what_is_hopeless_is_not_timed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interleaved, "MAX_ROUNDS", 12)
    calls = {"short": lambda: busy(0.1), "long": lambda: busy(0.5), "kept": lambda: busy(0.5)}
    times = time_calls(calls, seconds=10, always=("kept",))
    rounds = {name: len(each) for name, each in times.rounds_ms.items()}
    assert rounds == {"short": 12, "long": interleaved.MIN_ROUNDS, "kept": 12}
