"""How long the blocks of a net take in eager torch: the modules within it, down to some depth."""

import time
from collections import defaultdict
from typing import Any

from passnet.optimizer.net_call import NetCall
from passnet.optimizer.record import BlockRecord

MAX_DEPTH = 3
"""How deep modules may lie to be a block: `layers.0.attention` is at depth 3."""

NUM_CALLS = 5


def block_times(call: NetCall) -> tuple[BlockRecord, ...]:
    """The blocks of a net in the order in which they first run; the fastest of some calls of each.
    The time of a block holds that of the blocks within it.
    """
    blocks = {
        name: module
        for name, module in call.net.named_modules()
        if name and name.count(".") < MAX_DEPTH
    }
    times: dict[str, list[float]] = {}
    current: dict[str, float] = defaultdict(float)
    started: list[tuple[str, float]] = []

    def enter(name: str) -> Any:
        def hook(*_: Any) -> None:
            current[name] += 0.0  # in the order in which they begin
            started.append((name, time.perf_counter()))

        return hook

    def leave(*_: Any) -> None:
        name, start = started.pop()
        current[name] += (time.perf_counter() - start) * 1e3

    handles = [module.register_forward_pre_hook(enter(name)) for name, module in blocks.items()]
    handles += [module.register_forward_hook(leave) for module in blocks.values()]
    try:
        for _ in range(NUM_CALLS):
            current.clear()
            started.clear()
            call.eager(call.leaves)
            for name, ms in current.items():
                times.setdefault(name, []).append(ms)
    finally:
        for handle in handles:
            handle.remove()
    return tuple(
        BlockRecord(name, type(blocks[name]).__name__, min(found)) for name, found in times.items()
    )
