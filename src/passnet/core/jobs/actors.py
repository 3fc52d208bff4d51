"""Items worked on by Ray actors; each actor owns a device for the length of a run."""

import os
import socket
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from passnet.core.jobs.executors import ray_cluster
from passnet.errors import InputError, MeasureError

I = TypeVar("I")  # noqa: E741 (an item)
R = TypeVar("R")

MAX_LOSSES = 3
"""Actors that one item may cost before the run ends."""


@dataclass(frozen=True, slots=True)
class ActorDevice:
    """The processors and GPUs of one machine that an actor owns."""

    num_cpus: int = 1
    num_gpus: int = 0


def this_machine() -> str:
    """Return this machine's name."""
    return socket.gethostname()


class _Actor:
    """A worker in a Ray process, opened at its first item."""

    def __init__(self, open_worker: Callable[[], Callable[[Any], Any]]) -> None:
        self._open = open_worker
        self._work: Callable[[Any], Any] | None = None

    def machine(self) -> str:
        return this_machine()

    def work(self, task: Any) -> Any:
        if self._work is None:
            self._work = self._open()
        return self._work(task)


class OpenActor:
    """One Ray actor for single items; it opens its worker at the first."""

    def __init__(
        self, open_worker: Callable[[], Callable[[Any], Any]], device: ActorDevice
    ) -> None:
        self._ray = ray_cluster(max(device.num_cpus, len(os.sched_getaffinity(0))))
        _check_fit(self._ray, device)
        kind = self._ray.remote(num_cpus=device.num_cpus, num_gpus=device.num_gpus)(_Actor)
        self._actor = kind.remote(open_worker)

    @property
    def lost(self) -> type[Exception]:
        """Return the type of error raised when the actor, its process or its machine is gone."""
        return self._ray.exceptions.RayActorError

    def work(self, task: Any) -> Any:
        """Return an awaitable for the result of an item."""
        return self._actor.work.remote(task)

    def end(self) -> None:
        """End the actor's process at once."""
        self._ray.kill(self._actor)


def run_actors(
    inputs: Sequence[I],
    open_worker: Callable[[], Callable[[I], R]],
    num_workers: int,
    device: ActorDevice,
    home: Callable[[I], str | None] = lambda _: None,
) -> Iterator[R]:
    """Yield the results of all items, in any order, from `num_workers` actors.

    An actor calls `open_worker` once, and takes items first whose `home` is its machine or None.
    The items of a lost actor are done again; an item that costs several is a MeasureError. A
    cluster without such a device is an InputError.
    """
    if not inputs:
        return
    num_workers = min(num_workers, len(inputs))
    ray = ray_cluster(max(num_workers * device.num_cpus, len(os.sched_getaffinity(0))))
    _check_fit(ray, device)
    waiting = list(enumerate(inputs))
    num_lost: Counter[int | None] = Counter()
    with _Actors(ray, device, open_worker) as actors:
        for _ in range(num_workers):
            actors.start()
        while actors.running:
            actor, task, result = actors.next_done()
            number = task[0] if task else None
            if isinstance(result, ray.exceptions.RayActorError):
                num_lost[number] += 1
                if num_lost[number] == MAX_LOSSES:
                    reason = str(result).strip().partition("\n")[0]
                    text = f"{MAX_LOSSES} workers were lost, one after another, over the same item"
                    raise MeasureError(f"{text}: {reason}") from result
                waiting[:0] = [task] if task else []
                actors.start()
                continue
            if task is None:
                actors.machines[actor] = result
                num_lost[None] = 0
            if waiting:
                ours = (None, actors.machines[actor])
                following = next((pair for pair in waiting if home(pair[1]) in ours), waiting[0])
                waiting.remove(following)
                actors.running[actor.work.remote(following[1])] = (actor, following)
            else:
                actors.end(actor)
            if task is not None:
                yield result


def results_of(
    inputs: Sequence[I],
    open_worker: Callable[[], AbstractContextManager[Callable[[I], R]]],
    num_actors: int | None,
) -> Generator[R, None, None]:
    """Yield results, in order from this process or in any order from `num_actors` actors."""
    if num_actors is not None:
        yield from run_actors(inputs, partial(_opened, open_worker), num_actors, ActorDevice())
        return
    with open_worker() as work:
        yield from map(work, inputs)


def _opened(
    open_worker: Callable[[], AbstractContextManager[Callable[[Any], Any]]],
) -> Callable[[Any], Any]:
    """Return a worker that stays open until its process ends."""
    stack = ExitStack()
    work = stack.enter_context(open_worker())
    _held.append(stack)
    return work


_held: list[ExitStack] = []
"""Open workers of this process. State of the process, as an actor ends without notice."""


class _Actors:
    """The actors of a run with their current items by number; None while an actor starts."""

    def __init__(self, ray: Any, device: ActorDevice, open_worker: Callable[[], Any]) -> None:
        self._ray = ray
        kind = ray.remote(num_cpus=device.num_cpus, num_gpus=device.num_gpus)(_Actor)
        opener = ray.put(open_worker)
        self._make = lambda: kind.remote(opener)
        self._actors: set[Any] = set()
        self.running: dict[Any, tuple[Any, tuple[int, Any] | None]] = {}
        self.machines: dict[Any, str] = {}

    def __enter__(self) -> "_Actors":
        return self

    def __exit__(self, *_: object) -> None:
        for actor in list(self._actors):
            self.end(actor)

    def start(self) -> None:
        actor = self._make()
        self._actors.add(actor)
        self.running[actor.machine.remote()] = (actor, None)

    def end(self, actor: Any) -> None:
        self._actors.discard(actor)
        self._ray.kill(actor)

    def next_done(self) -> tuple[Any, tuple[int, Any] | None, Any]:
        """Return the next finished actor, its item and the result; Ray's error if it is lost."""
        [ready], _ = self._ray.wait(list(self.running), num_returns=1)
        actor, task = self.running.pop(ready)
        try:
            return actor, task, self._ray.get(ready)
        except self._ray.exceptions.RayTaskError as failed:
            raise failed.cause from None  # as it was raised there
        except self._ray.exceptions.RayActorError as lost:
            self.end(actor)
            return actor, task, lost


def _check_fit(ray: Any, device: ActorDevice) -> None:
    """Raise an error if no machine of the cluster has such a device."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for node in nodes:
        if node.get("CPU", 0) >= device.num_cpus and node.get("GPU", 0) >= device.num_gpus:
            return
    plural = "s" if device.num_cpus > 1 else ""
    size = f"{device.num_cpus} processor{plural}" + (" and a GPU" if device.num_gpus else "")
    raise InputError(
        f"no machine of the Ray cluster has {size}; it has {len(nodes)} machines with at most "
        f"{max((int(node.get('CPU', 0)) for node in nodes), default=0)} processors and "
        f"{max((int(node.get('GPU', 0)) for node in nodes), default=0)} GPUs"
    )
