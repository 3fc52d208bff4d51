"""The warm process of a run: torch imported once, for all sandboxes, which are forked from it.

Run as `python -P -m passnet.judge.worker.warm <fd> <device>`, in no sandbox. It runs no candidate
code, and reads no file that a candidate can write. Each fork confines itself before it reads a
message of the judge.
"""

import gc
import os
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress

from passnet.core.jobs.children import end_with_parent
from passnet.judge.processes.confine import run_confined
from passnet.judge.protocol import messages
from passnet.judge.protocol.channel import Channel, ChannelClosedError
from passnet.judge.worker.zygote import serve_judge, warm_up

_FIRST_OWN_FD = 3
"""The first descriptor behind those of input, output and errors."""


def main() -> None:
    """Fork parents of workers on request, until the judge hangs up."""
    channel, device = Channel(socket.socket(fileno=int(sys.argv[1]))), sys.argv[2]
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the judge handles it, and ends this process
    version = warm_up(device)
    gc.collect()
    gc.freeze()
    with suppress(ChannelClosedError):
        while True:
            request, (far,) = channel.receive(messages.StartParent)
            if not os.fork():
                _become_parent(request, far, device, version)
            os.close(far)
            _reap(os.WNOHANG)
    _reap(0)


def _reap(options: int) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _become_parent(request: messages.StartParent, far: int, device: str, version: str) -> None:
    """Confine this fork, and let it serve the judge; it does not return."""
    start = time.perf_counter()
    try:
        far = _only_descriptor(far)
        near = Channel(socket.socket(fileno=far))
        os.environ.clear()
        os.environ.update(request.environment)
        tempfile.tempdir = None  # of the other environment

        def born(pid: int) -> None:
            handle = os.pidfd_open(pid)
            near.send(messages.Forked(), (handle,))
            os.close(handle)
            near.close()

        run_confined(
            request.confinement,
            lambda: serve_judge(near, device, request.is_shared, version, start),
            born,
        )
    finally:
        os._exit(1)


def _only_descriptor(kept: int) -> int:
    """Close all descriptors but one and the first three: none of outside is left in a sandbox."""
    if kept != _FIRST_OWN_FD:
        os.dup2(kept, _FIRST_OWN_FD)
    os.closerange(_FIRST_OWN_FD + 1, os.sysconf("SC_OPEN_MAX"))
    return _FIRST_OWN_FD


if __name__ == "__main__":
    main()
