"""Waiting for the machine's measuring lock is announced with who holds it."""

import logging
import subprocess
import sys
import threading
import time

import pytest

from passnet.judge.processes.device_lock import DeviceTurns

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


def _take_a_turn() -> None:
    with DeviceTurns("cpu", announced_after_s=0.02):
        pass
