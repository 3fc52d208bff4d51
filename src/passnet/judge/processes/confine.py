"""The file system and session of a sandboxed process, made inside its namespaces before it begins.

Run by path, with the standard library alone, as the first process that `unshare` made; it ends by
becoming the command. Needs Linux 5.12, to make a tree of mounts read-only.
"""

import argparse
import ctypes
import os
import signal
from pathlib import Path

_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_FROM_DESCRIPTOR = 4
_READ_ONLY, _NO_DEVICES = 1, 4  # the same for mount and mount_setattr

_NUMBERS = {"open_tree": 428, "move_mount": 429, "mount_setattr": 442}
"""System calls younger than many C libraries, with one number on all of torch's machines."""
SYSTEM_WIDE = ("bus", "fs", "irq", "sys", "sysrq-trigger")
"""Writable entries of /proc that belong to no process."""

_DEVICES = ("null", "zero", "full", "random", "urandom")
_LINKS = {"fd": "", "stdin": "0", "stdout": "1", "stderr": "2"}

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Confine this process as the arguments say, and become the command that ends them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--private", action="append", default=[], help="a folder to make private")
    parser.add_argument("--size", type=int, required=True, help="largest size of each, in bytes")
    parser.add_argument("--show", action="append", default=[], help="a folder to keep, read-only")
    parser.add_argument("--device", action="append", default=[], help="a file in /dev to keep")
    parser.add_argument("--write", action="append", default=[], help="a folder to keep as it is")
    parser.add_argument("--own-users", action="store_true", help="the user namespace is its own")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    access = (options.show, options.device, options.write)
    _confine(options.private, options.size, access, options.own_users)
    os.setsid()
    os.chdir("/tmp")
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and exec would keep that
        signal.signal(number, signal.SIG_DFL)
    os.execvp(options.command[0], options.command)


def _confine(
    private: list[str], size_bytes: int, access: tuple[list[str], ...], own_users: bool
) -> None:
    visible, extra_devices, writable = access
    devices = {
        path: _copy(path) for path in (*[f"/dev/{name}" for name in _DEVICES], *extra_devices)
    }
    folders = {path: _copy(path) for path in writable}
    _mount("proc", "/proc")
    if own_users:  # else the command could make one with capabilities
        Path("/proc/sys/user/max_user_namespaces").write_text("0", encoding="ascii")
    _restrict("/", _READ_ONLY | _NO_DEVICES)
    folders |= {path: _copy(path) for path in visible}  # restricted like their sources
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

    for path in private:
        _mount("tmpfs", path, f"size={size_bytes},mode=755")
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
