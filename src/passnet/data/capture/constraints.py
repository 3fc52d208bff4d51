"""The five constraints on captured graphs, and the comparison of graphs with their net."""

import copy
import math
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from passnet.core.records.serialise import decode, encode
from passnet.data.capture.capture import CapturedGraph, held_tensors, module_graph
from passnet.data.capture.net import Net, input_values
from passnet.data.capture.record import CaptureSettings, Constraints
from passnet.data.capture.trace import Segment, Trace
from passnet.data.capture.weights import replace_weights
from passnet.errors import GraphError, PassnetError
from passnet.graph.fx.build import build
from passnet.graph.fx.from_fx import Sampler, is_fake
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.graph.values.fake import infer_shapes

MAX_ERROR = 1e-3
"""Largest difference of two runs of the same kernels, in standard deviations of the output."""

NOISE_ELEMENTS = 1_000_003
"""Length of the random numbers for weights; prime, so that rows of a weight differ."""


def static_constraints(graph: Graph) -> Constraints:
    """Check the constraints on a graph that need no run."""
    constraints = Constraints(custom_ops=custom_ops(graph))
    try:
        if parse_program(render_program(graph.program)) != graph.program:
            raise GraphError("its print parses to another program")
        if decode(encode(graph.tensors), tuple[TensorSpec, ...]) != graph.tensors:
            raise GraphError("its arguments are read as others")
        constraints = replace(constraints, serialisable=True, decomposable=True)
        infer_shapes(graph)
    except (PassnetError, ValueError) as cause:
        return replace(constraints, error=str(cause))
    return replace(constraints, analysable=True)


def common_constraints(graphs: Sequence[Constraints]) -> Constraints:
    """Combine constraints: the ones that all graphs of a net meet."""
    return Constraints(
        serialisable=all(graph.serialisable for graph in graphs),
        decomposable=all(graph.decomposable for graph in graphs),
        analysable=all(graph.analysable for graph in graphs),
        custom_ops=tuple(sorted({name for graph in graphs for name in graph.custom_ops})),
        error=next((graph.error for graph in graphs if graph.error), None),
    )


def custom_ops(graph: Graph) -> tuple[str, ...]:
    """Return the operators of other libraries than torch in a graph."""
    own = ("torch.ops.aten.", "torch.ops.prims.", "torch.ops.higher_order.")
    targets = {op.target for op in graph.program.ops if op.target.startswith("torch.ops.")}
    return tuple(sorted(target for target in targets if not target.startswith(own)))


@dataclass(frozen=True, slots=True)
class Replay:
    """A traced net; `sample` gives some values of a weight, `rebuild` makes the net anew."""

    net: Net
    trace: Trace
    graphs: Sequence[CapturedGraph]
    sample: Sampler | None
    rebuild: Callable[[], Net]


def check_outputs(
    replay: Replay, settings: CaptureSettings, constraints: Constraints
) -> Constraints:
    """Compare the outputs of graphs and net, with real weights for good; add the result."""
    if not settings.check:
        return replace(constraints, unchecked="not asked for")
    if not constraints.serialisable:
        return replace(constraints, unchecked="a graph cannot be read again")
    size = num_parameters(replay.net.module)
    if size > settings.check_parameters:
        return replace(constraints, unchecked=f"{size} parameters are too many to run")
    try:
        with _time_limit(settings.check_seconds):
            outputs, expected = _outputs(replay)
    except _TooSlowError:
        seconds = settings.check_seconds
        return replace(constraints, unchecked=f"two runs take more than {seconds:g} s")
    except Exception as cause:  # noqa: BLE001 (boundary: the net or torch raises anything)
        text = f"{type(cause).__name__}: {cause}"[:300]
        return replace(constraints, runnable=False, error=constraints.error or text)
    error = _difference(outputs, expected)
    if error is None:
        return replace(constraints, unchecked="the outputs are no numbers that can be compared")
    right = error <= MAX_ERROR
    text = None if right else f"the graphs differ from the net by {error:.3g} standard deviations"
    return replace(
        constraints,
        runnable=right,
        max_error=error if math.isfinite(error) else None,
        error=constraints.error or text,
    )


def num_parameters(module: Any) -> int:
    """Return the number of parameters of a net; 0 for a function."""
    if not isinstance(module, torch.nn.Module):
        return 0
    return sum(parameter.numel() for parameter in module.parameters())


def _outputs(replay: Replay) -> tuple[list[Any], list[Any]]:
    """Return the outputs of graphs and net; a trace that real values break is made anew on them."""
    net, trace = replay.net, replay.trace
    _materialise(net, replay.sample)
    for segment, graph in zip(trace.segments, replay.graphs, strict=True):
        segment.replay = _rebuilt(graph, segment.module)
    try:
        expected = _call(net, net.module)
        outputs = _call(net, trace.rerun)
        if not any(map(is_fake, (*expected, *outputs))):
            return outputs, expected
    except RuntimeError as cause:
        if not any(text in str(cause) for text in _STALE):
            raise
    texts = [render_program(graph.graph.program) for graph in replay.graphs]

    def check(segment: Segment) -> None:
        graph = module_graph(segment.module, segment.arguments)
        if texts[segment.number : segment.number + 1] != [render_program(graph.graph.program)]:
            raise GraphError(f"on real weights graph {segment.number} is another")
        segment.replay = _rebuilt(graph, segment.module)

    fresh = replay.rebuild()
    _materialise(fresh, replay.sample)
    outputs = _call(fresh, Trace(fresh.module, check).run)
    return outputs, _call(fresh, fresh.module)


_STALE = ("skip_guard_eval_unsafe", "Mixing fake modes", "FakeTensor")
"""Texts of errors from a trace, or a net, that holds on to fake tensors."""


def _rebuilt(graph: CapturedGraph, module: torch.fx.GraphModule) -> Callable[..., Any]:
    built = build(parse_program(render_program(graph.graph.program)))
    held = held_tensors(module)
    return lambda *arguments: built.forward(*arguments, *held)


def _call(net: Net, function: Callable[..., Any]) -> list[torch.Tensor]:
    """Run a net or its graphs on a copy of its inputs; the net's buffers stay as they were."""
    torch.manual_seed(0)
    copies: dict[int, Any] = {}  # an input that is given twice is one tensor in the copy, too
    args, kwargs = input_values(net, lambda argument: copy.deepcopy(argument.value, copies))
    with torch.no_grad(), _kept_buffers(net.module):
        output = function(*args, **kwargs) if function is net.module else function(args, kwargs)
        return [tensor.clone() for tensor in _tensors(output)]  # some may be buffers


@contextmanager
def _kept_buffers(module: Any) -> Iterator[None]:
    """Put the buffers of a net, and its other tensors without gradients, back after a run."""
    parts = module.modules() if isinstance(module, torch.nn.Module) else ()
    before = [
        (table, name, tensor, tensor.clone())
        for part in parts
        for table in (part._buffers, vars(part))
        for name, tensor in table.items()
        if isinstance(tensor, torch.Tensor)
    ]
    yield
    for table, name, tensor, values in before:
        table[name] = tensor.copy_(values)


def _tensors(output: Any) -> list[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        return [output]
    parts = output.values() if isinstance(output, dict) else output
    if not isinstance(output, (dict, tuple, list)):
        return []
    return [tensor for part in parts for tensor in _tensors(part)]


def _difference(outputs: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float | None:
    """Return the largest difference in standard deviations; None if nothing is comparable."""
    if len(outputs) != len(expected):
        return math.inf
    worst = None
    for output, reference in zip(outputs, expected, strict=True):
        if is_fake(output) or is_fake(reference):
            return None
        if output.shape != reference.shape or output.dtype != reference.dtype:
            return math.inf
        if not output.numel() or output.is_complex():
            continue
        actual, right = output.double(), reference.double()
        same = (actual == right) | (actual.isnan() & right.isnan())
        error = torch.where(same, 0.0, (actual - right).abs())
        finite = right[right.isfinite()]
        scale = float(finite.std(correction=0)) if finite.numel() else 0.0
        size = float(error.max()) / (scale or 1.0)
        worst = max(worst or 0.0, math.inf if math.isnan(size) else size)
    return worst


def _materialise(net: Net, sample: Sampler | None) -> None:
    if isinstance(net.module, torch.nn.Module):
        noise = torch.randn(NOISE_ELEMENTS)
        replace_weights(
            net.module, lambda weight: _real(weight, sample, noise) if is_fake(weight) else None
        )


def _real(weight: torch.Tensor, sample: Sampler | None, noise: torch.Tensor) -> torch.Tensor:
    values = sample(weight) if sample is not None else None
    mean, std = 0.0, 0.02
    if values is not None:
        mean, std = float(values.mean()), float(values.std(correction=0))
    count = weight.numel()
    repeats = -(-count // NOISE_ELEMENTS)
    flat = (noise.repeat(repeats)[:count] if repeats > 1 else noise[:count].clone()).mul_(std)
    return flat.add_(mean).to(weight.dtype).reshape(tuple(weight.shape))


class _TooSlowError(BaseException):
    """The end of a check's time; a `BaseException`, which no net catches."""


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
