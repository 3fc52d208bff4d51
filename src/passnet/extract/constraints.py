"""The five constraints on captured graphs, and the check that a graph computes what its net does.

The net runs once as it is and once with the graphs, printed, parsed and built again, in the place
of those that Dynamo traced; both outputs must agree. A net with fake weights gets real ones first,
drawn with the mean and standard deviation that initialisation would have given them.
"""

from __future__ import annotations

import copy
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from passnet.errors import GraphError, PassnetError
from passnet.extract.capture import CapturedGraph, held_tensors, segment_graph
from passnet.extract.net import Net
from passnet.extract.record import CaptureSettings, Constraints
from passnet.extract.trace import Segment, Trace
from passnet.graph.build import build
from passnet.graph.fake import infer_shapes
from passnet.graph.from_tensor import Sampler, is_fake
from passnet.graph.parse import parse_program
from passnet.graph.render import render_program
from passnet.graph.spec import Graph, TensorSpec
from passnet.records.serialise import decode, encode

MAX_ERROR = 1e-3
"""Largest difference of two runs of the same ops, in standard deviations of the output. They are
the same kernels in the same order: what differs more is another graph."""

NOISE_ELEMENTS = 1_000_003
"""Random numbers that weights are cut from; prime, so that rows of a weight differ."""


def static_constraints(graph: Graph) -> Constraints:
    """The constraints on a graph that can be seen without running it for real."""
    result = Constraints(custom_ops=custom_ops(graph))
    try:
        again = parse_program(render_program(graph.program))
        if again != graph.program:
            raise GraphError("its print parses to another program")
        if decode(encode(graph.tensors), tuple[TensorSpec, ...]) != graph.tensors:
            raise GraphError("its arguments are read as others")
        result = replace(result, serialisable=True, decomposable=True)
        infer_shapes(graph)
    except (PassnetError, ValueError) as cause:
        return replace(result, error=str(cause))
    return replace(result, analysable=True)


def common_constraints(found: Sequence[Constraints]) -> Constraints:
    """The constraints that all graphs of a net meet."""
    return Constraints(
        serialisable=all(item.serialisable for item in found),
        decomposable=all(item.decomposable for item in found),
        analysable=all(item.analysable for item in found),
        custom_ops=tuple(sorted({name for item in found for name in item.custom_ops})),
        error=next((item.error for item in found if item.error), None),
    )


def custom_ops(graph: Graph) -> tuple[str, ...]:
    """The operators of other libraries than torch that a graph calls."""
    found = {op.target for op in graph.program.ops}
    prefix = "torch.ops."
    return tuple(
        sorted(
            name
            for name in found
            if name.startswith(prefix)
            and name.removeprefix(prefix).split(".")[0] not in ("aten", "prims", "higher_order")
        )
    )


def check_outputs(
    net: Net,
    trace: Trace,
    graphs: Sequence[CapturedGraph],
    sample: Sampler | None,
    settings: CaptureSettings,
    constraints: Constraints,
    rebuild: Callable[[], Net],
) -> Constraints:
    """Add whether the graphs compute what the net does.

    The net's fake weights are replaced by real ones, for good.

    Args:
        net: traced by `trace`.
        trace: has run.
        graphs: of the trace's segments.
        sample: gives some values of a fake weight.
        settings: how large a net may be, and how long this may take.
        constraints: as far as they are known.
        rebuild: makes the net anew.
    """
    module = net.module
    size = num_parameters(module)
    if size > settings.check_parameters:
        return replace(constraints, unchecked=f"{size} parameters are too many to run")
    try:
        with _time_limit(settings.check_seconds):
            found, expected = _outputs(net, trace, graphs, sample, rebuild)
    except _TooSlowError:
        text = f"two runs take more than {settings.check_seconds:g} s"
        return replace(constraints, unchecked=text)
    except Exception as cause:  # noqa: BLE001 (boundary: the net or torch raises anything)
        text = f"{type(cause).__name__}: {cause}"[:300]
        return replace(constraints, runnable=False, error=constraints.error or text)
    error = _difference(found, expected)
    if error is None:
        return replace(constraints, unchecked="the outputs are no numbers that can be compared")
    right = error <= MAX_ERROR
    text = None if right else f"the graphs differ from the net by {error:.3g} standard deviations"
    return replace(
        constraints,
        runnable=right,
        max_error=error if error != float("inf") else None,
        error=constraints.error or text,
    )


def num_parameters(module: Any) -> int:
    """How many parameters a net has; 0 for a function."""
    if not isinstance(module, torch.nn.Module):
        return 0
    return sum(item.numel() for item in module.parameters())


def _outputs(
    net: Net,
    trace: Trace,
    graphs: Sequence[CapturedGraph],
    sample: Sampler | None,
    rebuild: Callable[[], Net],
) -> tuple[list[Any], list[Any]]:
    """What the graphs give, and what the net gives.

    Where Dynamo would not run what it traced on other values, or the net has kept some of what it
    was traced with, it is built and traced once more, on real weights; that must give the same
    graphs.
    """
    if isinstance(net.module, torch.nn.Module):
        _materialise(net.module, sample)
    for segment, item in zip(trace.segments, graphs, strict=True):
        segment.replay = _replay(item, segment.module)
    try:
        expected = _run(net, net.module)
        found = _run(net, trace.again)
        if not any(is_fake(item) for item in (*expected, *found)):
            return found, expected
    except RuntimeError as cause:
        if not any(text in str(cause) for text in _STALE):
            raise
    texts = [render_program(item.graph.program) for item in graphs]

    def check(segment: Segment) -> None:
        item = segment_graph(segment)
        if texts[segment.number : segment.number + 1] != [render_program(item.graph.program)]:
            raise GraphError(f"on real weights graph {segment.number} is another")
        segment.replay = _replay(item, segment.module)

    fresh = rebuild()
    if isinstance(fresh.module, torch.nn.Module):
        _materialise(fresh.module, sample)
    found = _run(fresh, Trace(fresh.module, check).run)
    return found, _run(fresh, fresh.module)


_STALE = ("skip_guard_eval_unsafe", "Mixing fake modes", "FakeTensor")
"""What errors say that come of a trace, or of a net, that has kept fake tensors."""


def _replay(item: CapturedGraph, module: torch.fx.GraphModule) -> Callable[..., Any]:
    built = build(parse_program(render_program(item.graph.program)))
    held = held_tensors(module)

    def run(*arguments: Any) -> Any:
        return built.forward(*arguments, *held)

    return run


def _run(net: Net, function: Callable[..., Any]) -> list[Any]:
    torch.manual_seed(0)
    args = [copy.deepcopy(item.value) for item in net.args]
    kwargs = {name: copy.deepcopy(item.value) for name, item in net.kwargs.items()}
    with torch.no_grad():
        if function is net.module:
            return _flat(function(*args, **kwargs))
        return _flat(function(args, kwargs))


def _flat(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [part for item in value.values() for part in _flat(item)]
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in _flat(item)]
    return []


def _difference(found: Sequence[Any], expected: Sequence[Any]) -> float | None:
    """The largest difference in standard deviations; infinite where shapes or infinities differ,
    None where there is nothing to compare.
    """
    if len(found) != len(expected):
        return float("inf")
    worst = None
    for mine, theirs in zip(found, expected, strict=True):
        if is_fake(mine) or is_fake(theirs):
            return None
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return float("inf")
        if not mine.numel() or mine.is_complex():
            continue
        one, other = mine.double(), theirs.double()
        same = (one == other) | (one.isnan() & other.isnan())
        error = torch.where(same, 0.0, (one - other).abs())
        usual = other[other.isfinite()]
        scale = float(usual.std(correction=0)) if usual.numel() else 0.0
        size = float(error.max()) / (scale or 1.0)
        worst = max(worst or 0.0, size if size == size else float("inf"))
    return worst


def _materialise(module: torch.nn.Module, sample: Sampler | None) -> None:
    """Give every fake parameter and buffer of a net real values."""
    noise = torch.randn(NOISE_ELEMENTS)
    made: dict[int, torch.Tensor] = {}
    for part in module.modules():
        tables: tuple[dict[str, Any], ...] = (part._parameters, part._buffers)
        for table in tables:
            for name, value in table.items():
                if value is not None and is_fake(value):
                    if id(value) not in made:
                        made[id(value)] = _real(value, sample, noise)
                    table[name] = made[id(value)]


def _real(value: torch.Tensor, sample: Sampler | None, noise: torch.Tensor) -> torch.Tensor:
    some = sample(value) if sample is not None else None
    if some is None:
        mean, std = 0.0, 0.02
    else:
        mean, std = float(some.mean()), float(some.std(correction=0))
    count = value.numel()
    repeats = -(-count // NOISE_ELEMENTS)
    flat = (noise.repeat(repeats)[:count] if repeats > 1 else noise[:count].clone()).mul_(std)
    real = flat.add_(mean).to(value.dtype).reshape(tuple(value.shape))
    if not isinstance(value, torch.nn.Parameter):
        return real
    return torch.nn.Parameter(real, requires_grad=value.requires_grad)


class _TooSlowError(BaseException):
    """The time of a check is over; no `except Exception` of a net stops it."""


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooSlowError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
