"""The warm parent of workers: imports torch once, then forks a worker in milliseconds.

Run as `python -P -m passnet.judge.worker.zygote <fd> <device> <shared or alone>`, or forked from
the process of `warm.py`, which has done the import. It never runs candidate code, and is
single-threaded, so that forking it is safe. As the first process of a process namespace it cannot
be killed by its workers, and adopts their orphans. If workers are alone, all other processes end
with each.
"""

import ctypes
import gc
import os
import resource
import signal
import socket
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from unittest.mock import patch

from passnet.core.jobs.children import end_with_parent, python_command
from passnet.core.records.folders import LENT_VARIABLE
from passnet.judge.processes.census import FIRST_PID, residents
from passnet.judge.processes.restrict import restrict_calls, restrict_proc, submit_starts
from passnet.judge.protocol import messages
from passnet.judge.protocol.channel import Channel, ChannelClosedError
from passnet.judge.protocol.device import UNUSED, kind_of

_PR_SET_DUMPABLE = 4
_ENDING_PAUSE_S = 0.001
"""Time between two looks whether killed processes have ended."""


def main() -> None:
    """Serve the judge on the socket whose descriptor is the first argument."""
    channel, device = Channel(socket.socket(fileno=int(sys.argv[1]))), sys.argv[2]
    start = time.perf_counter()
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the judge handles it, and ends this process
    serve_judge(channel, device, sys.argv[3] == "shared", warm_up(device), start)


def serve_judge(channel: Channel, device: str, is_shared: bool, version: str, start: float) -> None:
    """Serve the judge from a warm process, which began at `start`, until the judge hangs up."""
    _set_dumpable(0)  # workers, of the same user, must not trace it
    if is_shared:
        from passnet.inductor.compiler import keep_headers

        keep_headers()
    with suppress(ChannelClosedError):  # the judge is gone, at times before this is ready
        _send_ready(channel, version, start)
        _serve(channel, version, device, is_shared)


def _serve(channel: Channel, version: str, device: str, is_shared: bool) -> None:
    while True:
        request, fds = channel.receive(messages.ParentRequest)
        if isinstance(request, messages.Spawn):
            pid = _spawn(request, fds, channel, is_shared)
            handle = os.pidfd_open(pid)
            channel.send(messages.Spawned(pid), (handle,))
            for fd in (*fds, handle):
                os.close(fd)
        elif isinstance(request, messages.EndOthers):
            channel.send(messages.OthersEnded(_end_others(request.pid)))
        elif isinstance(request, messages.End):
            num_left = _kill(request.pid, is_shared)
            if request.is_awaited:
                channel.send(messages.WorkerEnded(_reap(request.pid, is_shared), num_left))
            else:
                channel.send(messages.WorkerEnded(-signal.SIGKILL, num_left))
                _reap(request.pid, is_shared)
        else:
            start = time.perf_counter()
            if not warm_inductor():  # it begins anew, and gets ready
                os.set_inheritable(channel.fileno(), True)
                words = (str(channel.fileno()), device, "shared" if is_shared else "alone")
                os.execv(sys.executable, python_command("-m", __spec__.name, *words))
            _send_ready(channel, version, start)


def warm_up(device: str) -> str:
    """Import and use the modules of workers once; return the version of torch.

    For a GPU they are only imported: a compilation would make a CUDA context, which no fork could
    use. For a device that is not used, compilers are not even imported.
    """
    import torch

    # The judge has found the device. The imports ask for it too, and NVML, which needs no CUDA
    # context, starts a thread.
    with patch.object(torch.cuda, "is_available", lambda: kind_of(device) == "cuda"):
        import torch.fx
        import torch.hub

        import passnet.judge.worker.worker
        import passnet.passes.apply.custom_op  # noqa: F401
        from passnet.inductor.compiler import (
            compile_in_this_process,
            import_compilers,
            reset_dynamo,
        )
        from passnet.passes.match.guards import note_example_values
        from passnet.passes.match.pattern import make_pattern

        if device != UNUSED:
            import_compilers()
    # A fork must not find threads: Inductor would start a pool of compilers, and the progress bar
    # of the interpreter that it traces with, a monitor of itself.
    torch.hub.tqdm.monitor_interval = 0
    if device == UNUSED:
        return str(torch.__version__)
    compile_in_this_process()
    if kind_of(device) == "cpu":
        with torch.no_grad():
            torch.compile(_example, backend="passnet", dynamic=False)(torch.ones(2, 2))
        reset_dynamo()
        make_pattern("example", _example)
        note_example_values(torch.fx.symbolic_trace(_example), [torch.ones(2, 2)])
    assert not torch.cuda.is_initialized(), "a parent of workers has a CUDA context"
    return str(torch.__version__)


def warm_inductor() -> bool:
    """Compile small graphs with Inductor once; return whether that worked.

    Inductor imports much of itself at the first compilation. After a failure (no compiler, a full
    disk) Dynamo stays hooked into the interpreter, and a worker stands still at another depth of
    the stack each time; the worker that needs Inductor reports the cause.
    """
    import torch

    from passnet.inductor.compiler import reset_dynamo

    with suppress(Exception):
        for dtype in (torch.float32, torch.bfloat16):
            with torch.no_grad():
                torch.compile(_larger_example, dynamic=False)(torch.ones(4, 4, dtype=dtype))
        reset_dynamo()
        return True
    return False


def _larger_example(value):  # type: ignore[no-untyped-def]
    import torch

    normed = torch.nn.functional.layer_norm(value @ value, (4,))
    return torch.softmax(torch.nn.functional.gelu(normed), -1)


def _send_ready(channel: Channel, version: str, start: float) -> None:
    """Tell the judge that workers can be forked; they collect none of the objects made so far."""
    gc.collect()
    gc.freeze()
    channel.send(messages.Ready(version, time.perf_counter() - start))


def _example(value):  # type: ignore[no-untyped-def]
    import torch

    # It calls a function: at the first one a tracer lists all of torch's.
    return torch.nn.functional.relu(value) + 1


def _spawn(request: messages.Spawn, fds: list[int], channel: Channel, is_shared: bool) -> int:
    is_confined = os.getpid() == FIRST_PID
    pid = os.fork()
    if pid:
        return pid
    try:
        channel.close()
        worker_fd, log_fd = fds
        os.setsid()
        end_with_parent()
        _set_dumpable(1)  # the judge must be able to read its memory
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        os.close(log_fd)
        _limit(request.limits)
        near = Channel(socket.socket(fileno=worker_fd))
        if is_confined:
            if not is_shared:
                _submit_starts(near)
            _restrict(is_shared)
        if lent := os.environ.get(LENT_VARIABLE):
            from passnet.inductor.compiler import borrow_compiled

            borrow_compiled(Path(lent))
        from passnet.judge.worker.worker import serve

        serve(near)
    finally:
        os._exit(0)  # no destructors: the judge has all it needs
    raise AssertionError("a worker does not return")


def _submit_starts(near: Channel) -> None:
    """Let the judge decide on processes and threads that this worker starts, where Linux can."""
    listeners: tuple[int, ...] = ()
    with suppress(OSError):
        listeners = (submit_starts(),)
    near.send(messages.Born(), listeners)
    for listener in listeners:
        os.close(listener)


def _restrict(may_lock: bool) -> None:
    """Restrict this worker as far as the machine can; `find_sandbox` tells how far that is."""
    for restrict in (partial(restrict_calls, may_lock), restrict_proc):
        with suppress(OSError):
            restrict()


def _limit(limits: messages.WorkerLimits) -> None:
    """Set the limits; the address space gets the granted memory above its present size."""
    with open("/proc/self/statm", encoding="ascii") as stream:  # noqa: PTH123
        mapped = int(stream.read().split()[0]) * resource.getpagesize()
    space = mapped + limits.memory_mib * 2**20
    for kind, limit in (
        (resource.RLIMIT_AS, space if limits.is_address_space_bound else resource.RLIM_INFINITY),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file_mib * 2**20),
        (resource.RLIMIT_NPROC, limits.num_processes),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        if bound != resource.RLIM_INFINITY:
            resource.setrlimit(kind, (bound, bound))


def _set_dumpable(value: int) -> None:
    """Allow or forbid others of the same user to trace this process, and read its memory."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, value, 0, 0, 0)


def _kill(pid: int, is_shared: bool) -> int:
    """Kill a worker and all it started; return the number of processes it left."""
    if is_shared or os.getpid() != FIRST_PID:
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError):
                kill(pid, signal.SIGKILL)
        return 0
    running = {int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()}
    num_left = len(running - {FIRST_PID, pid})
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)  # all of this namespace but this process
    return num_left


def _end_others(pid: int) -> int:
    """Kill all of this namespace but a worker and this process; return the number of processes.

    The worker cannot start new ones by then. Whoever has ended, but was not waited for, cannot run.
    """
    ended: set[int] = set()
    while others := {found.pid for found in residents(Path("/proc"))} - {FIRST_PID, pid}:
        for other in others:
            with suppress(ProcessLookupError):
                os.kill(other, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(other, os.WNOHANG)
        ended |= others
        time.sleep(_ENDING_PAUSE_S)
    return len(ended)


def _reap(pid: int, is_shared: bool) -> int:
    """Wait until a killed worker is gone; return its exit code, negative for a signal."""
    status = 0
    with suppress(ChildProcessError):
        _, status = os.waitpid(pid, 0)
    if os.getpid() == FIRST_PID and not is_shared:
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
