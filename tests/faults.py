"""Faults of the machine that tests bring about: files that may not grow, disks that are full."""

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def limited_files(num_bytes: int) -> Iterator[None]:
    """Refuse this process, and those that it starts, larger files (EFBIG)."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def small_disk(folder: Path, size: str, *options: str) -> Iterator[Path]:
    """A disk of a size, as mount has it ("64k"); skips the test where none may be mounted."""
    folder.mkdir(exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "tmpfs", folder]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("a disk of our own cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
