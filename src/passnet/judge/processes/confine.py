"""Namespaces of a sandboxed process, with a file system of its own, made before it begins.

Run by path, with the standard library alone, it becomes the parent of a command in fresh
namespaces. A warm process uses it after a fork. Needs Linux 5.12, to make a tree of mounts
read-only.
"""

import argparse
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_FROM_DESCRIPTOR = 4
_READ_ONLY, _NO_DEVICES = 1, 4  # the same for mount and mount_setattr

_NEW_USERS = 0x10000000
_NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
"""Of mounts, host names, communication between processes, processes, and networks."""
_MS_RECURSIVE, _MS_PRIVATE = 1 << 14, 1 << 18
_PR_SET_PDEATHSIG, _PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 1, 3, 4
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITIES_3 = 0x20080522

_NUMBERS = {"open_tree": 428, "move_mount": 429, "mount_setattr": 442}
"""System calls younger than many C libraries, with one number on all of torch's machines."""
SYSTEM_WIDE = ("bus", "fs", "irq", "sys", "sysrq-trigger")
"""Writable entries of /proc that belong to no process."""

_DEVICES = ("null", "zero", "full", "random", "urandom")
_LINKS = {"fd": "", "stdin": "0", "stdout": "1", "stderr": "2"}

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Confinement:
    """What a confined process has: private folders, and paths that it keeps.

    `own_users` gives it a user namespace, which only root can go without.
    """

    private: Sequence[str]
    private_bytes: int
    visible: Sequence[str] = ()
    devices: Sequence[str] = ()
    writable: Sequence[str] = ()
    own_users: bool = True


def run_confined(
    confinement: Confinement, action: Callable[[], object], born: Callable[[int], None]
) -> NoReturn:
    """Run an action as the first process of fresh namespaces; end with its exit code.

    This process must have one thread. It waits outside the new process namespace, and either ends
    with the other. `born` is called here, with the number of the new process, before that goes on.
    """
    _die_with_parent()
    _make_namespaces(confinement.own_users)
    wait, go = os.pipe()
    pid = os.fork()
    if pid:
        born(pid)
        os.close(go)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        os._exit(code if code >= 0 else 128 - code)
    try:
        os.close(go)
        os.read(wait, 1)
        os.close(wait)
        _make_file_system(confinement)
        os.setsid()
        os.chdir("/tmp")
        _drop_capabilities()
        _die_with_parent()  # last: new credentials undo it
        action()
    except BaseException as cause:  # noqa: BLE001 (a fork: nothing else may run)
        print(f"{type(cause).__name__}: {cause}", file=sys.stderr, flush=True)
    finally:
        os._exit(1)
    raise AssertionError("the process has ended")


def main() -> None:
    """Run the command that ends the arguments in a confined process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--private", action="append", default=[], help="a folder to make private")
    parser.add_argument("--size", type=int, required=True, help="largest size of each, in bytes")
    parser.add_argument("--show", action="append", default=[], help="a folder to keep, read-only")
    parser.add_argument("--device", action="append", default=[], help="a file in /dev to keep")
    parser.add_argument("--write", action="append", default=[], help="a folder to keep as it is")
    parser.add_argument("--own-users", action="store_true", help="the user namespace is its own")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    paths = (options.show, options.device, options.write)
    confinement = Confinement(options.private, options.size, *paths, options.own_users)

    def become() -> None:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, exec would keep that
            signal.signal(number, signal.SIG_DFL)
        os.execvp(options.command[0], options.command)

    run_confined(confinement, become, lambda _: None)


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _make_namespaces(own_users: bool) -> None:
    user, group = os.geteuid(), os.getegid()
    dumpable = _libc.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0)
    kinds = _NAMESPACES | (_NEW_USERS if own_users else 0)
    _check(_libc.unshare(kinds), "unshare")
    if own_users:
        _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # else its own files in /proc are root's
        for name, text in (
            ("uid_map", f"{user} {user} 1"),
            ("setgroups", "deny"),
            ("gid_map", f"{group} {group} 1"),
        ):
            Path("/proc/self", name).write_text(text, encoding="ascii")
        _libc.prctl(_PR_SET_DUMPABLE, dumpable, 0, 0, 0)
    flags = ctypes.c_ulong(_MS_RECURSIVE | _MS_PRIVATE)
    _check(_libc.mount(b"none", b"/", None, flags, None), "mount /")


def _drop_capabilities() -> None:
    number = 0
    while _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def _make_file_system(confinement: Confinement) -> None:
    extra_devices, writable = confinement.devices, confinement.writable
    devices = {
        path: _copy(path) for path in (*[f"/dev/{name}" for name in _DEVICES], *extra_devices)
    }
    folders = {path: _copy(path) for path in writable}
    _mount("proc", "/proc")
    if confinement.own_users:  # else the process could make one with capabilities
        Path("/proc/sys/user/max_user_namespaces").write_text("0", encoding="ascii")
    _restrict("/", _READ_ONLY | _NO_DEVICES)
    # Those are restricted like their sources.
    folders |= {path: _copy(path) for path in confinement.visible}
    if extra_devices:  # CUDA gives its threads names, and for that writes to /proc/self/task
        paths = [f"/proc/{name}" for name in SYSTEM_WIDE if Path("/proc", name).exists()]
        restricted = {path: _copy(path) for path in paths}
        _set_attributes("/proc", 0, _READ_ONLY)
        for path, tree in restricted.items():
            _place(tree, path)

    _mount("tmpfs", "/dev", "size=64k,mode=755")
    Path("/dev/shm").mkdir()
    for name, target in _LINKS.items():
        Path("/dev", name).symlink_to(Path("/proc/self/fd", target))
    for path, tree in devices.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
        _place(tree, path)
    _restrict("/dev", _READ_ONLY)

    for path in confinement.private:
        _mount("tmpfs", path, f"size={confinement.private_bytes},mode=755")
    for path, tree in folders.items():
        Path(path).mkdir(parents=True, exist_ok=True)
        _place(tree, path)


def _mount(kind: str, path: str, options: str = "") -> None:
    names = (kind.encode(), os.fsencode(path), kind.encode())
    flags = ctypes.c_ulong(_NO_DEVICES)
    _check(_libc.mount(*names, flags, options.encode()), f"mount {path}")


def _copy(path: str) -> int:
    flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC
    return _call("open_tree", path, _AT_FDCWD, os.fsencode(path), flags)


def _place(tree: int, path: str) -> None:
    target = (_AT_FDCWD, os.fsencode(path), _MOVE_MOUNT_FROM_DESCRIPTOR)
    _call("move_mount", path, tree, b"", *target)
    os.close(tree)


def _restrict(path: str, attributes: int) -> None:
    _set_attributes(path, attributes, 0)


def _set_attributes(path: str, new: int, cleared: int) -> None:
    record = (ctypes.c_uint64 * 4)(new, cleared)
    _call("mount_setattr", path, _AT_FDCWD, os.fsencode(path), _AT_RECURSIVE, record, 32)


def _call(name: str, path: str, *arguments: int | bytes | ctypes.Array[ctypes.c_uint64]) -> int:
    words = [
        ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments
    ]
    return _check(_libc.syscall(ctypes.c_long(_NUMBERS[name]), *words), f"{name} {path}")


def _check(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), call)
    return result


if __name__ == "__main__":
    main()
