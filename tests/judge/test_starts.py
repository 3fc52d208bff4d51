"""The judge answers a sandbox that asks to start processes; Linux's lists hide no process."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from passnet.judge.processes.census import residents
from passnet.judge.processes.restrict import submit_starts
from passnet.judge.processes.starts import Starts
from passnet.judge.timing.measurement_findings import overhead_findings

ASKER = """
import os, socket, subprocess, sys, threading
from passnet.judge.processes.restrict import restrict_calls, submit_starts

near = socket.socket(fileno=int(sys.argv[1]))
socket.send_fds(near, [b"-"], [submit_starts()])
restrict_calls(may_lock=True)

def thread():
    before = len(os.listdir("/proc/self/task"))
    done = threading.Thread(target=int)
    done.start()
    done.join()
    while len(os.listdir("/proc/self/task")) > before:  # joined, but not yet gone
        pass

def keep():
    threading.Thread(target=threading.Event().wait, daemon=True).start()

def program():
    subprocess.run(["true"], check=True)

def fork():
    os.fork() or os._exit(0)

ways = {b"t": thread, b"k": keep, b"p": program, b"f": fork}
while way := near.recv(1):
    try:
        ways[way]()
        near.send(b"+")
    except (OSError, RuntimeError):
        near.send(b"-")
"""

Ask = Callable[[str], str]


def _is_filter_there() -> bool:
    code = "from passnet.judge.processes.restrict import submit_starts; submit_starts()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not _is_filter_there(), reason=submit_starts.__doc__ or "")


@pytest.fixture
def asker() -> Iterator[tuple[Ask, int]]:
    """A process that starts threads (t, k) and processes (p, f) as told, and its listener."""
    near, far = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-c", ASKER, str(far.fileno())], pass_fds=[far.fileno()]
    )
    far.close()
    _, (listener,), _, _ = socket.recv_fds(near, 1, 1)

    def ask(ways: str) -> str:
        answers = b""
        for way in ways.encode():
            near.send(bytes([way]))
            answers += near.recv(1)
        return answers.decode()

    yield ask, listener
    near.close()
    process.wait(10)


def test_all_may_start_until_only_threads_may(asker: tuple[Ask, int]) -> None:
    ask, listener = asker
    starts = Starts(listener, 10**6, Path("/proc"))
    assert ask("tpf") == "+++" and starts.num_refused == 0
    starts.refuse_processes()
    assert ask("ptfp") == "-+--"
    assert starts.num_refused >= 3  # subprocess tries in two ways
    starts.close()


def test_no_more_start_than_the_limit(asker: tuple[Ask, int]) -> None:
    ask, listener = asker
    starts = Starts(listener, 1, Path("/proc"))
    assert ask("tkktp") == "++---"
    starts.close()


LEADERLESS = """
import ctypes, threading, time
full = bytearray(1 << 26)
threading.Thread(target=time.sleep, args=(60,)).start()
print("ready", flush=True)
ctypes.PyDLL(None).pthread_exit(None)
"""


def test_a_process_whose_first_thread_has_ended_is_counted_with_its_memory() -> None:
    with subprocess.Popen([sys.executable, "-c", LEADERLESS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 10
        while (statm := Path(f"/proc/{process.pid}/statm").read_text()) != "0 0 0 0 0 0 0\n":
            assert time.monotonic() < deadline, statm  # its own file says that it has no memory
        found = {resident.pid: resident for resident in residents(Path("/proc"))}
        assert found[process.pid].num_bytes > 1 << 26
        process.kill()


@pytest.mark.parametrize(
    ("measured_ms", "direct_ms", "is_possible"),
    [(0.021, 0.0, False), (0.039, 0.0, True), (0.039, 0.02, False), (0.058, 0.02, True)],
)
def test_a_call_below_its_way_of_calling_and_a_direct_call_is_impossible(
    measured_ms: float, direct_ms: float, is_possible: bool
) -> None:
    rounds, direct = (((ms, ms),) * 4 for ms in (measured_ms, direct_ms))
    findings = overhead_findings("compiled", rounds, 0.04, direct if direct_ms else ())
    assert [item.name for item in findings] == ([] if is_possible else ["physical_floor"])


def test_three_rounds_of_a_direct_call_on_a_busy_machine_prove_nothing() -> None:
    rounds = ((0.896, 0.936), (0.978, 0.993), (0.933, 0.899))
    direct = ((1.102, 1.812), (1.743, 0.952), (1.097, 1.153))
    assert not overhead_findings("guarded", rounds, -0.002, direct)
