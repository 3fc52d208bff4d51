"""Executors of work on many items: workers on this machine, or a Ray cluster."""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from passnet.core.jobs.process import JobRunner
from passnet.errors import InputError, boundary

R = TypeVar("R")

EXECUTORS = {"local": "run_local", "ray": "run_ray"}


class Executor(Protocol):
    """A function that works on named items and yields each result as soon as it is ready."""

    def __call__(
        self, names: Sequence[str], work: Callable[[JobRunner, str], R], num_workers: int
    ) -> Iterator[R]:
        """Yield `work(runner, name)` of every name in any order; `work` can be pickled."""
        ...


def executor(name: str) -> Executor:
    """Return the executor of a name; raise InputError if there is none."""
    if name not in EXECUTORS:
        raise InputError(f"no executor {name!r}; there are {', '.join(EXECUTORS)}")
    return globals()[EXECUTORS[name]]


def run_local(
    names: Iterable[str], work: Callable[[JobRunner, str], R], num_workers: int
) -> Iterator[R]:
    """Work on this machine; each worker takes the next name when it is free."""
    waiting = iter(names)
    lock = threading.Lock()
    finished: SimpleQueue[tuple[R | None, BaseException | None] | None] = SimpleQueue()
    stopping = threading.Event()
    runners = [JobRunner() for _ in range(num_workers)]

    def serve(runner: JobRunner) -> None:
        try:
            while not stopping.is_set():
                with lock:
                    name = next(waiting, None)
                if name is None:
                    break
                finished.put((work(runner, name), None))
        except BaseException as cause:  # noqa: BLE001 (it is raised again where it is waited for)
            finished.put((None, cause))
        finally:
            runner.close()
            finished.put(None)

    threads = [threading.Thread(target=serve, args=(runner,), daemon=True) for runner in runners]
    for thread in threads:
        thread.start()
    try:
        num_running = len(threads)
        while num_running:
            ended = finished.get()
            if ended is None:
                num_running -= 1
            elif ended[1] is not None:
                raise ended[1]
            else:
                yield ended[0]  # type: ignore[misc]
    finally:
        stopping.set()
        for runner in runners:
            runner.close()


@cache
def _runner_of(_process_id: int) -> JobRunner:
    """Return the runner of a Ray process, which works on many names one after another."""
    return JobRunner()


def _work_on_ray(work: Callable[[JobRunner, str], R], name: str) -> R:
    return work(_runner_of(os.getpid()), name)


def run_ray(
    names: Sequence[str], work: Callable[[JobRunner, str], R], num_workers: int
) -> Iterator[R]:
    """Work on a Ray cluster, the running one or a new one here; raise InputError without Ray.

    A task whose Ray worker dies is done again elsewhere.
    """
    ray = ray_cluster(num_workers)
    task: Any = ray.remote(num_cpus=1, max_retries=3)(_work_on_ray)
    shared = ray.put(work)
    waiting = list(reversed(names))
    running: list[Any] = []
    while waiting or running:
        while waiting and len(running) < 2 * num_workers:
            running.append(task.remote(shared, waiting.pop()))
        [ready], running = ray.wait(running, num_returns=1)
        yield ray.get(ready)


def ray_cluster(num_cpus: int) -> Any:
    """Return `ray`, connected to the running cluster or a new one; raise InputError without it."""
    if find_spec("ray") is None:
        raise InputError("Ray is not installed; pip install 'passnet[ray]'")
    with boundary(InputError, "Ray cannot be imported"):
        import ray
    quiet: Any = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not ray.is_initialized():
        with boundary(InputError, "Ray does not start"):
            try:
                ray.init(address="auto", **quiet)
            except ConnectionError:  # none is running
                if "RAY_ADDRESS" in os.environ:
                    raise
                ray.init(num_cpus=num_cpus, include_dashboard=False, **quiet)
    return ray
