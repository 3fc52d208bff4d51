"""The dispatch time of eager PyTorch: that of the ops of a graph on tensors of one element."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from passnet.bench.profiling.record import EagerParts
from passnet.errors import MeasureError, boundary
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
    """Return the times of the ops of a module in their order, each on its arguments in a call.

    Each call of an op that writes to arguments gets copies of these as they were.

    Raises:
        MeasureError: an op fails.
    """
    timer = _OpTimer(module)
    with torch.no_grad(), boundary(MeasureError, "eager torch op by op"):
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
        leaves, spec = tree_flatten((args, dict(kwargs)))
        states, copies = [*map(_state, leaves)], [*map(_copy, leaves)]
        returned = function(*args, **kwargs)
        is_written = [state != _state(leaf) for state, leaf in zip(states, leaves, strict=True)]
        chosen = zip(leaves, copies, is_written, strict=True)
        before = tree_unflatten([copy if writes else leaf for leaf, copy, writes in chosen], spec)
        del copies, chosen
        ms = _time_ms(function, before, is_written)
        if not any(is_written) and _is_view(returned, (args, kwargs)):
            self.times.append(OpTime(ms, ms))
            return returned
        dispatch_ms = None
        for small in _smaller(args, kwargs):
            try:
                small_args, small_kwargs = _fresh(small, is_written)
                function(*small_args, **small_kwargs)
            except Exception:  # noqa: BLE001, S112 (an op refuses such shapes in any way it likes)
                continue
            dispatch_ms = _time_ms(function, small, is_written)
            break
        self.times.append(OpTime(ms, dispatch_ms))
        return returned


def _state(value: Any) -> Any:
    """Return what differs of a tensor once an op has written to it."""
    if isinstance(value, torch.Tensor):
        return value._version, value.shape, value.stride()
    return None


def _copy(value: Any) -> Any:
    """Return a copy of a tensor; any other value, and what no op can write to, as it is."""
    if isinstance(value, torch.Tensor) and torch._debug_has_internal_overlap(value) != 1:
        return value.clone()
    return value


def _fresh(arguments: Any, is_written: Sequence[bool]) -> Any:
    """Return arguments and keyword arguments, with copies of those that an op writes to."""
    if not any(is_written):
        return arguments
    leaves, spec = tree_flatten(arguments)
    written = zip(leaves, is_written, strict=True)
    return tree_unflatten([_copy(leaf) if writes else leaf for leaf, writes in written], spec)


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


def _time_ms(function: Callable[..., Any], arguments: Any, is_written: Sequence[bool]) -> float:
    def burst_ms(count: int) -> float:
        calls = [_fresh(arguments, is_written) for _ in range(count)]
        start = time.perf_counter_ns()
        for args, kwargs in calls:
            function(*args, **kwargs)
        return (time.perf_counter_ns() - start) / count / 1e6

    first = min(burst_ms(1) for _ in range(2))
    if first > SLOW_MS:
        return first
    first = min(first, burst_ms(1))
    count = max(1, min(MAX_CALLS, int(BURST_MS / max(first, 1e-4))))
    num_bursts = NUM_BURSTS if first < BURST_MS else 3
    times = torch.tensor([burst_ms(count) for _ in range(num_bursts)], dtype=torch.float64)
    return float(low_mean(times.numpy()))
