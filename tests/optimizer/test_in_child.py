"""Child processes of backends."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.processes import runs, wait_until

SLEEPS = """
import os, sys, time
from pathlib import Path
from passnet.optimizer.backends.in_child import in_fork

def work(folder):
    (folder / "started").write_text(str(os.getpid()))
    (folder / "started").rename(folder / "pid")
    time.sleep(600)

in_fork(work, Path(sys.argv[1]))
"""


def test_no_work_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", SLEEPS, str(tmp_path)])
    try:
        wait_until((tmp_path / "pid").exists, "no worker began", 100)
        worker = int((tmp_path / "pid").read_text())
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_until(lambda: not runs(worker), "the worker is left", 30)
