"""Restrictions of a sandboxed worker: a filter of system calls, and Landlock for files in /proc.

Run by path, this file tries both on itself, and writes a line for each that does not work here.
"""

import ctypes
import errno
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

_Rule: TypeAlias = "tuple[str, int, dict[int, tuple[int, int]]]"
"""A system call, its error (0: it pretends to succeed), and masks and values of some arguments."""
_NONE_OF_A_KERNEL = (
    # other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
    # the kernel's own, and what lets a reader of memory wait
    "perf_event_open", "bpf", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register",
    # which pages somebody has read
    "mincore", "move_pages", "cachestat",
    # memory that no limit of a process counts, and work of Linux's own threads
    "memfd_create", "memfd_secret", "shmget", "msgget", "semget", "io_setup", "io_submit",
    # what several sandboxes share
    "keyctl", "add_key", "request_key", "inotify_init", "inotify_init1", "fanotify_init",
    # see _CONTINUE
    "timer_create", "mq_notify", "seccomp",
    "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig",
    "fsmount", "fspick", "mount_setattr", "unshare", "setns",
)  # fmt: skip
"""System calls that no kernel or compiler needs, to learn or do more than one's own work."""
_CONTINUE = signal.SIGCONT.value
"""The signal that resumes a stopped process, which only the judge may send. Linux sends it too: by
a timer, for a message or a lease, at the end of a child, parent or terminal, to orphans."""

_ALL = 0xFFFFFFFF  # the kernel reads the lower half of these arguments, whatever the upper one is
_LOCKS = (6, 7, 37, 38)  # F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW
_ASKS_FOR_LOCK = (5, 36)  # F_GETLK, F_OFD_GETLK
_SIGNALS_BY_FILE = (8, 10, 15, 1024, 1026)  # F_SETOWN, _SETSIG, _SETOWN_EX, _SETLEASE, F_NOTIFY
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP = 1, 22
_TIOCSPTLCK = 0x40045431
_NEW_NAMESPACES = (0x20000, *(1 << bit for bit in range(25, 31)))

_SCMP_ALLOW, _SCMP_ERRNO, _SCMP_NOTIFY = 0x7FFF0000, 0x00050000, 0x7FC00000
_STARTS = ("clone", "fork", "vfork")
"""System calls that start a process or a thread; `clone3` is refused."""
_SCMP_MASKED_EQUAL = 7
_SCMP_SPECULATION = 7  # an attribute of a filter
_SCMP_UNKNOWN = -1
_YOUNG = {"cachestat": 451, "memfd_secret": 447}
"""System calls that common libraries do not know yet, with their number on all machines."""

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION, _LANDLOCK_BENEATH = 1, 1
_LANDLOCK_WRITE, _LANDLOCK_READ, _LANDLOCK_REFER = 1 << 1, 1 << 2, 1 << 13
_FIRST_WITH_REFER = 2

_OWN_FILES = (
    "auxv", "cgroup", "cmdline", "comm", "io", "limits", "maps", "mountinfo", "mounts", "schedstat",
    "stat", "statm", "status",
)  # fmt: skip
"""Files of its own in /proc that a worker can read: not `pagemap`, `smaps` or `mem`."""

_libc = ctypes.CDLL(None, use_errno=True)


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("kind", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    )


def restrict_calls(may_lock: bool) -> None:
    """Refuse this process and its children system calls that no compute kernel or compiler needs.

    Unless it may lock, locks of files seem to succeed and do nothing, as other sandboxes would see
    them. Raises OSError without libseccomp or a filter of Linux.
    """
    library, context = _new_filter()
    for name, error, arguments in _rules(may_lock):
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number == _SCMP_UNKNOWN:
            number = _YOUNG[name]
        comparisons = (_Comparison * len(arguments))(
            *(
                _Comparison(argument, _SCMP_MASKED_EQUAL, mask, value)
                for argument, (mask, value) in arguments.items()
            )
        )
        action = ctypes.c_uint32(_SCMP_ERRNO | error)
        _check(library.seccomp_rule_add_array(context, action, number, len(arguments), comparisons))
    _check(library.seccomp_load(context))
    library.seccomp_release(context)


def submit_starts() -> int:
    """Make this process and its children ask for each process and thread that they start.

    Call it before `restrict_calls`. Return the descriptor at which `Starts` answers. Raises
    OSError without libseccomp or such a filter of Linux (5.5).
    """
    library, context = _new_filter()
    for name in _STARTS:
        number = library.seccomp_syscall_resolve_name(name.encode())
        action = ctypes.c_uint32(_SCMP_NOTIFY)
        _check(library.seccomp_rule_add_array(context, action, number, 0, None))
    _check(library.seccomp_load(context))
    listener = library.seccomp_notify_fd(context)
    _check(listener)
    library.seccomp_release(context)
    return listener


def _new_filter() -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """Return libseccomp and a filter of it that allows everything."""
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(_SCMP_ALLOW)))
    # A filter would otherwise slow all code of the process down on older kernels.
    library.seccomp_attr_set(context, _SCMP_SPECULATION, 1)
    return library, context


def _rules(may_lock: bool) -> Iterator[_Rule]:
    for name in _NONE_OF_A_KERNEL:
        yield name, errno.EPERM, {}
    for command in _SIGNALS_BY_FILE:
        yield "fcntl", errno.EPERM, {1: (_ALL, command)}
    yield "mremap", errno.EPERM, {1: (2**64 - 1, 0)}  # a second mapping of the same pages
    yield "sched_setaffinity", 0, {}  # the judge chooses the processor of each
    yield "setpgid", 0, {}  # ninja, which builds torch's extensions, starts compilers with it
    if not may_lock:
        yield "flock", 0, {}
        for command in _LOCKS:
            yield "fcntl", 0, {1: (_ALL, command)}
        for command in _ASKS_FOR_LOCK:
            yield "fcntl", errno.EPERM, {1: (_ALL, command)}
    for name, argument in (
        ("kill", 1), ("tkill", 1), ("tgkill", 2), ("rt_sigqueueinfo", 1),
        ("rt_tgsigqueueinfo", 2), ("pidfd_send_signal", 1),
    ):  # fmt: skip
        yield name, errno.EPERM, {argument: (_ALL, _CONTINUE)}
    yield "prctl", errno.EPERM, {0: (_ALL, _PR_SET_PDEATHSIG), 1: (_ALL, _CONTINUE)}
    yield "prctl", errno.EPERM, {0: (_ALL, _PR_SET_SECCOMP)}
    yield "ioctl", errno.EPERM, {1: (_ALL, _TIOCSPTLCK)}
    yield "clone3", errno.ENOSYS, {}  # a filter cannot see its flags; C libraries then use clone
    yield "clone", errno.EPERM, {0: (0xFF, _CONTINUE)}
    for flag in _NEW_NAMESPACES:
        yield "clone", errno.EPERM, {0: (flag, flag)}


def restrict_proc() -> None:
    """Refuse this process and its children access to /proc, but for some files of their own.

    They may read those files, and write the files of their own threads, where CUDA writes names.
    Raises OSError without Landlock, or with one that would forbid moving files too.
    """
    version = _landlock(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION)
    if version < _FIRST_WITH_REFER:
        raise OSError(errno.ENOSYS, "Landlock of this kernel is too old (5.19 is needed)")
    handled = ctypes.c_uint64(_LANDLOCK_WRITE | _LANDLOCK_READ | _LANDLOCK_REFER)
    rules = _landlock(_LANDLOCK_CREATE, ctypes.byref(handled), ctypes.sizeof(handled), 0)
    _allow(rules, Path("/"), _LANDLOCK_REFER)
    for path in Path("/").iterdir():
        if path.name != "proc":
            _allow(rules, path, _LANDLOCK_READ | _LANDLOCK_WRITE)
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal() and path.name not in ("self", "thread-self"):
            _allow(rules, path, _LANDLOCK_READ)
    for name in _OWN_FILES:
        _allow(rules, Path("/proc/self", name), _LANDLOCK_READ)
    _allow(rules, Path("/proc/self/task"), _LANDLOCK_WRITE)
    _landlock(_LANDLOCK_RESTRICT, rules, 0)
    os.close(rules)


def _allow(rules: int, path: Path, rights: int) -> None:
    """Add a rule; its descriptor stays open, or Linux would drop the rule of a file of /proc."""
    with suppress(OSError):  # an unopenable file cannot be read either
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        record = rights.to_bytes(8, "little") + descriptor.to_bytes(4, "little")
        _landlock(_LANDLOCK_ADD, rules, _LANDLOCK_BENEATH, record, 0)


def _landlock(number: int, *arguments: object) -> int:
    words = [
        ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments
    ]
    result = _libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result


def _check(result: int) -> None:
    if result < 0:
        raise OSError(-result, f"libseccomp: {os.strerror(-result)}")


def main() -> None:
    """Restrict this process; print a line for each restriction that does not work."""
    for name, restrict in (
        ("Candidates can start processes and threads while they are timed", submit_starts),
        ("System calls of candidates are not filtered", lambda: restrict_calls(may_lock=False)),
        ("Candidates can read in /proc which pages of memory are in use", restrict_proc),
    ):
        try:
            restrict()
        except OSError as cause:
            print(f"{name} ({cause.strerror or cause}).")


if __name__ == "__main__":
    main()
