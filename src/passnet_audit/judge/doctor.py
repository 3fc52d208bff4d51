"""Proof by trial of how this machine confines candidates: an intruder in a worker like theirs.

A second intruder, in a sandbox of its own, looks for traces of the first.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from passnet.errors import WorkerError
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.processes.worker_process import Worker, WorkerFailureError
from passnet.judge.protocol.messages import CheckMatches, MatchesChecked, WorkerLimits
from passnet.passes.folder import LIST_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from passnet.judge.processes.sandbox import Sandbox

LIMITS = WorkerLimits(memory_mib=512, cpu_s=60, file_mib=16)
TIMEOUT_S = 60.0

_NAMESPACE, _MOUNTS, _FILTER = "a namespace of its own", "read-only mounts", "the filter of calls"
_LIMIT = "a limit of the worker"

_PASS = """from passnet_audit.judge.intruder import run
run({order_file!r})
def pattern(x): ...
def replacement_args(x): ...
def replacement_func(): ...
"""
"""A pass that answers while it is loaded."""
TRIED = {
    "reach_network": ("reach the network", _NAMESPACE),
    "write_outside": ("write outside private folders", _MOUNTS),
    "see_processes": ("see a foreign process", _NAMESPACE),
    "signal_process": ("signal a foreign process", _NAMESPACE),
    "access_memory": ("read or write the memory of another process", f"{_FILTER}, Landlock"),
    "map_twice": ("map pages of memory a second time", _FILTER),
    "make_memory_file": ("use memory that no limit of a process counts", _FILTER),
    "trace": ("trace a process", _FILTER),
    "take_descriptor": ("take an open file of another process", _FILTER),
    "feel_locks": ("pass on something by locks of a file", _FILTER),
    "watch_file": ("watch who opens a file", _FILTER),
    "continue_itself": ("let itself go on while it is stopped", _FILTER),
    "measure": ("use performance counters", _FILTER),
    "see_pages": ("see which of its pages were read", f"{_FILTER}, Landlock"),
    "use_io_uring": ("use io_uring", _FILTER),
    "mount": ("mount a file system", "no capabilities"),
    "make_namespace": ("make a user namespace", _FILTER),
    "gain_capability": ("have or gain a capability", "no capabilities"),
    "fill_memory": ("exceed its memory", _LIMIT),
    "fill_disk": ("exceed the size of a file", _LIMIT),
    "raise_limits": ("raise a limit", "no capabilities"),
}
"""Attempt -> its description, and the barrier that prevents it."""


@dataclass(frozen=True, slots=True)
class Attempted:
    """An attempt of the intruder, and the barrier that stopped it (None if none did)."""

    tried: str
    is_confined: bool
    by: str | None


def examine(sandbox: Sandbox) -> list[Attempted]:
    """Return all attempts in workers of a sandbox, in the order of `TRIED`.

    Without a sandbox nothing is tried, and nothing counts as confined.
    """
    if sandbox.name == "none":
        return [Attempted(tried, False, None) for tried, _ in TRIED.values()]
    with tempfile.TemporaryDirectory(prefix="passnet-doctor-") as name, _victim() as order:
        folder = Path(name)
        order["folders"] = [*map(str, (Path.home(), Path.cwd(), Path("/var/tmp"), folder))]
        first_attempts = [attempt for attempt in ("take_locks", *TRIED) if attempt != "feel_locks"]
        with _worker(sandbox, folder) as intruder, _worker(sandbox, folder) as successor:
            successes = _let_try(intruder, folder, {**order, "attempts": first_attempts})
            successes |= _let_try(successor, folder, {**order, "attempts": ["feel_locks"]})
    return [
        Attempted(tried, attempt not in successes, None if attempt in successes else by)
        for attempt, (tried, by) in TRIED.items()
    ]


def remedies(sandbox: Sandbox) -> list[str]:
    """Return sentences that say how to confine the rest."""
    if sandbox.name == "none":
        return [f"Nothing confines candidates ({sandbox.reason}): install bubblewrap."]
    return list(sandbox.unrestricted)


@contextmanager
def _victim() -> Iterator[dict[str, object]]:
    mark = f"{600 + os.getpid() / 1e9:.9f}"
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = subprocess.Popen(["sleep", mark])
        try:
            yield {
                "port": server.getsockname()[1], "victim": process.pid, "mark": mark,
                "shared": __file__, "memory_mib": LIMITS.memory_mib, "file_mib": LIMITS.file_mib,
            }  # fmt: skip
        finally:
            process.kill()
            process.wait()


@contextmanager
def _worker(sandbox: Sandbox, folder: Path) -> Iterator[Worker]:
    with WorkerParent(sandbox=sandbox, visible=[folder]) as parent, parent.fork(LIMITS) as worker:
        yield worker


def _let_try(worker: Worker, folder: Path, order: dict[str, object]) -> set[str]:
    order_file = folder / "order.json"
    order_file.write_text(json.dumps(order), encoding="utf-8")
    (folder / "intruder.py").write_text(_PASS.format(order_file=str(order_file)), encoding="utf-8")
    (folder / LIST_FILE).write_text('["intruder"]', encoding="utf-8")
    try:
        worker.ask(CheckMatches("", (), str(folder)), MatchesChecked, TIMEOUT_S)
    except WorkerFailureError as failure:
        if answer := re.search("@(.*)@", failure.text):
            return set(json.loads(answer[1]))
        raise WorkerError(f"the intruder gave no answer: {failure}") from failure
    raise WorkerError("the intruder gave no answer")
