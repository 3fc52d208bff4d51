"""A limit on the time of a call in this thread."""

import subprocess
import sys
import time

import pytest

from passnet.core.jobs.overtime import OvertimeError, limited_to


def test_a_loop_that_never_ends_is_stopped() -> None:
    number = 0
    with pytest.raises(OvertimeError), limited_to(0.05):
        while True:
            try:
                number += 1
            except Exception:  # noqa: BLE001, S112 (as a net may do)
                continue
    assert number


def test_a_call_that_ends_in_time_is_left_alone() -> None:
    with limited_to(0.05):
        pass
    time.sleep(0.1)
    for _ in range(200):  # also where both come at once
        try:
            with limited_to(0.001):
                time.sleep(0.001)
        except OvertimeError:
            pass
        sum(range(100))


def test_an_error_of_the_call_is_raised() -> None:
    with pytest.raises(ValueError, match="own"), limited_to(5.0):
        raise ValueError("own")


AFTERWARDS = """
import sys
from passnet.core.jobs.overtime import OvertimeError, limited_to
try:
    with limited_to(0.05):
        while True:
            pass
except OvertimeError:
    pass
sys.setprofile(lambda *_: None)
for number in range(1000):
    {**{each: number for each in range(5)}, **dict.fromkeys(range(9))}
"""


def test_nothing_is_left_for_a_profiler_to_loop_over() -> None:
    subprocess.run([sys.executable, "-c", AFTERWARDS], check=True, timeout=60)
