"""Attempts of code to escape its sandbox; `passnet judge doctor` runs them in a worker.

Each returns whether it succeeded. None touches foreign data.
"""

import ctypes
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_NEW_USERS, _NEW_MOUNTS = 0x10000000, 0x20000
_IO_URING_SETUP, _PIDFD_OPEN, _PIDFD_GETFD = 425, 434, 438  # the same on all machines
_SIGEVENT_SIZE = 64

_children: list[int] = []
_held: list[Any] = []
"""Objects that must outlive an attempt: the locks that another intruder feels for."""


def run(order_file: str) -> None:
    """Try the doctor's attempts; raise RuntimeError with the successful names as @JSON@."""
    order = json.loads(Path(order_file).read_text(encoding="utf-8"))
    successes = [name for name in order["attempts"] if _succeeds(ATTEMPTS[name], order)]
    raise RuntimeError(f"@{json.dumps(successes)}@")


def _succeeds(attempt: Callable[[dict[str, Any]], bool], order: dict[str, Any]) -> bool:
    if attempt is take_locks:
        return attempt(order)
    pid = os.fork()
    if pid == 0:
        is_success = False
        with suppress(OSError, MemoryError, ValueError, AttributeError):
            is_success = attempt(order)
        for child in _children:
            os.kill(child, signal.SIGKILL)
        os._exit(is_success)
    return os.waitpid(pid, 0)[1] >> 8 == 1


def _call(name: str, *arguments: Any) -> bool:
    return getattr(_libc, name)(*arguments) not in (-1, ctypes.c_void_p(-1).value)


def _syscall(number: int, *arguments: Any) -> bool:
    return int(_libc.syscall(ctypes.c_long(number), *arguments)) >= 0


def reach_network(order: dict[str, Any]) -> bool:
    """Connect to a port of this machine on which the doctor listens."""
    socket.create_connection(("127.0.0.1", order["port"]), 2).close()
    return True


def write_outside(order: dict[str, Any]) -> bool:
    """Make a file in any of some folders."""
    for folder in order["folders"]:
        with suppress(OSError), tempfile.TemporaryFile(dir=folder):
            return True
    return False


def see_processes(order: dict[str, Any]) -> bool:
    """Find the doctor's victim among the processes that /proc shows."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if order["mark"].encode() in path.read_bytes():
                return True
    return False


def signal_process(order: dict[str, Any]) -> bool:
    """Send the victim a signal that it ignores."""
    os.kill(order["victim"], signal.SIGURG)
    return True


def access_memory(order: dict[str, Any]) -> bool:
    """Open the memory of the parent of workers, of the victim, or of a child."""
    child = _child()
    for pid in (os.getppid(), 1, order["victim"], child):
        with suppress(OSError):
            os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY))
            return True
    word = ctypes.create_string_buffer(8)
    part = struct.pack("NN", ctypes.addressof(word), len(word))
    return any(
        _call(name, child, part, ctypes.c_ulong(1), part, ctypes.c_ulong(1), ctypes.c_ulong(0))
        for name in ("process_vm_readv", "process_vm_writev")
    )


def trace(_: dict[str, Any]) -> bool:
    """Trace a child, or be traced."""
    attach, trace_me = 16, 0
    return _call("ptrace", attach, _child(), None, None) or _call("ptrace", trace_me, 0, None, None)


def map_twice(_: dict[str, Any]) -> bool:
    """Map the pages of shared memory at a second address, as a copy that costs nothing."""
    old_size, may_move = 0, 1
    pages = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    _libc.mremap.restype = ctypes.c_void_p
    return _call("mremap", ctypes.c_void_p(address), old_size, mmap.PAGESIZE, may_move)


def make_memory_file(_: dict[str, Any]) -> bool:
    """Make a file of memory, which no limit of a process counts."""
    return os.memfd_create("intruder") >= 0


def take_descriptor(_: dict[str, Any]) -> bool:
    """Take an open file of a child."""
    handle = _libc.syscall(ctypes.c_long(_PIDFD_OPEN), _child(), 0)
    return _syscall(_PIDFD_GETFD, handle, 1, 0)


def take_locks(order: dict[str, Any]) -> bool:
    """Lock a file that other sandboxes can read, in every possible way, and keep the locks."""
    stream = open(order["shared"], "rb")  # noqa: SIM115, PTH123 (to be held)
    _held.append(stream)
    for command in (fcntl.F_OFD_SETLK, fcntl.F_SETLK):
        with suppress(OSError):
            fcntl.fcntl(stream, command, _lock(fcntl.F_RDLCK))
    with suppress(OSError):
        fcntl.flock(stream, fcntl.LOCK_SH)
    with suppress(OSError):
        fcntl.fcntl(stream, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    return False


def _lock(kind: int) -> bytes:
    """Return the C library's record of a lock on one byte, far behind a file's end."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, 1 << 40, 1, 0)


def feel_locks(order: dict[str, Any]) -> bool:
    """See the locks that an intruder in another sandbox holds."""
    with open(order["shared"], "rb") as stream:  # noqa: PTH123
        for command in (fcntl.F_OFD_GETLK, fcntl.F_GETLK):
            with suppress(OSError):
                lock = fcntl.fcntl(stream, command, _lock(fcntl.F_WRLCK))
                if struct.unpack_from("h", lock) != (fcntl.F_UNLCK,):
                    return True
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def watch_file(order: dict[str, Any]) -> bool:
    """Be notified when another sandbox opens a file."""
    watcher = _libc.inotify_init()
    return watcher >= 0 and _call("inotify_add_watch", watcher, order["shared"].encode(), 0x20)


def continue_itself(_: dict[str, Any]) -> bool:
    """Send, now or later, the signal that resumes a stopped process."""
    number, set_signal, death_signal, unlock = signal.SIGCONT.value, 10, 1, 0x40045431
    event = struct.pack("qii", 0, number, 0).ljust(_SIGEVENT_SIZE, b"\0")
    with suppress(OSError), socket.socket() as stream:
        fcntl.fcntl(stream, set_signal, number)
        return True
    with suppress(OSError):  # at the end of a terminal
        fcntl.ioctl(os.open("/dev/ptmx", os.O_RDWR), unlock, struct.pack("i", 0))
        return True
    child = _child()
    return (
        _call("kill", os.getpid(), number)
        or _call("prctl", death_signal, ctypes.c_ulong(number), 0, 0, 0)
        or _call("timer_create", 1, event, ctypes.byref(ctypes.c_void_p()))
        or (_call("setpgid", child, 0) and os.getpgid(child) == child)
    )


def measure(_: dict[str, Any]) -> bool:
    """Use performance counters of the processor."""
    number = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
    software, clock, only_its_own = 1, 1, 1 << 5 | 1 << 6  # without Linux's work for it
    event = struct.pack("IIQ24xQ", software, 128, clock, only_its_own).ljust(128, b"\0")
    return _syscall(number, event, 0, -1, -1, ctypes.c_ulong(0))


def see_pages(_: dict[str, Any]) -> bool:
    """Learn which pages of its memory are in use, or reset that record."""
    for name in ("pagemap", "smaps", "smaps_rollup"):
        with suppress(OSError), open(f"/proc/self/{name}", "rb") as stream:  # noqa: PTH123
            if stream.read(8):
                return True
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    return _call("mincore", address, ctypes.c_size_t(1), ctypes.create_string_buffer(1))


def use_io_uring(_: dict[str, Any]) -> bool:
    """Let Linux work for it, out of sight of a filter."""
    return _syscall(_IO_URING_SETUP, 1, ctypes.create_string_buffer(120))


def mount(_: dict[str, Any]) -> bool:
    """Mount a file system, on a folder of its own, and unmount that."""
    with tempfile.TemporaryDirectory() as folder:
        target = os.fsencode(folder)
        return _call("mount", b"x", target, b"tmpfs", ctypes.c_ulong(0), None) and (
            _call("umount2", target, 0) or True
        )


def make_namespace(_: dict[str, Any]) -> bool:
    """Have capabilities in a new user namespace."""
    if _call("unshare", _NEW_USERS | _NEW_MOUNTS):
        return True
    number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    pid = int(_libc.syscall(ctypes.c_long(number), _NEW_USERS | signal.SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        os._exit(0)
    return pid > 0


def gain_capability(_: dict[str, Any]) -> bool:
    """Have a capability, or be able to gain one by running a program."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    status = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(status["CapEff"], 16) != 0 or status["NoNewPrivs"].strip() != "1"


def fill_memory(order: dict[str, Any]) -> bool:
    """Use twice the memory that the limit allows."""
    return len(bytearray(2 * order["memory_mib"] << 20)) > 0


def fill_disk(order: dict[str, Any]) -> bool:
    """Make a file of twice the size that the limit allows."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with tempfile.TemporaryFile() as stream:
        stream.truncate(2 * order["file_mib"] << 20)
    return True


def raise_limits(_: dict[str, Any]) -> bool:
    """Raise the limit of processor time."""
    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY,) * 2)
    return True


def _child() -> int:
    """Fork a child that waits until its attempt is over."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    _children.append(pid)
    return pid


ATTEMPTS = {
    attempt.__name__: attempt
    for attempt in (
        reach_network, write_outside, see_processes, signal_process, access_memory, map_twice,
        make_memory_file, trace,
        take_descriptor, take_locks, feel_locks, watch_file, continue_itself, measure, see_pages,
        use_io_uring, mount, make_namespace, gain_capability, fill_memory, fill_disk, raise_limits,
    )
}  # fmt: skip
"""All attempts by name."""
