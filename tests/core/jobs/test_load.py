"""Processes that spin end with their block, and with the process that wanted them."""

import subprocess
import sys

import pytest

from passnet.core.jobs.children import spinning
from tests.processes import runs, wait_until


def test_spinning_processes_end_with_their_block() -> None:
    with pytest.raises(KeyError), spinning(2) as pids:
        assert len(set(pids)) == 2 and all(map(runs, pids))
        raise KeyError
    assert not any(map(runs, pids))


def test_spinning_processes_end_with_a_process_that_is_killed() -> None:
    code = (
        "import time; from passnet.core.jobs.children import spinning\n"
        "with spinning(1) as pids:\n    print(*pids, flush=True)\n    time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        wait_until(lambda: runs(pid), "it does not begin")
        parent.kill()
    wait_until(lambda: not runs(pid), "it still spins")
