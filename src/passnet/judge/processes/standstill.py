"""A worker that stands still unless the judge lets it run, and Linux's account of its CPU time.

A worker stops itself (SIGSTOP, which no code can block or handle) when it has nothing to do. The
judge sends SIGCONT, and sees it stop again. The CPU clock of the process tells the time that all
its threads ran in between, to the nanosecond. It does not advance while other programs have the
processor, the worker cannot set it back, and it shows work during a standstill.

The place where its main thread stopped, in the code and on the stack, shows who stopped it. A
worker stops once before any candidate code has come to it, and then always in the same place: code
that answers in its stead stops somewhere else.
"""

import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from passnet.core.jobs.children import stat_fields

_CPU_CLOCK_OF_PROCESS = 2
"""Low bits of the clock of the time that all threads of a process ran (Linux, posix-timers)."""

_STATE, _WAITED, _SWITCHES, _PLACE, _MEMORY = "stat", "schedstat", "status", "syscall", "mem"
_LAST_PID = "root/proc/loadavg"
"""Files of a process in /proc (proc(5)). The last one names the newest process in its namespace."""

_SHORTEST_PAUSE_S = 0.00002
_LONGEST_PAUSE_S = 0.005
_SHARE_PAUSED = 1 / 16
"""The judge's pause between two questions, as a share of its wait so far. Every time the judge
wakes up on a shared processor it takes the worker's place: asked twice a millisecond, and with a
third program, workers waited for seconds."""

_LOOK_EVERY_S = 0.02
_WORD = 8
_LONGEST_CALL = 7
_INDIRECT_CALLS = (2, 3, 4, 6, 7)
"""Bytes of the longest call instruction, without prefixes, and of calls whose address is in a
register or in memory (Intel 64 and IA-32 Architectures Software Developer's Manual, CALL)."""
_STACK_BYTES = 4096
"""Bytes of the stack that are read: the frames from the stop up to the interpreter's loop."""
_ACCOUNT_GRACE_NS = 20_000
"""CPU time that a stopped process may still add, until it has left its processor."""
_LONGEST_DEPARTURE_S = 1.0
"""Longest time for a stopped process to leave its processor."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The time of a process between two standstills, in nanoseconds, by Linux's account."""

    cpu_ns: int
    """CPU time of all its threads."""
    main_ns: int
    """CPU time of its main thread."""
    waited_ns: int
    """Time that its main thread was ready to run while its processor was taken."""
    wall_ns: int
    """Wall time, until the judge saw that it had stopped."""
    num_waits: int
    """Voluntary context switches of its main thread; stopping is one of them."""
    num_started: int
    """The number of threads and processes started in its sandbox; 0 without one."""


@dataclass(frozen=True, slots=True)
class _Account:
    cpu_ns: int
    main_ns: int
    waited_ns: int
    num_waits: int
    last_pid: int


@dataclass(frozen=True, slots=True)
class StopPlace:
    """The place of a stopped main thread: its system call, its stack and program counter."""

    call: int
    stack_pointer: int
    program_counter: int
    stack: bytes

    def is_same(self, later: "StopPlace", offsets: Sequence[int]) -> bool:
        """Return whether another stop was in the same place, with equal words at some offsets."""
        return (self.call, self.stack_pointer, self.program_counter) == (
            later.call,
            later.stack_pointer,
            later.program_counter,
        ) and all(self.word(offset) == later.word(offset) for offset in offsets)

    def word(self, offset: int) -> bytes:
        """Return the word of the stack at an offset."""
        return self.stack[offset : offset + _WORD]


def ends_in_call(code: bytes, machine: str = platform.machine()) -> bool:
    """Return whether machine code may end in the call of a function.

    Only x86-64 and 64-bit ARM are known; for other processors the answer is yes.

    Args:
        code: the last `_LONGEST_CALL` bytes of it, or more.
        machine: as `platform.machine` names the processor.

    Examples:
        >>> ends_in_call(bytes.fromhex("0000 e8 10203040"), "x86_64")  # call, relative
        True
        >>> ends_in_call(bytes.fromhex("0000000000 ff d0"), "x86_64")  # call rax
        True
        >>> ends_in_call(bytes.fromhex("00 ff 90 10000000"), "x86_64")  # call [rax + 16]
        True
        >>> ends_in_call(bytes.fromhex("0000000000 ff e0"), "x86_64")  # jmp rax
        False
    """
    if machine == "aarch64":
        word = int.from_bytes(code[-4:], "little")
        return word & 0xFC000000 == 0x94000000 or word & 0xFFFFFC1F == 0xD63F0000  # bl, blr
    if machine != "x86_64":
        return True
    if code[-5] == 0xE8:  # call to a relative address
        return True
    # call to an address in a register or in memory: the second byte has 2 in its middle bits
    return any(
        code[-length] == 0xFF and (code[1 - length] >> 3) & 7 == 2 for length in _INDIRECT_CALLS
    )


class GoneError(Exception):
    """The process has ended."""


def account_after(before: _Account, read: Callable[[], _Account]) -> _Account:
    """Return the account of a process once its last stop is in it.

    A process is in the stopped state a moment before it leaves its processor; only then Linux
    counts its time there. Other programs can make this a long moment.
    """
    deadline = time.monotonic() + _LONGEST_DEPARTURE_S
    after = read()
    while after.num_waits == before.num_waits and time.monotonic() < deadline:
        time.sleep(_SHORTEST_PAUSE_S)
        after = read()
    return after


class Standstill:
    """A process that stops itself; close it. `has_own_processes`: it has a process namespace."""

    def __init__(
        self, pid: int, has_own_processes: bool = False, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._pid = pid
        self._sleep = sleep
        self._has_own_processes = has_own_processes
        self._clock = (~pid << 3) | _CPU_CLOCK_OF_PROCESS
        self._files = {}
        for name in (_STATE, _WAITED, _SWITCHES, _LAST_PID, _PLACE, _MEMORY):
            with suppress(OSError):  # a kernel may be built without some of them
                self._files[name] = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        self._before: _Account | None = None
        self._meanwhile_ns = 0

    def close(self) -> None:
        """Release its descriptors; the process stays as it is."""
        for fd in self._files.values():
            os.close(fd)
        self._files = {}

    def await_stop(
        self,
        look: Callable[[], None],
        eager_polls: int = 0,
        shortest_pause_s: float = _SHORTEST_PAUSE_S,
    ) -> None:
        """Wait until all its threads stand still; raises GoneError if it has ended.

        `look` is called now and then, and raises if the wait is over; the first `eager_polls`
        questions come without a pause.
        """
        start = last_look = time.perf_counter()
        polls = 0
        while not self._is_still():
            polls += 1
            now = time.perf_counter()
            if now - last_look > _LOOK_EVERY_S:
                look()
                last_look = now
            if polls > eager_polls:
                pause_s = (now - start) * _SHARE_PAUSED
                self._sleep(min(max(pause_s, shortest_pause_s), _LONGEST_PAUSE_S))
        self._settle()

    def ran_meanwhile_ns(self) -> int:
        """Return all CPU time that it ever used when it should have stood still."""
        return self._meanwhile_ns + self._ran_since_stop_ns()

    def _ran_since_stop_ns(self) -> int:
        if self._before is None:
            return 0
        ran = time.clock_gettime_ns(self._clock) - self._before.cpu_ns
        return ran if ran > _ACCOUNT_GRACE_NS else 0

    def run(self, look: Callable[[], None], eager_polls: int = 0) -> Spent:
        """Let it run until it stops itself; see `await_stop`."""
        self._meanwhile_ns += self._ran_since_stop_ns()
        before = self._before or self._account()  # time since the last stop counts as well
        start = time.perf_counter_ns()
        try:
            os.kill(self._pid, signal.SIGCONT)
        except ProcessLookupError as cause:
            raise GoneError from cause
        self.await_stop(look, eager_polls)
        wall_ns = time.perf_counter_ns() - start
        after = account_after(before, self._account)
        self._before = after
        return Spent(
            after.cpu_ns - before.cpu_ns,
            after.main_ns - before.main_ns,
            after.waited_ns - before.waited_ns,
            wall_ns,
            after.num_waits - before.num_waits,
            after.last_pid - before.last_pid,
        )

    def place(self) -> StopPlace | None:
        """Return the place where it has stopped; None where Linux does not tell."""
        words = self._read(_PLACE, 256).split()
        if len(words) < 9:
            return None
        pointer, counter = int(words[-2], 16), int(words[-1], 16)
        try:
            stack = os.pread(self._files[_MEMORY], _STACK_BYTES, pointer)
        except (OSError, OverflowError, KeyError):
            stack = b""
        return StopPlace(int(words[0]), pointer, counter, stack)

    def returns(self, first: StopPlace, later: StopPlace) -> list[int]:
        """Return the offsets on the stack at which two stops hold the same return address.

        A return address lies in code, behind a call. Remains of ended calls look like addresses
        too: the upper half of one, over a 0 in four bytes, made honest candidates look like others'
        loops (5 in 2,850 evaluations).
        """
        ranges = []
        for line in Path(f"/proc/{self._pid}/maps").read_text(errors="replace").splitlines():
            span, mode, *_ = line.split(None, 2)
            if "x" in mode:
                ranges.append([int(end, 16) for end in span.split("-")])
        offsets = []
        for offset in range(0, min(len(first.stack), len(later.stack)) - _WORD, _WORD):
            if (word := first.word(offset)) == later.word(offset):
                address = int.from_bytes(word, sys.byteorder)
                if any(low <= address < high for low, high in ranges) and self._is_called(address):
                    offsets.append(offset)
        return offsets

    def _is_called(self, address: int) -> bool:
        """Return whether the code before an address is a call, or cannot be read."""
        if not address & 0xFFFFFFFF:
            return False
        try:
            before = os.pread(self._files[_MEMORY], _LONGEST_CALL, address - _LONGEST_CALL)
        except (OSError, OverflowError, KeyError):
            return True
        return ends_in_call(before)

    def release(self) -> None:
        """Let it run from now on."""
        self._before = None
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGCONT)

    def _is_still(self) -> bool:
        fields = stat_fields(self._read(_STATE, 512))
        if not fields or fields[0] in (b"Z", b"X"):
            raise GoneError
        if fields[0] not in (b"T", b"t"):
            return False
        return int(fields[17]) == 1 or self._are_all_still()

    def _are_all_still(self) -> bool:
        for task in Path(f"/proc/{self._pid}/task").iterdir():
            with suppress(OSError):
                state = stat_fields((task / "stat").read_bytes())[0]
                if state not in (b"T", b"t"):
                    return False
        return True

    def _settle(self) -> None:
        """Wait until a stopped process has also left its processor, when its clock stands."""
        last = -1
        for _ in range(1000):
            now = time.clock_gettime_ns(self._clock)
            if now == last:
                return
            last = now

    def _account(self) -> _Account:
        ran, waited, *_ = (*self._read(_WAITED, 128).split(), 0, 0)
        switches = self._read(_SWITCHES, 8192).partition(b"\nvoluntary_ctxt_switches:")[2]
        last = self._read(_LAST_PID, 128).split() if self._has_own_processes else []
        return _Account(
            time.clock_gettime_ns(self._clock),
            int(ran),
            int(waited),
            int(switches.split(None, 1)[0]),
            int(last[-1]) if last else 0,
        )

    def _read(self, name: str, size: int) -> bytes:
        try:
            return os.pread(self._files[name], size, 0) if name in self._files else b""
        except OSError as cause:
            raise GoneError from cause
