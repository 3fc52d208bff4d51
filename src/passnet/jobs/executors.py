"""Where work is done on many items: in workers on this machine, or on a Ray cluster."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from passnet.errors import InputError
from passnet.jobs.process import JobRunner

R = TypeVar("R")

EXECUTORS = {"local": "run_local", "ray": "run_ray"}


class Executor(Protocol):
    """Works on items, so many at a time, and gives each result as soon as it is there."""

    def __call__(
        self, items: Sequence[str], work: Callable[[JobRunner, str], R], num_workers: int
    ) -> Iterator[R]:
        """The results, in any order.

        Args:
            items: what to work on.
            work: called with an item, and with what runs tasks in processes of their own; it can be
                pickled.
            num_workers: how many at a time.
        """
        ...


def executor(name: str) -> Executor:
    """The executor of a name.

    Raises:
        InputError: there is none.
    """
    if name not in EXECUTORS:
        raise InputError(f"no executor {name!r}; there are {', '.join(EXECUTORS)}")
    return globals()[EXECUTORS[name]]


def run_local(
    items: Sequence[str], work: Callable[[JobRunner, str], R], num_workers: int
) -> Iterator[R]:
    """Work on this machine; each worker takes the next item when it is free."""
    waiting = iter(items)
    lock = threading.Lock()
    done: SimpleQueue[tuple[R | None, BaseException | None] | None] = SimpleQueue()
    stopping = threading.Event()
    workers = [JobRunner() for _ in range(min(num_workers, len(items)))]

    def serve(worker: JobRunner) -> None:
        try:
            while not stopping.is_set():
                with lock:
                    item = next(waiting, None)
                if item is None:
                    break
                done.put((work(worker, item), None))
        except BaseException as cause:  # noqa: BLE001 (it is raised again where it is waited for)
            done.put((None, cause))
        finally:
            worker.close()
            done.put(None)

    threads = [threading.Thread(target=serve, args=(item,), daemon=True) for item in workers]
    for thread in threads:
        thread.start()
    try:
        running = len(threads)
        while running:
            found = done.get()
            if found is None:
                running -= 1
            elif found[1] is not None:
                raise found[1]
            else:
                yield found[0]  # type: ignore[misc]
    finally:
        stopping.set()
        for worker in workers:
            worker.close()


_isolated: dict[int, JobRunner] = {}
"""What runs tasks for a process of Ray, which works on many items one after another."""


def _work_on_ray(work: Callable[[JobRunner, str], R], item: str) -> R:
    return work(_isolated.setdefault(os.getpid(), JobRunner()), item)


def run_ray(
    items: Sequence[str], work: Callable[[JobRunner, str], R], num_workers: int
) -> Iterator[R]:
    """Work on a Ray cluster: the one that is running, or one on this machine.

    Every item is a task with a processor of its own, which starts the isolated process; a task
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
    task: Any = ray.remote(num_cpus=1, max_retries=3)(_work_on_ray)
    shared = ray.put(work)
    waiting = list(reversed(items))
    running: list[Any] = []
    while waiting or running:
        while waiting and len(running) < 2 * num_workers:
            running.append(task.remote(shared, waiting.pop()))
        [ready], running = ray.wait(running, num_returns=1)
        yield ray.get(ready)
