"""Graphs that were prepared once, to be judged again and again."""

import threading
from collections.abc import Callable

from passnet.graph.spec import Graph
from passnet.judge.processes.loaded_worker import PreparedGraph


class PreparedGraphs:
    """Prepared graphs that are kept: the first ones, as long as there is room. Graphs are judged in
    turn, so that whichever had to go would be the next to be asked for. `max_bytes` is what they
    may take together, twice the memory that workers see; 0 keeps none.
    """

    def __init__(self, max_bytes: int = 0) -> None:
        self._free_bytes = max_bytes
        self._kept: dict[tuple[str, int, int], tuple[Graph, PreparedGraph]] = {}
        self._lock = threading.Lock()

    def get(
        self, graph: Graph, device: str, seed: int, make: Callable[[], PreparedGraph]
    ) -> PreparedGraph:
        """A graph of a suite, prepared for a device and a seed of its inputs: the one that is kept,
        or a new one, which `make` makes; what that raises goes on.
        """
        key = (device, seed, id(graph))  # a graph that is kept keeps its number
        if key in self._kept:
            return self._kept[key][1]
        prepared = make()
        with self._lock:
            num_bytes = 2 * prepared.content.nbytes
            if num_bytes <= self._free_bytes and key not in self._kept:
                self._free_bytes -= num_bytes
                self._kept[key] = (graph, prepared)
        return prepared
