"""Faults of the machine that tests bring about: files that may not grow, disks that are full."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


def enlarge(disk: Path, size: str) -> None:
    """Make room on a disk of `small_disk`."""
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)


class MarkedRuns:
    """Runs programs whose processes can be found again, also those that are confined."""

    def __init__(self, folder: Path) -> None:
        self._path = f"{os.environ['PATH']}:{folder / 'marks-processes-of-a-test'}"

    def run(self, command: list[str], timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a program and wait for it."""
        environment = {**os.environ, "PATH": self._path}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )

    def left(self) -> list[str]:
        """The command lines of what still runs."""
        mark = self._path.rpartition(":")[2].encode()
        commands = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdecimal() and mark in (folder / "environ").read_bytes():
                    commands.append((folder / "cmdline").read_text())
        return commands
