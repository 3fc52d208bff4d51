"""The heap of a worker before it is timed."""

import subprocess
import sys

from passnet.core.jobs.children import python_environment

PROGRAM = """
import torch
from passnet.judge.worker.heap import fill_gaps

pieces = [torch.empty(size) for size in (10_000, 30_000, 100_000) for _ in range(20)]
del pieces[::2]
first, second = fill_gaps(), fill_gaps()
print(first >= 20, second)
"""


def test_what_was_freed_is_taken_once() -> None:
    environment = {
        **python_environment(),
        "MALLOC_MMAP_THRESHOLD_": str(2**25),
        "MALLOC_TOP_PAD_": str(2**26),
        "OMP_NUM_THREADS": "1",
    }
    words = [sys.executable, "-P", "-c", PROGRAM]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0"]
