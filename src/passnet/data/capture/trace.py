"""One run of a net under Dynamo: every graph, the order of calls, the data flow between them."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensor

from passnet.errors import CaptureError, boundary
from passnet.graph.fx.from_fx import target_name
from passnet.graph.values.effects import writes_first
from passnet.inductor.compiler import (
    dynamo_settings,
    graph_breaks,
    own_frame,
    reset_dynamo,
    trace_backward,
)


class Edge(NamedTuple):
    """Data between two calls of graphs: `output` of call `source` is `argument` of call `call`."""

    call: int
    argument: int
    source: int
    output: int


KeepBackward: TypeAlias = Callable[[int, torch.fx.GraphModule, list[Any]], None]
"""A function of the number of a graph, its backward graph, and that one's arguments."""


@dataclass(eq=False)
class Segment:
    """One graph of Dynamo with its first arguments; `replay`, once set, runs instead."""

    trace: Trace
    number: int
    module: torch.fx.GraphModule
    arguments: list[Any]
    num_calls: int = 0
    replay: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the graph in its place."""
        return self.trace.call(self, arguments)


class Trace:
    """The record of one run of a net: `segments` in the order of discovery, `calls` the numbers of
    those that ran, `edges` the data flow between them, `breaks` why Dynamo stopped between graphs.
    `keep` is called with every graph before its first call, `keep_backward` with its number,
    backward graph and that one's arguments. A trace that is not alone leaves what Dynamo compiled
    of others.
    """

    def __init__(
        self,
        net: Callable[..., Any],
        keep: Callable[[Segment], None],
        keep_backward: KeepBackward | None = None,
        is_alone: bool = True,
    ) -> None:
        self.segments: list[Segment] = []
        self.calls: list[int] = []
        self.edges: list[Edge] = []
        self.dynamo_s = 0.0
        self.outside_s = 0.0
        self.breaks: list[str] = []
        self._keep = keep
        self._keep_backward = keep_backward
        self._origins: dict[int, tuple[weakref.ref[torch.Tensor], int, int]] = {}
        self._net_name = type(net).__name__
        self._is_alone = is_alone
        traced = net if is_alone else own_frame(net)
        self._compiled = torch.compile(traced, backend=self._backend, dynamic=False)

    def run(self, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Trace the net on some inputs; return its output. Raise CaptureError if it fails."""
        if self._is_alone:
            reset_dynamo()
        earlier_breaks = graph_breaks()
        start = time.perf_counter()
        gradients = torch.set_grad_enabled(self._keep_backward is not None)
        # without it Dynamo leaves out every net that holds an LSTM, a GRU or an RNN
        recurrent = dynamo_settings(allow_rnn=True)
        with boundary(CaptureError, f"capturing {self._net_name}"), gradients, recurrent:
            result = self._compiled(*inputs, **kwargs)
        self.dynamo_s = time.perf_counter() - start - self.outside_s
        breaks = self.breaks = [*map(_shown_break, graph_breaks() - earlier_breaks)]
        if not self.segments:
            reason = "; is the net a torch.nn.Module that computes on its inputs?"
            if breaks:
                reason = f": {breaks[0]}"
            raise CaptureError(
                f"capturing {self._net_name}: Dynamo found no tensor op to trace{reason}"
            )
        return result

    def rerun(self, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the traced graphs on other values, without checking Dynamo's guards."""
        with torch.compiler.set_stance(skip_guard_eval_unsafe=True), torch.no_grad():
            return self._compiled(*inputs, **kwargs)

    def _backend(self, module: torch.fx.GraphModule, example_inputs: list[Any]) -> Segment:
        start = time.perf_counter()
        segment = Segment(self, len(self.segments), module, list(example_inputs))
        self.segments.append(segment)
        self._keep(segment)
        if self._keep_backward is not None:
            trace_backward(module, example_inputs, partial(self._keep_backward, segment.number))
        self.outside_s += time.perf_counter() - start
        return segment

    def call(self, segment: Segment, arguments: tuple[Any, ...]) -> Any:
        """Run a graph in its place, and note the origins of its arguments."""
        if segment.replay is not None:
            return segment.replay(*arguments)
        start = time.perf_counter()
        number = len(self.calls)
        self.calls.append(segment.number)
        segment.num_calls += 1
        for index, value in enumerate(arguments):
            origin = self._origins.get(id(value))
            if origin is not None and origin[0]() is value:
                self.edges.append(Edge(number, index, *origin[1:]))
        outputs = _outputs(segment, arguments)
        for index, value in enumerate(outputs):
            if isinstance(value, torch.Tensor):
                self._origins[id(value)] = (weakref.ref(value), number, index)
        self.outside_s += time.perf_counter() - start
        return outputs


def _shown_break(text: str) -> str:
    return "; ".join(
        line.strip().removeprefix("Explanation: ")
        for line in text.split("Hint:")[0].split("Developer debug")[0].splitlines()
        if line.strip()
    )


def _outputs(segment: Segment, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a graph's outputs. Those that depend on fake arguments are fake, in the shapes that
    Dynamo knows; where it does not know all, or values are known, the graph runs.
    """
    mode = next((value.fake_mode for value in arguments if isinstance(value, FakeTensor)), None)
    if mode is None:
        return segment.module.forward(*arguments)
    results = next(node for node in segment.module.graph.nodes if node.op == "output").args[0]
    unknown = _made_of_fakes(segment.module, arguments)
    fakes: dict[int, torch.Tensor] = {}
    for index, node in enumerate(results):
        traced = node.meta.get("example_value") if node in unknown else None
        if not isinstance(traced, torch.Tensor) or not traced.is_floating_point():
            continue
        shape, stride = tuple(traced.shape), traced.stride()
        if all(isinstance(size, int) for size in (*shape, *stride)):
            with mode:
                output = torch.empty_strided(shape, stride, dtype=traced.dtype)
                fakes[index] = output.requires_grad_(traced.requires_grad)
    if len(fakes) == len(results):
        return tuple(fakes.values())
    outputs = segment.module.forward(*arguments)
    return tuple(
        output if isinstance(output, FakeTensor) else fakes.get(index, output)
        for index, output in enumerate(outputs)
    )


def _made_of_fakes(
    module: torch.fx.GraphModule, arguments: Sequence[Any]
) -> dict[torch.fx.Node, None]:
    """Return the values of a graph that depend on fake arguments, or on fake tensors it holds."""
    values = iter(arguments)
    unknown: dict[torch.fx.Node, None] = {}
    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            is_argument = node.op == "placeholder"
            value = next(values) if is_argument else attrgetter(str(node.target))(module)
            is_unknown = isinstance(value, FakeTensor)
        else:
            is_unknown = any(used in unknown for used in node.all_input_nodes)
        if is_unknown:
            unknown[node] = None
            if node.op.startswith("call") and writes_first(target_name(node), dict(node.kwargs)):
                torch.fx.map_arg(node.args[:1], lambda written: unknown.setdefault(written, None))
    return unknown
