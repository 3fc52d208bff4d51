"""The count of torch ops in this process, in all threads and modes (op_counter.cpp)."""

import ctypes
import mmap
import os
from collections.abc import Sequence
from typing import Any

import torch.fx

from passnet.judge.protocol.op_counts import NUM_BYTES, NUM_COUNTERS
from passnet.passes.apply.op_observer import NOT_COMPUTING
from passnet.passes.apply.rewrite import apply_passes
from passnet.passes.load import loaded_passes

_LEFT_OUT = (*NOT_COMPUTING, "prim", "prims", "profiler", "passnet")
"""Ops that compute nothing, and namespaces of such ops. Those of `prims` compute by ops of `aten`,
and run on tensors without values when passes are applied."""


class OpCounter:
    """The counters of ops that compute; they count until this process ends."""

    def __init__(self, library: str, fd: int) -> None:
        count = ctypes.CDLL(library).passnet_count_ops
        count.restype, count.argtypes = ctypes.c_int64, [ctypes.c_int, ctypes.c_char_p]
        left_out = " ".join(name.replace(".", "::") for name in _LEFT_OUT)
        num_counted = count(fd, left_out.encode())
        assert num_counted > 0, "torch's ops could not be counted"
        self._counters = memoryview(mmap.mmap(fd, NUM_BYTES)).cast("Q")[:NUM_COUNTERS]
        os.close(fd)

    def ops_by_node(
        self, module: torch.fx.GraphModule, arguments: Sequence[Any]
    ) -> dict[torch.fx.Node, int]:
        """Run a graph on copies of its arguments; return the ops of each node, and forget them."""
        copies = [
            value.clone() if isinstance(value, torch.Tensor) else value for value in arguments
        ]
        interpreter = _Interpreter(module, self)
        interpreter.run(*copies)
        for number in range(NUM_COUNTERS):
            self._counters[number] = 0
        return interpreter.ops

    def total(self) -> int:
        """Return the number of ops so far."""
        return sum(self._counters)


class _Interpreter(torch.fx.Interpreter):
    """An interpreter that counts the ops of each node."""

    def __init__(self, module: torch.fx.GraphModule, counter: OpCounter) -> None:
        super().__init__(module)
        self.ops: dict[torch.fx.Node, int] = {}
        self._counter = counter

    def run_node(self, n: torch.fx.Node) -> Any:
        before = self._counter.total()
        result = super().run_node(n)
        self.ops[n] = self._counter.total() - before
        return result


def ops_outside(
    counter: OpCounter, module: torch.fx.GraphModule, arguments: Sequence[Any], passes: str
) -> int:
    """Return the ops of a call that are left when the passes of a folder have rewritten a graph."""
    ops = counter.ops_by_node(module, arguments)  # before any candidate code is loaded
    apply_passes(module, loaded_passes(passes), arguments)
    return sum(ops.get(node, 0) for node in module.graph.nodes)
