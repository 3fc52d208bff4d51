"""Items worked on by Ray actors; each actor owns a device for the length of a run."""

import logging
import socket
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeVar

from passnet.core.hardware import num_processors
from passnet.core.jobs.ray_cluster import code_hash, ray_cluster, ray_sentence
from passnet.errors import InputError, MeasureError

I = TypeVar("I")  # noqa: E741 (an item)
R = TypeVar("R")

MAX_LOSSES = 3
"""Actors that one item may cost before the run ends, or one machine before it is left out."""

MAX_WAIT_S = 60.0
"""Longest wait for all machines of a cluster to describe themselves."""

_log = logging.getLogger("passnet")


@dataclass(frozen=True, slots=True)
class ActorDevice:
    """The processors and GPUs of one machine that an actor owns."""

    num_cpus: int = 1
    num_gpus: int = 0


def this_machine() -> str:
    """Return this machine's name."""
    return socket.gethostname()


def _actor_class() -> type:
    """Return the class of actors; Ray sends a local one by value, as a machine may lack passnet."""

    class _Actor:
        """A worker in a Ray process."""

        def place(self) -> tuple[str, str]:
            """Return the machine's name and Ray's name of the node."""
            import socket

            import ray

            return socket.gethostname(), ray.get_runtime_context().get_node_id()

        def open(self, opener: list[Any], code: str | None) -> str | None:
            """Open the worker, or return the reason why not; `opener` holds Ray's reference."""
            try:
                import ray

                from passnet.core.jobs.ray_cluster import code_hash

                if code is not None and code_hash() != code:
                    return "its passnet has other files than the run's"
                self._work = ray.get(opener[0])()
            except Exception as cause:  # noqa: BLE001 (a machine may fail in any way)
                ours = isinstance(cause, ValueError)
                return str(cause) if ours else f"{type(cause).__name__}: {cause}"
            return None

        def work(self, item: Any) -> Any:
            """Return the result of an item."""
            return self._work(item)

    return _Actor


def run_actors(
    inputs: Sequence[I],
    open_worker: Callable[[], Callable[[I], R]],
    num_workers: int,
    device: ActorDevice,
    home: Callable[[I], str | None] = lambda _: None,
) -> Iterator[R]:
    """Yield the results of all items, in any order, from `num_workers` actors.

    An actor calls `open_worker` once, and takes items first whose `home` is its machine or None. A
    machine with another passnet, or where that raises, is left out with a warning. The items of a
    lost actor are done again.

    Raises:
        InputError: no machine of the cluster has such a device, or all are left out.
        MeasureError: an item costs several actors, or they cannot be started.
    """
    if not inputs:
        return
    num_workers = min(num_workers, len(inputs))
    ray = ray_cluster(max(num_workers * device.num_cpus, num_processors()))
    waiting = list(enumerate(inputs))
    num_lost: Counter[int] = Counter()
    with Actors(ray, device, open_worker) as actors:
        for _ in range(num_workers):
            actors.start()
        while waiting or actors.is_working:
            actor, task, result = actors.next_done()
            if task is not None and isinstance(result, ray.exceptions.RayError):
                num_lost[task[0]] += 1
                if num_lost[task[0]] == MAX_LOSSES:
                    text = f"{MAX_LOSSES} workers were lost, one after another, over the same item"
                    raise MeasureError(f"{text}: {ray_sentence(result)}") from result
                waiting.insert(0, task)
                actors.start()
                continue
            if waiting:
                ours = (None, actors.places[actor][0])
                following = next((pair for pair in waiting if home(pair[1]) in ours), waiting[0])
                waiting.remove(following)
                actors.running[actor.work.remote(following[1])] = (actor, following)
            else:
                actors.end(actor)
            if task is not None:
                yield result


def on_each_machine(function: Callable[[], R], device: ActorDevice) -> list[R]:
    """Return a function's results on the machines that have such a device, without failing ones.

    Machines that are busy for long are not waited for. Raises as `run_actors` where all fail.
    """
    ray = ray_cluster(max(device.num_cpus, num_processors()))
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(**asdict(device))(lambda: function())
    strategies = [
        NodeAffinitySchedulingStrategy(node, soft=False) for node in _fit_nodes(ray, device, {})
    ]
    running = [task.options(scheduling_strategy=each).remote() for each in strategies]
    done, _ = ray.wait(running, num_returns=len(running), timeout=MAX_WAIT_S)
    results = []
    for ready in done or ray.wait(running)[0]:
        with suppress(ray.exceptions.RayError):
            results.append(ray.get(ready))
    return results or list(run_actors([0], lambda: lambda _: function(), 1, device))


def results_of(
    inputs: Sequence[I],
    open_worker: Callable[[], AbstractContextManager[Callable[[I], R]]],
    num_actors: int | None,
    device: ActorDevice = ActorDevice(),
) -> Generator[R, None, None]:
    """Yield results, in order from this process or in any order from `num_actors` actors."""
    if num_actors is not None:
        yield from run_actors(inputs, partial(held_open, open_worker), num_actors, device)
        return
    with open_worker() as work:
        yield from map(work, inputs)


def held_open(
    open_worker: Callable[[], AbstractContextManager[Callable[[Any], Any]]],
) -> Callable[[Any], Any]:
    """Return a worker that stays open until its process ends."""
    stack = ExitStack()
    work = stack.enter_context(open_worker())
    _held.append(stack)
    return work


_held: list[ExitStack] = []
"""Open workers of this process. State of the process, as an actor ends without notice."""


class Actors:
    """The actors of a run with their current items by number; None while an actor starts."""

    def __init__(self, ray: Any, device: ActorDevice, open_worker: Callable[[], Any]) -> None:
        self._ray = ray
        self._device = device
        self._opener = [ray.put(open_worker)]
        is_sent = ray.get_runtime_context().runtime_env.get("py_modules")
        self._code = None if is_sent else code_hash()
        self._actors: set[Any] = set()
        self._left_out: dict[str, str] = {}
        self._num_lost: Counter[str | None] = Counter()
        self.running: dict[Any, tuple[Any, tuple[int, Any] | None]] = {}
        self.places: dict[Any, tuple[str, str]] = {}
        """Machine and node of each actor."""

    def __enter__(self) -> "Actors":
        return self

    def __exit__(self, *_: object) -> None:
        for actor in list(self._actors):
            self.end(actor)

    @property
    def is_working(self) -> bool:
        """Return whether an actor has an item."""
        return any(task is not None for _, task in self.running.values())

    def start(self) -> None:
        """Start an actor on a machine that is not left out; raise InputError if there is none."""
        from ray.util.scheduling_strategies import NodeLabelSchedulingStrategy, NotIn

        _fit_nodes(self._ray, self._device, self._left_out)
        options: dict[str, Any] = asdict(self._device)
        if self._left_out:
            elsewhere = {"ray.io/node-id": NotIn(*self._left_out)}
            options["scheduling_strategy"] = NodeLabelSchedulingStrategy(hard=elsewhere)
        actor = self._ray.remote(**options)(_actor_class()).remote()
        self._actors.add(actor)
        self.running[actor.place.remote()] = (actor, None)

    def end(self, actor: Any) -> None:
        """End an actor's process at once."""
        self._actors.discard(actor)
        self._ray.kill(actor)

    def next_done(self) -> tuple[Any, tuple[int, Any] | None, Any]:
        """Return the next actor that is ready, with the item that it had and the result.

        The result of an actor that is lost over an item is Ray's error.
        """
        errors = self._ray.exceptions
        while True:
            [ready], _ = self._ray.wait(list(self.running), num_returns=1)
            actor, task = self.running.pop(ready)
            try:
                result = self._ray.get(ready)
            except errors.RayTaskError as failed:
                raise failed.cause from None  # as it was raised there
            except errors.RayError as lost:
                self.end(actor)
                if task is not None:
                    return actor, task, lost
                self._lose(actor, lost)
                continue
            if actor not in self.places:
                self.places[actor] = result
                self.running[actor.open.remote(self._opener, self._code)] = (actor, None)
            elif task is not None or result is None:
                return actor, task, result
            else:
                self.end(actor)
                self._leave_out(*self.places[actor], result)

    def _lose(self, actor: Any, cause: Exception) -> None:
        """Count a loss before the first item, and start another actor."""
        machine, node = self.places.get(actor, ("", None))
        self._num_lost[node] += 1
        reason = f"{MAX_LOSSES} workers were lost as they started: {ray_sentence(cause)}"
        if self._num_lost[node] < MAX_LOSSES:
            self.start()
        elif node is None:
            raise MeasureError(reason) from cause
        else:
            self._leave_out(machine, node, reason)

    def _leave_out(self, machine: str, node: str, reason: str) -> None:
        """Leave a node out with a warning, and start an actor elsewhere."""
        if node not in self._left_out:
            self._left_out[node] = f"machine {machine} (node {node[:8]}): {reason}"
            _log.warning("left out: %s", self._left_out[node])
        self.start()


def _fit_nodes(ray: Any, device: ActorDevice, left_out: Mapping[str, str]) -> list[str]:
    """Return the nodes with such a device, but for those left out; raise InputError if none is."""
    nodes = {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}
    fit = [
        name
        for name, has in nodes.items()
        if has.get("CPU", 0) >= device.num_cpus and has.get("GPU", 0) >= device.num_gpus
    ]
    if remaining := [name for name in fit if name not in left_out]:
        return remaining
    if fit:
        reasons = "; ".join(left_out.values())
        raise InputError(f"no machine of the Ray cluster is left to work on: {reasons}")
    plural = "s" if device.num_cpus > 1 else ""
    size = f"{device.num_cpus} processor{plural}" + (" and a GPU" if device.num_gpus else "")
    most = [
        max((int(has.get(kind, 0)) for has in nodes.values()), default=0) for kind in ("CPU", "GPU")
    ]
    raise InputError(
        f"no machine of the Ray cluster has {size}; its {len(nodes)} machines have at most "
        f"{most[0]} processors and {most[1]} GPUs"
    )
