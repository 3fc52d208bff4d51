"""Processes that do nothing but spin, so that a machine is busy for as long as a block runs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from passnet.core.jobs.lifetime import end_with_parent
from passnet.core.jobs.python import python_command, python_environment


@contextmanager
def spinning(num_processes: int) -> Iterator[list[int]]:
    """Some processes that spin, by their ids; they end with the block, or with this process."""
    command = python_command("-m", "passnet.core.jobs.busy_cores", str(os.getpid()))
    with ExitStack() as stack:
        pids = []
        for _ in range(num_processes):
            process = subprocess.Popen(command, env=python_environment())
            stack.callback(process.wait)
            stack.callback(process.kill)
            pids.append(process.pid)
        yield pids


def main(parent: int) -> None:
    """Spin for as long as the process `parent` is there, which has started this one."""
    end_with_parent()
    while os.getppid() == parent:
        for _ in range(1_000_000):
            pass


if __name__ == "__main__":
    main(int(sys.argv[1]))
