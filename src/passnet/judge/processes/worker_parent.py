"""The judge's handle on the process that forks workers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from passnet.core.jobs.children import end_tree, python_command
from passnet.core.records.folders import INDUCTOR_VARIABLE, LENT_VARIABLE, inductor_cache
from passnet.errors import WorkerError
from passnet.judge.processes.census import SandboxUse
from passnet.judge.processes.sandbox import NO_SANDBOX, PRIVATE, Sandbox
from passnet.judge.processes.starts import Starts
from passnet.judge.processes.warm_process import WarmProcess, end_forked, worker_environment
from passnet.judge.processes.worker_process import Worker, bounded_log, open_memory
from passnet.judge.protocol import messages
from passnet.judge.protocol.channel import ChannelClosedError, ChannelTimeoutError, channel_pair
from passnet.judge.protocol.device import device_nodes
from passnet.passes.compilation import HEADERS_VARIABLE

START_TIMEOUT_S = 180.0
_OWN_INDUCTOR = "/tmp/own_inductor"
"""Inductor's cache within a sandbox whose parent borrows."""
FORK_TIMEOUT_S = 30.0


@dataclass(eq=False)
class WorkerParent:
    """The process that forks workers, with torch imported and warm.

    In a sandbox, ending a worker ends all other processes: give each candidate a parent. The
    workers of a parent that `is_shared` run only torch's code; they end one by one and share the
    cache of compiled code. All can read `visible` folders, and `headers` that the compiler has read
    already, and what Inductor has compiled for the shared ones if it `borrows`. It is forked from a
    `warm` process, or started anew, which takes a second.
    """

    num_threads: int = 1
    sandbox: Sandbox = NO_SANDBOX
    visible: Sequence[Path] = ()
    device: str = "cpu"
    is_shared: bool = False
    headers: Path | None = None
    borrows: bool = False
    warm: WarmProcess | None = None
    _is_ready: bool = field(default=False, init=False)
    _knows_inductor: bool = field(default=False, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _handle: int | None = field(default=None, init=False)

    def __enter__(self) -> WorkerParent:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_confined(self) -> bool:
        """Return whether workers run in namespaces of their own."""
        return self.sandbox.name != "none"

    def start(self) -> None:
        """Start the process, which imports the modules of workers; `wait_ready` waits for it."""
        self._channel, far = channel_pair()
        environment = self.sandbox.environment(worker_environment(self.num_threads, self.device))
        visible, writable = [*self.visible], []
        if self.is_shared:
            writable = [inductor_cache()]
            environment[INDUCTOR_VARIABLE] = str(writable[0])
        elif self.borrows and self.is_confined:
            visible.append(inductor_cache())
            environment |= {INDUCTOR_VARIABLE: _OWN_INDUCTOR, LENT_VARIABLE: str(visible[-1])}
        if self.headers is not None:
            visible.append(self.headers)
            environment[HEADERS_VARIABLE] = str(self.headers)
        access = (visible, device_nodes(self.device), writable)
        with closing(far):
            if self.warm is not None:
                confinement = self.sandbox.confinement(*access)
                request = messages.StartParent(environment, confinement, self.is_shared)
                self.warm.fork(request, far)
                return
            module = "passnet.judge.worker.zygote"
            words = (str(far.fileno()), self.device, "shared" if self.is_shared else "alone")
            self._process = subprocess.Popen(
                self.sandbox.command(python_command("-m", module, *words), *access),
                pass_fds=[far.fileno()],
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
            )

    def close(self) -> None:
        """End the process and all its workers."""
        if self._process is not None:  # first, since another thread may wait for its answer
            end_tree(self._process)
        if self._handle is not None:
            end_forked(self._handle)
            self._handle = None
        self._channel.hang_up()

    def _ask(self, request: Any, kind: type, timeout_s: float, fds: tuple[int, ...] = ()) -> Any:
        try:
            if request is not None:
                self._channel.send(request, fds)
            reply, self._received_fds = self._channel.receive(messages.ParentReply, timeout_s)
        except ChannelTimeoutError as cause:
            text = f"the parent of workers did not answer in {timeout_s:.0f} s"
            raise WorkerError(text) from cause
        except ChannelClosedError as cause:
            raise WorkerError("the parent of workers ended; its messages are above") from cause
        if not isinstance(reply, kind):
            raise WorkerError(f"the parent of workers answered {type(reply).__name__}")
        return reply

    def wait_ready(self) -> None:
        """Wait until workers can be forked; `fork` does so too."""
        if not self._is_ready:
            if self.warm is not None and self._handle is None:
                self._ask(None, messages.Forked, START_TIMEOUT_S)
                (self._handle,) = self._received_fds
            self._ask(None, messages.Ready, START_TIMEOUT_S)
            self._is_ready = True

    def warm_inductor(self) -> None:
        """Let this process compile with Inductor once; only for a parent of torch's code alone."""
        if not self._knows_inductor:
            self.wait_ready()
            self._ask(messages.WarmInductor(), messages.Ready, START_TIMEOUT_S)
            self._knows_inductor = True

    def fork(self, limits: messages.WorkerLimits) -> Worker:
        """Return a fresh worker; close it (or use it as a context manager)."""
        self.wait_ready()
        channel, far = channel_pair()
        log = bounded_log()
        fds = (far.fileno(), log)
        reply = self._ask(messages.Spawn(limits), messages.Spawned, FORK_TIMEOUT_S, fds)
        far.close()
        host_pid = _host_pid(self._received_fds)
        memory = open_memory(host_pid)
        starts = use = None
        if self.is_confined and not self.is_shared:
            _, listeners = channel.receive(messages.Born, FORK_TIMEOUT_S)
            if listeners:
                proc = Path(f"/proc/{host_pid}/root/proc")
                starts = Starts(listeners[0], limits.num_processes, proc)
            use = SandboxUse(host_pid, PRIVATE, limits.memory_mib << 20)
        worker = Worker(reply.pid, host_pid, memory, channel, log, self, starts, use)
        worker.await_birth()
        return worker

    def end_others(self, pid: int) -> int:
        """Kill all processes of a worker's sandbox but itself; return their number."""
        return self._ask(messages.EndOthers(pid), messages.OthersEnded, FORK_TIMEOUT_S).num_ended

    def end(self, pid: int, is_awaited: bool = True) -> messages.WorkerEnded:
        """Kill a worker and all it started; return its end, if awaited."""
        return self._ask(messages.End(pid, is_awaited), messages.WorkerEnded, FORK_TIMEOUT_S)


def _host_pid(fds: list[int]) -> int:
    """Return the number, in this process's namespace, of a process by its descriptor."""
    if len(fds) != 1:
        raise WorkerError(f"the parent of workers sent {len(fds)} descriptors of a worker")
    (handle,) = fds
    try:
        lines = Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii").splitlines()
    finally:
        os.close(handle)
    return int(dict(line.split(":", 1) for line in lines)["Pid"])
