"""The physical floor: what is impossible, and what is only fast."""

from passnet.judge.floor import Floor, make_floor, peak_gflops, write_ms


def test_a_time_below_half_of_the_floor_is_rejected_with_the_arithmetic() -> None:
    floor = Floor(1 << 20, 0.05, 0, 0.0, 1)
    assert floor.finding(0.026) is None
    found = floor.finding(0.02)
    assert found is not None and (found.weight, found.name) == ("reject", "physical_floor")
    assert "20.0 us" in found.evidence and "1048576 bytes takes 50.0 us" in found.evidence


def test_arithmetic_and_threads_count() -> None:
    floor = Floor(1 << 20, 0.05, 10**9, 100.0, 2)
    assert floor.ms == 5.0  # a billion operations at 100 a nanosecond, on two threads
    found = floor.finding(1.0)
    assert (
        found is not None and "1000000000 operations at 100 G/s take 10000.0 us" in found.evidence
    )


def test_what_was_measured_here_is_plausible() -> None:
    assert write_ms(1024) == 0.0
    gigabytes_a_second = (64 << 20) / write_ms(64 << 20) / 1e6
    assert 0.1 < gigabytes_a_second < 10_000
    assert 0.1 < peak_gflops() < 100_000
    assert make_floor(0, 0, 1).ms == 0.0
