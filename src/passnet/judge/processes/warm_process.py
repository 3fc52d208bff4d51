"""The judge's handle on the warm process, from which confined parents of workers are forked."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from passnet.core.jobs.children import end_tree, python_command
from passnet.errors import WorkerError
from passnet.judge.processes.sandbox import Sandbox
from passnet.judge.protocol.channel import ChannelClosedError, channel_pair
from passnet.judge.protocol.device import device_environment
from passnet.judge.protocol.messages import StartParent

END_TIMEOUT_S = 30.0
GRACE_S = 2.0
"""Time for it to end by itself, so that the CPU time of all sandboxes is known to the judge."""
_STEADY_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(4 * 2**30),
    "MALLOC_TOP_PAD_": str(64 * 2**20),
}
"""Settings of glibc's allocator that keep freed pages; by default equal programs differ by over 10
%."""


def worker_environment(num_threads: int, device: str) -> dict[str, str]:
    """Return the environment variables of parents of workers."""
    count = str(num_threads)
    return {
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "OMP_WAIT_POLICY": "PASSIVE",
        **_STEADY_MALLOC,
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **device_environment(device),
    }


@dataclass(eq=False)
class WarmProcess:
    """A process outside of sandboxes that has imported torch, and forks itself into them.

    It is started on first use, and again if it has ended. Whatever it writes while it gets ready
    lies in a folder that goes with it.
    """

    sandbox: Sandbox
    num_threads: int = 1
    device: str = "cpu"
    _process: subprocess.Popen[bytes] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fork(self, request: StartParent, far: socket.socket) -> None:
        """Order a parent of workers, which answers on its socket once it is confined."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            try:
                self._channel.send(request, (far.fileno(),))
            except ChannelClosedError as cause:
                raise WorkerError(f"the warm process of the judge ended: {cause}") from cause

    def close(self) -> None:
        """End it, and all sandboxes with it."""
        with self._lock:
            if self._process is not None:
                self._channel.close()
                with suppress(subprocess.TimeoutExpired):  # it waits for all, so that they count
                    self._process.wait(GRACE_S)
                end_tree(self._process)
                self._folder.cleanup()
                self._process = None

    def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="passnet-warm-")
        private = {
            "TMPDIR": self._folder.name,
            "PASSNET_CACHE": str(Path(self._folder.name, "passnet")),
            "TORCHINDUCTOR_CACHE_DIR": str(Path(self._folder.name, "inductor")),
        }
        environment = worker_environment(self.num_threads, self.device)
        self._channel, far = channel_pair()
        self._process = subprocess.Popen(
            python_command("-m", "passnet.judge.worker.warm", str(far.fileno()), self.device),
            pass_fds=[far.fileno()],
            env={**self.sandbox.environment(environment), **private},
            cwd="/",
            stdin=subprocess.DEVNULL,
        )
        far.close()


def end_forked(handle: int) -> None:
    """End the first process of a sandbox by its descriptor, which is closed, and so all others."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    select.select([handle], [], [], END_TIMEOUT_S)
    os.close(handle)
