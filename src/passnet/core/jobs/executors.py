"""Executors of work on many items: workers on this machine, or a Ray cluster."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Protocol, TypeVar

from passnet.core.jobs.actors import results_of
from passnet.core.jobs.process import JobRunner
from passnet.errors import InputError, no_such

I = TypeVar("I")  # noqa: E741 (an item)
R = TypeVar("R")

EXECUTORS = {"local": "run_local", "ray": "run_ray"}


class Executor(Protocol):
    """A function that works on items and yields each result as soon as it is ready."""

    def __call__(
        self, items: Iterable[I], work: Callable[[JobRunner, I], R], num_workers: int
    ) -> Iterator[R]:
        """Yield `work(runner, item)` of every item in any order; all can be pickled."""
        ...


def executor(name: str) -> Executor:
    """Return the executor of a name; raise InputError if there is none."""
    if name not in EXECUTORS:
        raise InputError(no_such("executor", name, EXECUTORS))
    return globals()[EXECUTORS[name]]


def run_local(
    items: Iterable[I], work: Callable[[JobRunner, I], R], num_workers: int
) -> Iterator[R]:
    """Work on this machine; each worker takes the next item when it is free."""
    waiting = iter(items)
    lock = threading.Lock()
    finished: SimpleQueue[tuple[R | None, BaseException | None] | None] = SimpleQueue()
    stopping = threading.Event()
    runners = [JobRunner() for _ in range(num_workers)]

    def serve(runner: JobRunner) -> None:
        try:
            while not stopping.is_set():
                with lock:
                    item = next(waiting, None)
                if item is None:
                    break
                finished.put((work(runner, item), None))
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


@contextmanager
def _runner(work: Callable[[JobRunner, I], R]) -> Iterator[Callable[[I], R]]:
    with JobRunner() as runner:
        yield partial(work, runner)


def run_ray(
    inputs: Iterable[I], work: Callable[[JobRunner, I], R], num_workers: int
) -> Iterator[R]:
    """Work on a Ray cluster, the running one or a new one here; see `run_actors`."""
    return results_of(list(inputs), partial(_runner, work), num_workers)
