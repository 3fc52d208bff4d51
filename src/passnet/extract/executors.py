"""Where entries are captured: in workers on this machine, or on a Ray cluster."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any, TypeAlias

from passnet.errors import InputError
from passnet.extract.isolate import Captured, Isolated
from passnet.extract.record import CaptureSettings

Executor: TypeAlias = Callable[[Sequence[str], CaptureSettings, int], Iterator[Captured]]
"""Captures entries, so many at a time, and gives each as soon as it is done, in any order."""

EXECUTORS = {"local": "run_local", "ray": "run_ray"}


def executor(name: str) -> Executor:
    """The executor of a name.

    Raises:
        InputError: there is none.
    """
    if name not in EXECUTORS:
        raise InputError(f"no executor {name!r}; there are {', '.join(EXECUTORS)}")
    return globals()[EXECUTORS[name]]


def run_local(
    entries: Sequence[str], settings: CaptureSettings, num_workers: int
) -> Iterator[Captured]:
    """Capture in workers of this machine; each takes the next entry when it is free."""
    waiting = iter(entries)
    lock = threading.Lock()
    done: SimpleQueue[Captured | BaseException | None] = SimpleQueue()
    stopping = threading.Event()
    workers = [Isolated() for _ in range(min(num_workers, len(entries)))]

    def serve(worker: Isolated) -> None:
        try:
            while not stopping.is_set():
                with lock:
                    entry = next(waiting, None)
                if entry is None:
                    break
                done.put(worker.capture(entry, settings))
        except BaseException as cause:  # noqa: BLE001 (it is raised again where it is waited for)
            done.put(cause)
        finally:
            worker.close()
            done.put(None)

    threads = [threading.Thread(target=serve, args=(item,), daemon=True) for item in workers]
    for thread in threads:
        thread.start()
    try:
        running = len(threads)
        while running:
            item = done.get()
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item
    finally:
        stopping.set()
        for worker in workers:
            worker.close()


_isolated: dict[int, Isolated] = {}
"""The worker of a process of Ray, which captures many entries one after another."""


def _capture_on_ray(entry: str, settings: CaptureSettings) -> Captured:
    worker = _isolated.setdefault(os.getpid(), Isolated())
    return worker.capture(entry, settings)


def run_ray(
    entries: Sequence[str], settings: CaptureSettings, num_workers: int
) -> Iterator[Captured]:
    """Capture on a Ray cluster: the one that is running, or one on this machine.

    Every entry is a task with a processor of its own, which starts the isolated process; a task
    whose Ray worker dies is done again elsewhere.

    Raises:
        InputError: Ray is not installed.
    """
    try:
        import ray
    except ImportError as cause:
        raise InputError("Ray is not installed; pip install 'passnet[ray]'") from cause
    if not ray.is_initialized():
        ray.init(num_cpus=num_workers, log_to_driver=False, include_dashboard=False)
    task: Any = ray.remote(num_cpus=1, max_retries=3)(_capture_on_ray)
    waiting = list(reversed(entries))
    running: list[Any] = []
    while waiting or running:
        while waiting and len(running) < 2 * num_workers:
            running.append(task.remote(waiting.pop(), settings))
        [ready], running = ray.wait(running, num_returns=1)
        yield ray.get(ready)
