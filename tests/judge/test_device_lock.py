"""Waiting for the machine's measuring lock is announced with who holds it."""

import logging
import select
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from passnet.core.jobs.children import descendants, end_tree, stat_of
from passnet.judge.processes.device_lock import DeviceTurns, TurnWaits, give_way
from tests.processes import runs, wait_until

HOLDER = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from passnet.judge.processes.device_lock import DeviceTurns
with DeviceTurns("cpu") as turns, turns.alone():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_lock(tmp_path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return str(tmp_path)


def test_who_waits_is_told_for_which_process(
    own_lock: str, caplog: pytest.LogCaptureFixture
) -> None:
    words = [sys.executable, "-c", HOLDER, own_lock]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with caplog.at_level(logging.WARNING, "passnet"):
            waiting = threading.Thread(target=_take_a_turn)
            waiting.start()
            deadline = time.monotonic() + 10
            while not caplog.records and time.monotonic() < deadline:
                time.sleep(0.01)
            holder.stdin.close()
            waiting.join(10)
    assert not waiting.is_alive()
    (record,) = caplog.records
    text = record.getMessage()
    assert text.startswith("waiting to measure: ") and f"{own_lock}/passnet-" in text
    assert f"held by process {holder.pid} ({sys.executable} -c " in text


def test_a_thread_that_waits_for_another_of_its_process_says_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with DeviceTurns("cpu") as turns, turns.alone():
        waiting = threading.Thread(target=_take_a_turn)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join(10)
    assert not waiting.is_alive() and not caplog.records


@pytest.mark.parametrize("num_waiting", [1, 3])
def test_who_came_first_measures_first_whoever_asks_again_and_again(num_waiting: int) -> None:
    order: list[int] = []

    def measure(number: int, num_times: int) -> None:
        with DeviceTurns("cpu") as turns:
            for _ in range(num_times):
                with turns.alone():
                    order.append(number)
                    time.sleep(0.1)

    others = [
        threading.Thread(target=measure, args=(each, 1)) for each in range(1, num_waiting + 1)
    ]
    greedy = threading.Thread(target=measure, args=(0, 12))
    with DeviceTurns("cpu") as turns, turns.alone():
        for thread in (greedy, *others):  # all wait to prepare, then to measure
            thread.start()
    for thread in (greedy, *others):
        thread.join(20)
    assert not any(thread.is_alive() for thread in (greedy, *others))
    assert set(order[: 2 * (num_waiting + 1)]) == set(range(num_waiting + 1)), order


WAITER = HOLDER.replace("with Device", 'print("waits", flush=True)\nwith Device')


def test_the_end_of_who_holds_or_waits_by_any_signal_lets_the_next_one_measure(
    own_lock: str,
) -> None:
    words = [sys.executable, "-c", WAITER, own_lock]
    with ExitStack() as stack:
        queue = []
        for _ in range(4):
            waiter = stack.enter_context(
                subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            stack.callback(waiter.kill)
            queue.append(waiter)
            assert waiter.stdout is not None and waiter.stdout.readline() == b"waits\n"
            time.sleep(0.2)
        first, second, *others = queue
        second.kill()
        assert first.stdout is not None and first.stdout.readline() == b"held\n"
        holder = first
        while others:
            holder.kill()
            ready, _, _ = select.select([other.stdout for other in others], [], [], 20)
            (holder,) = [other for other in others if other.stdout in ready]
            assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
            others.remove(holder)


def test_a_preparation_and_its_processes_stand_still_while_another_measures() -> None:
    states = []

    def measure() -> None:
        with DeviceTurns("cpu") as turns, turns.alone():
            states.extend(stat_of(pid)[0] for pid in family)
            time.sleep(0.1)

    spin = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with (
        subprocess.Popen([sys.executable, "-c", spin]) as child,
        DeviceTurns("cpu", min_run_s=0.0) as turns,
    ):
        wait_until(lambda: len(descendants(child.pid)) == 1, "no grandchild")
        family = (child.pid, *descendants(child.pid))
        assert give_way(child.pid) == 0.0  # nobody waits
        other = threading.Thread(target=measure)
        other.start()
        still_s = 0.0
        while other.is_alive():
            still_s += give_way(family[1])
        end_tree(child)
    assert states == ["T", "T"] and still_s >= 0.05 and turns.waited_s >= 0.05
    wait_until(lambda: not any(map(runs, family)), "a process is left")


def test_the_wait_of_several_threads_counts_once() -> None:
    now = [0.0]
    waits = TurnWaits(lambda: now[0])
    with waits.counted():
        now[0] = 2.0
        assert waits.seconds() == 2.0
        with waits.counted():
            now[0] = 3.0
    now[0] = 9.0
    assert waits.seconds() == 3.0


def _take_a_turn() -> None:
    with DeviceTurns("cpu", announced_after_s=0.02):
        pass
