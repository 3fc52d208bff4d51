"""The dispatch time of eager PyTorch: that of the ops of a graph on tensors of one element."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch.utils._pytree import tree_leaves, tree_map

from passnet.bench.profiling.record import EagerParts
from passnet.judge.timing.estimate import low_mean

BURST_MS = 0.2
MAX_CALLS = 100
NUM_BURSTS = 8
SLOW_MS = 20.0
"""An op that takes longer is timed twice and no further."""


@dataclass(frozen=True, slots=True)
class OpTime:
    """Milliseconds of an op, and of it on tensors of one element; None where it takes none."""

    ms: float
    dispatch_ms: float | None


def eager_parts(module: torch.fx.GraphModule, args: list[Any], eager_ms: float) -> EagerParts:
    """Return the parts of a call of eager PyTorch, from the times of its ops."""
    times = op_times(module, args)
    total = sum(op.ms for op in times)
    dispatched_ms = sum(op.ms for op in times if op.dispatch_ms is not None)
    dispatch = min(sum(min(op.ms, op.dispatch_ms or 0.0) for op in times), eager_ms)
    return EagerParts(dispatch, eager_ms - dispatch, dispatched_ms / total if total else 1.0)


def op_times(module: torch.fx.GraphModule, args: Sequence[Any]) -> list[OpTime]:
    """Return the times of the ops of a module in their order, each on its arguments in a call."""
    timer = _OpTimer(module)
    with torch.no_grad():
        timer.run(*args)
    return timer.times


class _OpTimer(torch.fx.Interpreter):
    """Runs a graph op by op, and times each."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.times: list[OpTime] = []

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self._timed(target, args, kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self._timed(getattr(type(args[0]), target), args, kwargs)

    def _timed(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        returned = function(*args, **kwargs)
        ms = _time_ms(lambda: function(*args, **kwargs))
        if _is_view(returned, (args, kwargs)):
            self.times.append(OpTime(ms, ms))
            return returned
        dispatch_ms = None
        for small_args, small_kwargs in _smaller(args, kwargs):
            try:
                function(*small_args, **small_kwargs)
            except Exception:  # noqa: BLE001, S112 (an op refuses such shapes in any way it likes)
                continue
            dispatch_ms = _time_ms(lambda a=small_args, k=small_kwargs: function(*a, **k))
            break
        self.times.append(OpTime(ms, dispatch_ms))
        return returned


def _is_view(returned: Any, arguments: Any) -> bool:
    """Return True if an op computed no values: it returned views of its arguments, or no tensor."""
    storages = {tensor.untyped_storage().data_ptr() for tensor in _tensors(arguments)}
    return all(
        tensor.untyped_storage().data_ptr() in storages and tensor._is_view()
        for tensor in _tensors(returned)
    )


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _smaller(args: Any, kwargs: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the arguments with tensors of one element, then of one row for fixed row sizes."""
    for num_dims in (0, 1):

        def small(value: Any, num_dims: int = num_dims) -> Any:
            """Return a tensor like this with its last dimensions, and 1 for all others."""
            if not isinstance(value, torch.Tensor):
                return value
            shape = [1] * (value.ndim - num_dims) + list(value.shape[value.ndim - num_dims :])
            return torch.ones(shape, dtype=value.dtype, device=value.device)

        yield tree_map(small, args), tree_map(small, dict(kwargs))


def _time_ms(call: Callable[[], object]) -> float:
    first = min(_burst_ms(call, 1) for _ in range(2))
    if first > SLOW_MS:
        return first
    first = min(first, _burst_ms(call, 1))
    count = max(1, min(MAX_CALLS, int(BURST_MS / max(first, 1e-4))))
    num_bursts = NUM_BURSTS if first < BURST_MS else 3
    times = torch.tensor([_burst_ms(call, count) for _ in range(num_bursts)], dtype=torch.float64)
    return float(low_mean(times.numpy()))


def _burst_ms(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(count):
        call()
    return (time.perf_counter_ns() - start) / count / 1e6
