"""One actor of a Ray cluster for single items, of which the service awaits the results."""

from collections.abc import Callable
from typing import Any

from passnet.core.hardware import num_processors
from passnet.core.jobs.actors import ActorDevice, Actors
from passnet.core.jobs.ray_cluster import ray_cluster


class OpenActor:
    """One Ray actor for single items; it opens its worker at once, on a machine that is fit."""

    def __init__(
        self, open_worker: Callable[[], Callable[[Any], Any]], device: ActorDevice
    ) -> None:
        self._ray = ray_cluster(max(device.num_cpus, num_processors()))
        actors = Actors(self._ray, device, open_worker)
        actors.start()
        self._actor, _, _ = actors.next_done()

    @property
    def lost(self) -> tuple[type[Exception], ...]:
        """Return the errors raised when the actor, its machine or a result is gone."""
        return self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError

    def work(self, task: Any) -> Any:
        """Return an awaitable for the result of an item."""
        return self._actor.work.remote(task)

    def end(self) -> None:
        """End the actor's process at once."""
        self._ray.kill(self._actor)
