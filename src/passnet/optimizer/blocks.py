"""The blocks of a net, which are the modules within it: how long each takes in eager torch, and of
which one the ops of a graph are.
"""

import time
from collections import defaultdict
from typing import Any

import torch

from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.record import BlockRecord

MAX_BLOCKS = 300
"""Modules are blocks down to the depth at which there are no more than these."""

MIN_CALLS, MAX_CALLS, SECONDS = 5, 50, 0.5
"""Calls are made for so long, as far as these are enough and not too many."""


def block_times(call: NetCall) -> tuple[BlockRecord, ...]:
    """The blocks of a net in the order in which they first run; the fastest of some calls of each.
    The time of a block holds that of the blocks within it.
    """
    blocks = _blocks(call.net)
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
        deadline = time.monotonic() + SECONDS
        for number in range(MAX_CALLS):
            if number >= MIN_CALLS and time.monotonic() > deadline:
                break
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


def op_blocks(net: torch.nn.Module, graph: torch.fx.Graph) -> tuple[str, ...]:
    """The module within the net that each op of a graph of Dynamo's is from, the innermost one; ""
    for the net itself, and where Dynamo does not say.
    """
    names = {str(id(module)): name for name, module in net.named_modules()}
    found = []
    for node in graph.nodes:
        if node.op in ("call_function", "call_method"):
            # a module that is called again is named ID@NUMBER
            callers = [key.partition("@")[0] for key in node.meta.get("nn_module_stack", ())]
            found.append(next((names[key] for key in reversed(callers) if key in names), ""))
    return tuple(found)


def _blocks(net: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """The modules that are blocks, by their names: as deep as there are few enough of them."""
    modules = {name: module for name, module in net.named_modules() if name}
    depth = max((name.count(".") for name in modules), default=0)
    while depth and sum(name.count(".") <= depth for name in modules) > MAX_BLOCKS:
        depth -= 1
    return {name: module for name, module in modules.items() if name.count(".") <= depth}
