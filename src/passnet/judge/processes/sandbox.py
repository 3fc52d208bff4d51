"""The sandbox of processes that run candidate code, by the means of the machine.

A sandbox has no network and no service of the machine, a read-only file system but for private
folders of limited size, a process namespace that is killed as a tree and ends with the judge, no
capabilities, and a small environment. `confine.py` makes it with Linux's `unshare`, or bubblewrap
does, where only that may. `WorkerLimits` bounds every worker; `restrict.py` refuses it some system
calls and files. Not confined are reading the user's files, sockets of services outside the private
folders, and the number of processes if the judge runs as root, whom Linux exempts.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from passnet.core.jobs.children import python_command, python_environment
from passnet.errors import InputError, no_such
from passnet.judge.processes.confine import SYSTEM_WIDE, Confinement

SandboxName: TypeAlias = Literal["bubblewrap", "unshare", "none"]

PRIVATE_BYTES = 2**30
"""Size of each private folder."""
PRIVATE = ("/dev/shm", "/tmp", "/run")
"""Private folders of every sandbox; the sockets of most services lie in /run."""

_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CXX", "PYTHONPATH", "PYTHONHOME")
_PROBE_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Sandbox:
    """A means to confine a process; for `none`, `reason` tells why nothing better works.

    `own_users` tells `unshare` to make a user namespace too, which only root can go without.
    """

    name: SandboxName
    reason: str = ""
    own_users: bool = True

    @property
    def forks(self) -> bool:
        """Return whether a warm process can confine forks of itself in this way."""
        return self.name == "unshare"

    @property
    def unrestricted(self) -> tuple[str, ...]:
        """Return sentences on restrictions of `restrict.py` that do not work on this machine."""
        return () if self.name == "none" else _unrestricted(self)

    def command(
        self,
        argv: Sequence[str],
        visible: Sequence[Path] = (),
        devices: Sequence[Path] = (),
        writable: Sequence[Path] = (),
    ) -> list[str]:
        """Return the command that runs `argv` confined; inherited descriptors stay open in it.

        It can read the `visible` folders, open `devices` in /dev, and write in `writable` folders,
        which remain afterwards.
        """
        if self.name == "none":
            return list(argv)
        if self.name == "bubblewrap":
            return [*_bubblewrap(_shown(visible), devices, writable), *argv]
        return [*_unshare(self.confinement(visible, devices, writable)), *argv]

    def confinement(
        self,
        visible: Sequence[Path] = (),
        devices: Sequence[Path] = (),
        writable: Sequence[Path] = (),
    ) -> Confinement:
        """Return the same for a process that confines a fork of itself."""
        kept = ([str(path) for path in paths] for paths in (devices, writable))
        return Confinement(PRIVATE, PRIVATE_BYTES, _shown(visible), *kept, own_users=self.own_users)

    def environment(self, extra: dict[str, str]) -> dict[str, str]:
        """Return the environment of a confined process: its basic variables, and `extra`."""
        if self.name == "none":
            return {**python_environment(), **extra}
        environment = python_environment()
        inherited = {name: environment[name] for name in _KEPT_VARIABLES if name in environment}
        private = {"HOME": "/tmp", "TMPDIR": "/tmp", "PASSNET_CACHE": "/tmp/passnet"}
        return {**inherited, **private, **extra}


NO_SANDBOX = Sandbox("none", reason="switched off")

WAYS = (Sandbox("unshare"), Sandbox("unshare", own_users=False), Sandbox("bubblewrap"))
"""The means to confine, best first: `unshare` confines forks of a warm process, in milliseconds."""


def find_sandbox(choice: str = "auto", ways: Sequence[Sandbox] = WAYS) -> Sandbox:
    """Return the sandbox of this machine: one by name, or for "auto" the best that works, else
    none.

    Raises InputError for a named sandbox that does not work here, or an unknown choice.
    """
    names = ["auto", *dict.fromkeys(way.name for way in ways), "none"]
    if choice not in names:
        raise InputError(no_such("sandbox", choice, names))
    if choice == "none":
        return NO_SANDBOX
    failures = []
    for way in ways:
        if choice in ("auto", way.name):
            failure = _failure(way)
            if not failure:
                return way
            failures.append(failure)
    reason = "; ".join(dict.fromkeys(failures))
    if choice != "auto":
        raise InputError(f"no sandbox here: {reason}")
    return Sandbox("none", reason=reason)


@cache
def _failure(way: Sandbox) -> str:
    """Return why a sandbox does not work here; empty if it does."""
    command = way.command(["true"])
    try:
        probe = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_PROBE_TIMEOUT_S
        )
    except FileNotFoundError:
        return f"there is no {command[0]} (Debian's package bubblewrap has it)"
    except (OSError, subprocess.TimeoutExpired) as cause:
        return f"{way.name} does not run: {cause}"
    if probe.returncode:
        words = probe.stderr.strip().splitlines() or [f"exit code {probe.returncode}"]
        return f"{way.name} does not work here: {words[-1]}"
    return ""


@cache
def _unrestricted(way: Sandbox) -> tuple[str, ...]:
    command = way.command(python_command("-S", str(Path(__file__).with_name("restrict.py"))))
    probe = subprocess.run(command, capture_output=True, text=True, check=True)
    return tuple(probe.stdout.splitlines())


def _shown(visible: Sequence[Path]) -> list[str]:
    """Return the folders to show again, as they lie in private ones."""
    folders = dict.fromkeys([*_own_folders(), *map(Path.resolve, visible)])
    private = set(map(Path, PRIVATE))
    return [str(path) for path in folders if private.intersection(path.parents)]


def _bubblewrap(
    shown: Sequence[str], devices: Sequence[Path], writable: Sequence[Path]
) -> list[str]:
    words = [
        "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1",
        "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
    ]  # fmt: skip
    for device in devices:
        words += ["--dev-bind", str(device), str(device)]
    words += ["--remount-ro", "/dev"]
    if devices:  # CUDA gives its threads names, and for that writes to /proc/self/task
        for name in SYSTEM_WIDE:
            words += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    else:
        words += ["--remount-ro", "/proc"]
    for path in PRIVATE:
        words += ["--size", str(PRIVATE_BYTES), "--tmpfs", path]
    for path in shown:
        words += ["--ro-bind", path, path]
    for folder in writable:
        words += ["--bind", str(folder), str(folder)]
    return [*words, "--chdir", "/tmp", "--"]


def _unshare(confinement: Confinement) -> list[str]:
    words = python_command("-S", str(Path(__file__).with_name("confine.py")))
    words += ["--own-users"] if confinement.own_users else []
    words += [f"--private={path}" for path in confinement.private]
    words += [f"--show={path}" for path in confinement.visible]
    words += [f"--device={path}" for path in confinement.devices]
    words += [f"--write={path}" for path in confinement.writable]
    return [*words, f"--size={confinement.private_bytes}", "--"]


def _own_folders() -> list[Path]:
    folders = [sys.prefix, sys.base_prefix, *(folder for folder in sys.path if folder)]
    return [path for path in map(Path, folders) if path.is_dir()]
