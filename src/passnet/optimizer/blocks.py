"""The blocks of a net, its inner modules: their times in eager torch and their ops."""

import time
from collections import defaultdict
from typing import Any

import torch

from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.record import BlockRecord

MAX_BLOCKS = 300
"""The most modules that count as blocks; deeper ones are left out."""

MIN_CALLS, MAX_CALLS, SECONDS = 5, 50, 0.5
"""Bounds on the number of timed calls, and seconds for all of them."""


def block_times(call: NetCall, max_blocks: int = MAX_BLOCKS) -> tuple[BlockRecord, ...]:
    """Return the fastest time of each block, by the order of their first runs.

    The time of a block includes that of the blocks within it. Scripted modules are left out, as
    torch takes no hooks for them. A net that is refused is not called: it may keep a state.
    """
    if call.refusal:
        return ()
    blocks = _blocks(call.net, max_blocks)
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
        BlockRecord(name, type(blocks[name]).__name__, min(all_ms))
        for name, all_ms in times.items()
    )


def op_blocks(net: torch.nn.Module, graph: torch.fx.Graph) -> tuple[str, ...]:
    """Return the innermost module of each op of a Dynamo graph.

    "" stands for the net itself, and for ops for which Dynamo names no module.
    """
    names = {str(id(module)): name for name, module in net.named_modules()}
    blocks = []
    for node in graph.nodes:
        if node.op in ("call_function", "call_method"):
            # a module that is called again is named ID@NUMBER
            callers = [key.partition("@")[0] for key in node.meta.get("nn_module_stack", ())]
            blocks.append(next((names[key] for key in reversed(callers) if key in names), ""))
    return tuple(blocks)


def _blocks(net: torch.nn.Module, max_blocks: int) -> dict[str, torch.nn.Module]:
    """Return modules by name, as deep as at most `max_blocks` allows."""
    modules = {
        name: module
        for name, module in net.named_modules()
        if name and not isinstance(module, torch.jit.ScriptModule)
    }
    depth = max((name.count(".") for name in modules), default=0)
    while depth and sum(name.count(".") <= depth for name in modules) > max_blocks:
        depth -= 1
    return {name: module for name, module in modules.items() if name.count(".") <= depth}
