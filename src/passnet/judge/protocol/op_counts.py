"""The counts of torch ops in a worker, in memory that it shares with the judge."""

import numpy as np

from passnet.judge.protocol.messages import plain_text
from passnet.judge.protocol.shared_memory import SharedMemory

NUM_COUNTERS, NAME_BYTES = 8192, 64
"""Counters, and the bytes of each one's name behind them, as in `worker/op_counter.cpp`."""
NUM_BYTES = NUM_COUNTERS * (8 + NAME_BYTES)
MAX_NAMED = 8


class OpBudget:
    """The budget of torch ops in a strict worker, and the ops beyond it.

    The calls of a graph may compute what its ops outside replacements need, `ops_per_call` counted
    ops each; loading may compute nothing. Names are the worker's account.
    """

    def __init__(self, ops_per_call: int = 0) -> None:
        self.memory = SharedMemory("passnet-op-counts", NUM_BYTES)
        self.ops_per_call = ops_per_call
        self._counters = np.frombuffer(self.memory.map, np.uint64, NUM_COUNTERS)
        self._seen = self._counters.copy()
        self._beyond: dict[int, int] = {}
        self._num_beyond = 0

    def note(self, num_calls: int | None) -> None:
        """Compare the ops since the last time with so many calls; with None, allow any."""
        now = self._counters.copy()
        counts, self._seen = now - self._seen, now
        num_beyond = 0 if num_calls is None else int(counts.sum()) - num_calls * self.ops_per_call
        if num_beyond > 0:
            self._num_beyond += num_beyond
            for number in np.argsort(counts)[::-1][:MAX_NAMED].tolist():
                if counts[number]:
                    self._beyond[number] = self._beyond.get(number, 0) + int(counts[number])

    def excess(self) -> str | None:
        """Return in a few words what torch has computed beyond the budget; None if nothing."""
        if not self._num_beyond:
            return None
        most = sorted(self._beyond, key=self._beyond.__getitem__, reverse=True)[:MAX_NAMED]
        return (
            f"torch computed {self._num_beyond} ops beyond those that the rewritten graph needs "
            f"({self.ops_per_call} a call), among them {', '.join(map(self._name, most))}"
        )

    def _name(self, number: int) -> str:
        start = NUM_COUNTERS * 8 + number * NAME_BYTES
        text = bytes(self.memory.map[start : start + NAME_BYTES]).split(b"\0")[0]
        return plain_text(text.decode("ascii", "replace"), NAME_BYTES)
