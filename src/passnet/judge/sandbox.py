"""Confinement of the processes that run candidate code, by bubblewrap where the machine has it.

Confined is: no network, the file system read-only but for a private /tmp and /dev/shm of limited
size, a process namespace of its own that is killed as a tree, no capabilities, a small environment.
Memory, cpu time, file size and number of processes are limits that every worker gets (`Limits`).
Not confined: what can be read (all that the user can read), and the number of processes where the
judge runs as root, whom Linux exempts from it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from passnet.errors import InputError

SandboxName: TypeAlias = Literal["bubblewrap", "none"]

PRIVATE_BYTES = 2 * 2**30
"""Size of the private /tmp, and of /dev/shm."""

_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CXX", "PYTHONPATH", "PYTHONHOME")
_PROBE_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Sandbox:
    """A way to confine a process: its name, and why there is no better one (for `none`)."""

    name: SandboxName
    program: str = ""
    reason: str = ""

    def command(self, argv: Sequence[str], visible: Sequence[Path] = ()) -> list[str]:
        """The command that runs `argv` confined; inherited descriptors stay open in it.

        Args:
            argv: the command.
            visible: folders below /tmp or /dev/shm that it must see, read-only.
        """
        if self.name == "none":
            return list(argv)
        words = [
            self.program, "--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1",
            "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
            "--size", str(PRIVATE_BYTES), "--tmpfs", "/dev/shm",
            "--size", str(PRIVATE_BYTES), "--tmpfs", "/tmp",
        ]  # fmt: skip
        for path in dict.fromkeys([*_own_folders(), *map(Path.resolve, visible)]):
            if path.is_relative_to("/tmp") or path.is_relative_to("/dev/shm"):
                words += ["--ro-bind", str(path), str(path)]
        return [*words, "--chdir", "/tmp", "--", *argv]

    def environment(self, extra: dict[str, str]) -> dict[str, str]:
        """The environment of a confined process: what it needs, and `extra`."""
        if self.name == "none":
            return {**os.environ, **extra}
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        private = {"HOME": "/tmp", "TMPDIR": "/tmp", "PASSNET_CACHE": "/tmp/passnet"}
        return {**kept, **private, **extra}


NO_SANDBOX = Sandbox("none", reason="switched off")


def find_sandbox(choice: str = "auto") -> Sandbox:
    """The sandbox of this machine.

    Args:
        choice: "auto" (bubblewrap where it works, else none), "bubblewrap", or "none".

    Raises:
        InputError: bubblewrap was asked for and does not work here, or an unknown choice.
    """
    if choice not in ("auto", "bubblewrap", "none"):
        raise InputError(f"no sandbox {choice!r}; there are auto, bubblewrap, none")
    if choice == "none":
        return NO_SANDBOX
    found = _bubblewrap()
    if found.name == "none" and choice == "bubblewrap":
        raise InputError(f"no sandbox here: {found.reason}")
    return found


@cache
def _bubblewrap() -> Sandbox:
    program = shutil.which("bwrap")
    if program is None:
        return Sandbox("none", reason="there is no bwrap (Debian's package bubblewrap has it)")
    made = Sandbox("bubblewrap", program)
    try:
        done = subprocess.run(
            made.command(["true"]),
            capture_output=True,
            text=True,
            check=False,
            timeout=_PROBE_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as cause:
        return Sandbox("none", reason=f"bwrap does not run: {cause}")
    if done.returncode:
        words = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return Sandbox("none", reason=f"bwrap does not work here: {words[-1]}")
    return made


def _own_folders() -> list[Path]:
    """Folders that this Python and this package are made of."""
    places = [sys.prefix, sys.base_prefix, *(item for item in sys.path if item)]
    return [path for path in map(Path, places) if path.is_dir()]
