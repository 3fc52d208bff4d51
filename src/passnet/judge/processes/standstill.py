"""A worker that stands still unless the judge lets it run, and the kernel's account of what it ran.

A worker stops itself (SIGSTOP, which no code can block or handle) where it has nothing to do. The
judge sends SIGCONT, and sees it stop again. What all its threads ran in between is told by its CPU
clock, to the nanosecond and from outside: it does not grow while other programs have the processor,
and nothing that the worker does can set it back. A worker that found a way to run while it should
stand still has run longer than that, which shows in the same clock.

Where its main thread stopped shows who stopped it. The kernel tells its place in the code and on
the stack, and the stack holds where each function goes on when it returns. A worker stops once
before any candidate code has come to it, and then always in the same place: code that answers in
the worker's stead stops somewhere else, or cannot go on.
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

_CPU_CLOCK_OF_PROCESS = 2
"""Low bits of a clock that counts what all threads of a process ran (Linux, posix-timers)."""

_STATE, _WAITED, _SWITCHES, _PLACE, _MEMORY = "stat", "schedstat", "status", "syscall", "mem"
_LAST_PID = "root/proc/loadavg"
"""Files of a process in /proc (proc(5)); the last one, as it sees it itself, names the process or
thread that was last started in its namespace."""

_SHORTEST_PAUSE_S = 0.00002
_LONGEST_PAUSE_S = 0.005
_SHARE_PAUSED = 1 / 16
"""How long the judge pauses before it asks again, of what it has waited: often enough to see a
short call end, and seldom enough in a long one that a worker which shares a processor with the
judge is let run. Every time the judge wakes up it takes the worker's place; asked twice a
millisecond, and beside a third program, workers were kept waiting for seconds."""

_LOOK_EVERY_S = 0.02
_WORD = 8
_LONGEST_CALL = 7
_INDIRECT_CALLS = (2, 3, 4, 6, 7)
"""Bytes of the longest call of a function, without prefixes, and of those whose address is in a
register or in memory (Intel 64 and IA-32 Architectures Software Developer's Manual, CALL)."""
_STACK_BYTES = 4096
"""How much of the stack is read: the frames from the stop up to the interpreter's loop."""

_ACCOUNT_GRACE_NS = 20_000
"""What one that has stopped may still be seen to run, until it has left its processor."""

_LONGEST_DEPARTURE_S = 1.0
"""How long one that has stopped may take to leave its processor."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process did between two standstills, in nanoseconds, by the kernel's account."""

    cpu_ns: int
    """What all its threads ran."""

    main_ns: int
    """What its main thread ran."""

    waited_ns: int
    """How long its main thread was ready to run, and something else had its processor."""

    wall_ns: int
    """Time on the wall, until the judge saw that it had stopped."""

    num_waits: int
    """How often its main thread gave up the processor by itself; stopping is one of them."""

    num_started: int
    """How many threads and processes were started in its sandbox; 0 without one."""


@dataclass(frozen=True, slots=True)
class _Account:
    cpu_ns: int
    main_ns: int
    waited_ns: int
    num_waits: int
    last_pid: int


@dataclass(frozen=True, slots=True)
class StopPlace:
    """Where a main thread has stopped: the number of the system call that it is in, its place on
    the stack and in the code, and what the stack holds from there.
    """

    call: int
    stack_pointer: int
    program_counter: int
    stack: bytes

    def is_same(self, other: "StopPlace", offsets: Sequence[int]) -> bool:
        """Whether another stop was in the same place: also what the stack holds at some offsets."""
        return (self.call, self.stack_pointer, self.program_counter) == (
            other.call,
            other.stack_pointer,
            other.program_counter,
        ) and all(self.word(offset) == other.word(offset) for offset in offsets)

    def word(self, offset: int) -> bytes:
        """What the stack holds at an offset, a word."""
        return self.stack[offset : offset + _WORD]


def ends_in_call(code: bytes, machine: str = platform.machine()) -> bool:
    """Whether machine code may end in the call of a function; of other processors than x86-64 and
    ARM's with 64 bits nothing is known, and it may.

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


class Standstill:
    """A process that stops itself, as its judge sees it; close it. `has_own_processes` says whether
    it has a process namespace of its own.
    """

    def __init__(self, pid: int, has_own_processes: bool = False) -> None:
        self._pid = pid
        self._has_own_processes = has_own_processes
        self._clock = (~pid << 3) | _CPU_CLOCK_OF_PROCESS
        self._files = {}
        for name in (_STATE, _WAITED, _SWITCHES, _LAST_PID, _PLACE, _MEMORY):
            with suppress(OSError):  # a kernel may be built without some of them
                self._files[name] = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        self._before: _Account | None = None
        self._meanwhile_ns = 0

    def close(self) -> None:
        """Let go of it; it stays as it is."""
        for fd in self._files.values():
            os.close(fd)
        self._files = {}

    def await_stop(
        self,
        look: Callable[[], None],
        eager_polls: int = 0,
        shortest_pause_s: float = _SHORTEST_PAUSE_S,
    ) -> None:
        """Wait until all its threads stand still. `look` is called now and then, and raises where
        there is nothing to wait for; the first `eager_polls` questions are without a pause.

        Raises:
            GoneError: it has ended.
        """
        start = looked = time.perf_counter()
        polls = 0
        while not self._is_still():
            polls += 1
            now = time.perf_counter()
            if now - looked > _LOOK_EVERY_S:
                look()
                looked = now
            if polls > eager_polls:
                pause_s = (now - start) * _SHARE_PAUSED
                time.sleep(min(max(pause_s, shortest_pause_s), _LONGEST_PAUSE_S))
        self._settle()

    def ran_meanwhile_ns(self) -> int:
        """What it has ever run when it should have stood still."""
        return self._meanwhile_ns + self._ran_since_stop_ns()

    def _ran_since_stop_ns(self) -> int:
        if self._before is None:
            return 0
        ran = time.clock_gettime_ns(self._clock) - self._before.cpu_ns
        return ran if ran > _ACCOUNT_GRACE_NS else 0

    def run(self, look: Callable[[], None], eager_polls: int = 0) -> Spent:
        """Let it run until it stops itself; see `await_stop`."""
        self._meanwhile_ns += self._ran_since_stop_ns()
        before = self._before or self._account()  # what it ran since counts as well
        start = time.perf_counter_ns()
        try:
            os.kill(self._pid, signal.SIGCONT)
        except ProcessLookupError as cause:
            raise GoneError from cause
        self.await_stop(look, eager_polls)
        wall_ns = time.perf_counter_ns() - start
        after = self._account_after(before)
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
        """Where it has stopped; None where the kernel does not say."""
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
        """The offsets on the stack at which two stops hold the same address where a function goes
        on: in code, behind a call.

        What is left over on the stack from calls that have ended looks like addresses, too. The
        upper half of one, over a whole number of 0 in four bytes, lies in the code of a large
        library now and then, and changes with what candidates call: honest ones were taken for
        others' loops by that (5 in 2,850 evaluations).
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
        """Whether the code before an address is a call; where that cannot be read, it may be."""
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
        fields = self._read(_STATE, 512).rpartition(b")")[2].split()
        if not fields or fields[0] in (b"Z", b"X"):
            raise GoneError
        if fields[0] not in (b"T", b"t"):
            return False
        return int(fields[17]) == 1 or self._are_all_still()

    def _are_all_still(self) -> bool:
        for task in Path(f"/proc/{self._pid}/task").iterdir():
            with suppress(OSError):
                state = (task / "stat").read_bytes().rpartition(b")")[2].split()[0]
                if state not in (b"T", b"t"):
                    return False
        return True

    def _settle(self) -> None:
        """Wait until what has stopped has also left its processor: its clock stands."""
        last = -1
        for _ in range(1000):
            now = time.clock_gettime_ns(self._clock)
            if now == last:
                return
            last = now

    def _account_after(self, before: _Account) -> _Account:
        """The account once the last stop is in it. A process has stopped, by its state, a moment
        before it leaves its processor; only then the kernel counts what it ran there. A machine
        that runs others on that processor just then makes it a long moment, of which the clock
        shows nothing.
        """
        deadline = time.monotonic() + _LONGEST_DEPARTURE_S
        after = self._account()
        while after.num_waits == before.num_waits and time.monotonic() < deadline:
            time.sleep(_SHORTEST_PAUSE_S)
            after = self._account()
        return after

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
        """What a file of its says now; nothing where there is no such file."""
        try:
            return os.pread(self._files[name], size, 0) if name in self._files else b""
        except OSError as cause:
            raise GoneError from cause
