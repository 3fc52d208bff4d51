"""The kernel's account of waiting: two that want one processor both wait."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from passnet.judge.processes.run_queue import OWN_THREAD, waited_ns

needs_account = pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="this kernel does not account for waiting"
)

SPIN = """
import os, time
os.sched_setaffinity(0, {CORE})
end = time.monotonic() + 0.5
while time.monotonic() < end:
    pass
"""


@needs_account
def test_two_threads_on_one_processor_wait_for_each_other() -> None:
    core = min(os.sched_getaffinity(0))
    text = SPIN.replace("CORE", str(core))
    both = [subprocess.Popen([sys.executable, "-c", text]) for _ in range(2)]
    waited = [0, 0]
    while any(item.poll() is None for item in both):
        for index, item in enumerate(both):
            if item.returncode is None:
                waited[index] = max(waited[index], waited_ns(item.pid))
        time.sleep(0.01)
    assert min(waited) > 50e6, waited


def test_the_own_thread_is_asked_for_by_name_and_a_stranger_has_not_waited() -> None:
    before = waited_ns(OWN_THREAD)
    assert waited_ns(OWN_THREAD) >= before >= 0
    assert waited_ns(2**22 + 1) == 0
