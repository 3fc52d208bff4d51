"""Eager torch, and the graph that Dynamo captures of a net, called without Dynamo.

Of a net with graph breaks all graphs are rewritten, and called by Dynamo. Functions raise
BackendError where a net cannot be run like this.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch
import torch.fx
from torch.export import ExportedProgram, export
from torch.utils._pytree import tree_map_only

from passnet.data.capture.capture import CapturedGraph, module_graph
from passnet.data.capture.trace import Segment, Trace
from passnet.errors import BackendError, CaptureError, GraphError, InputError, boundary
from passnet.inductor.compiler import dynamo_settings, own_frame
from passnet.optimizer.backends.backend import Backend
from passnet.optimizer.backends.held_constants import held_constants
from passnet.optimizer.backends.in_child import with_repeated
from passnet.optimizer.call.net_call import BuiltBackend, NetCall, weights_of
from passnet.optimizer.call.values import difference, flattened
from passnet.passes.apply.first_call import noting_first_calls
from passnet.passes.apply.packed_op import load_op
from passnet.passes.apply.packed_products import pack_products
from passnet.passes.apply.rewrite import PassReport
from passnet.passes.apply.written_attention import fuse_attention
from passnet.passes.backend import Residual, compile_graph, passnet_backend, without_bare_kernels
from passnet.passes.kernel_list import known_kernels
from passnet.passes.kernel_op import kernels_of, name_of
from passnet.passes.load import Folders, loaded_passes
from passnet.passes.match.pattern import Pass

CHOSEN_FOLDER, PASSES_FOLDER = "chosen-passes", "passes"
"""The pass folders chosen for an input signature, and a copy of them in a backend."""

MAX_FORMS = 64
"""The most graphs that Dynamo may make of one function; Dynamo's own limit is 8."""

BEHIND_GUARDS = "{num_graphs} graphs with passes, the rest {rest}, called behind Dynamo's guards"
"""The description of a backend with passes for a net with graph breaks."""


@dataclass(frozen=True)
class GraphRun:
    """A graph of a net with the arguments and results of its first call."""

    module: torch.fx.GraphModule
    arguments: tuple[Any, ...]
    results: Sequence[Any]
    num_calls: int


@dataclass(frozen=True)
class NetGraph:
    """The one graph of a net.

    `sources` has for each argument the position of a tensor of the call, or a weight; `outputs` are
    the positions of the net's outputs among the graph's.
    """

    module: torch.fx.GraphModule
    arguments: tuple[Any, ...]
    sources: tuple[Any, ...]
    outputs: tuple[int, ...]


def traced(call: NetCall) -> tuple[list[GraphRun], list[Any], list[str]]:
    """Return the graphs of a net in the order of their first calls, the net's outputs, flat, and
    why Dynamo stopped between graphs.
    """
    runs: dict[int, GraphRun] = {}

    def keep(segment: Segment) -> None:
        def run(*arguments: Any) -> Any:
            results = segment.module.forward(*arguments)
            first = runs.get(segment.number, GraphRun(segment.module, arguments, results, 0))
            runs[segment.number] = replace(first, num_calls=first.num_calls + 1)
            return results

        segment.replay = run

    try:
        with dynamo_settings(recompile_limit=MAX_FORMS), torch.compiler.set_stance("default"):
            trace = Trace(call.net, keep, is_alone=False)
            returned, structure = flattened(trace.run(call.args, call.kwargs))
    except CaptureError as cause:
        raise BackendError(str(cause)) from cause
    if change := difference(call.structure, structure):
        raise BackendError(f"the net returns {change} under Dynamo")
    return list(runs.values()), returned, trace.breaks


def captured_graphs(call: NetCall) -> list[tuple[CapturedGraph, torch.fx.Graph]]:
    """Return the graphs of a net for passes, and for Dynamo; none that cannot be captured."""
    captured = []
    with suppress(BackendError):
        for run in traced(call)[0]:
            with suppress(CaptureError, GraphError):
                graph = module_graph(run.module, list(run.arguments))
                captured.append((graph, run.module.graph))
    return captured


def net_graph(call: NetCall) -> NetGraph:
    """Return the one graph that Dynamo captures of a net.

    Where Dynamo stops anywhere, even before that graph, Python may decide by a value: BackendError.
    """
    runs, returned, breaks = traced(call)
    if breaks:
        raise BackendError(f"Dynamo finds no one graph: {breaks[0][:200]}")
    if len(runs) != 1:
        raise BackendError(f"Dynamo finds {len(runs)} graphs and not one")
    [run] = runs
    if run.num_calls != 1:
        raise BackendError(f"Dynamo finds one graph and calls it {run.num_calls} times")
    numbers = {id(value): number for number, value in enumerate(run.results)}
    if not all(id(value) in numbers for value in returned):
        raise BackendError("the net returns what its graph does not compute")
    outputs = tuple(numbers[id(value)] for value in returned)
    sources: dict[int, Any] = {id(weight): weight for weight in call.weights.values()}
    sources |= {id(tensor): n for n, tensor in reversed(list(enumerate(call.tensors())))}
    for argument in run.arguments:
        if id(argument) not in sources:
            kind = type(argument).__name__
            raise BackendError(f"the graph reads a {kind} that is neither argument nor weight")
    inputs = tuple(sources[id(argument)] for argument in run.arguments)
    return NetGraph(run.module, run.arguments, inputs, outputs)


def build_eager(call: NetCall, folder: Path, name: str) -> BuiltBackend:
    """Return the net itself."""
    return call.built(name, lambda tensors: call.eager_outputs(call.filled(tensors)))


def build_graph(call: NetCall, folder: Path, name: str) -> BuiltBackend:
    """Return the graph of a net as it is: that of Dynamo, or of export where sizes vary."""
    if not call.ranges:
        return _rewritten(call, name, net_graph(call), (), "eager")
    module = call.exported_flat.module(check_guards=False)  # ranges are checked before
    _, names = held_constants(call, call.exported_flat)

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        with torch.no_grad():
            return module(*tensors)

    def bind(weights: Mapping[str, torch.Tensor]) -> None:
        for constant, weight in names.items():
            part, _, own = constant.rpartition(".")
            setattr(module.get_submodule(part), own, weights[weight].detach())

    return replace(call.built(name, with_repeated(call, run)), bind=bind)


def _rewritten(
    call: NetCall, name: str, graph: NetGraph, passes: Sequence[Path], residual: Residual
) -> BuiltBackend:
    function = rewritten(graph, passes, residual)

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        inputs = [
            tensors[source] if isinstance(source, int) else source for source in graph.sources
        ]
        with torch.no_grad():
            results = function(*inputs)
        return [results[number] for number in graph.outputs]

    return call.built(name, run)


def rewritten(
    graph: NetGraph, passes: Sequence[Path], residual: Residual
) -> Callable[..., Sequence[Any]]:
    """Return a function that runs a graph rewritten by the passes of some folders."""
    usable = without_bare_kernels(loaded_passes(list(passes)))
    function, reports = compile_graph(graph.module, graph.arguments, usable, residual)
    if passes:
        _check_matches(reports)
    return function


def build_with_passes(call: NetCall, folder: Path, name: str, residual: Residual) -> BuiltBackend:
    """Return the graph rewritten by the passes that were chosen for the net."""
    chosen_passes(folder)
    shutil.copytree(folder.parent / CHOSEN_FOLDER, folder / PASSES_FOLDER)
    return load_with_passes(call, folder, name, residual)


def chosen_passes(folder: Path) -> list[Path]:
    """Return the pass folders that were chosen for the net, beside the folder of a backend."""
    parent = folder.parent / CHOSEN_FOLDER
    passes = sorted(parent.iterdir()) if parent.is_dir() else []
    if not passes:
        raise BackendError("no pass saves anything")
    return passes


def load_with_passes(call: NetCall, folder: Path, name: str, residual: Residual) -> BuiltBackend:
    """Return the graph rewritten by the passes in the folder.

    Dynamo calls a net that is no single graph of its arguments and weights, with its guards.
    """
    passes = sorted((folder / PASSES_FOLDER).iterdir())
    try:
        graph = net_graph(call)
    except BackendError:
        return _behind_guards(call, name, passes, residual)
    return _rewritten(call, name, graph, passes, residual)


def _behind_guards(
    call: NetCall, name: str, passes: Sequence[Path], residual: Residual
) -> BuiltBackend:
    """Return a net whose graphs Dynamo calls, each rewritten by passes."""
    reports: list[list[PassReport]] = []
    options: dict[str, Any] = {
        "passes": list(passes),
        "residual": residual,
        "report": reports.append,
    }
    # not dynamic: other shapes never come here, and ints of a loop are no reason for symbols
    net = own_frame(call.given)
    compiled = torch.compile(net, backend=passnet_backend, options=options, dynamic=False)

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        return call.eager_outputs(call.filled(tensors), compiled)

    with dynamo_settings(recompile_limit=MAX_FORMS, allow_rnn=True):
        run(call.tensors())
    _check_matches([*chain.from_iterable(reports)])
    rest = "op by op" if residual == "eager" else "by Inductor"
    says = BEHIND_GUARDS.format(num_graphs=len(reports), rest=rest)
    return replace(call.built(name, run), says=says)


def _check_matches(reports: Sequence[PassReport]) -> None:
    if not any(report.num_matches for report in reports):
        raise BackendError("no pass matches in the whole net")


class _RewrittenNet(torch.nn.Module):
    """A rewritten graph with a net's own weights by their own names."""

    def __init__(
        self, call: NetCall, graph: NetGraph, function: Callable[..., Sequence[Any]]
    ) -> None:
        super().__init__()
        net = call.net
        self._modules, self._parameters, self._buffers = net._modules, net._parameters, net._buffers
        self._non_persistent_buffers_set = net._non_persistent_buffers_set
        self.training = False
        names = {id(weight): name for name, weight in reversed(list(call.weights.items()))}
        self._sources = [
            source if isinstance(source, int) else names[id(source)] for source in graph.sources
        ]
        self._outputs = graph.outputs
        self._held = dict(call.weights)  # those in attributes are constants of a program
        self._function = function

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the outputs of the net, flat."""
        weights = self._held | weights_of(self)
        results = self._function(
            *(tensors[name] if isinstance(name, int) else weights[name] for name in self._sources)
        )
        return tuple(results[number] for number in self._outputs)


def rewritten_program(call: NetCall, passes: Sequence[Path]) -> ExportedProgram:
    """Return the graph of a net rewritten by passes, as a program of `torch.export`.

    Where a replacement cannot be traced, or changes shapes or dtypes, the original ops remain.
    """
    graph = net_graph(call)
    with noting_first_calls() as failures:
        program = _exported(call, graph, rewritten(graph, passes, "eager"))
    if failures and all(failures):
        texts = "; ".join(sorted({*map(str, failures)}))
        raise BackendError(f"no pass can be in a package: {texts}")
    return program


def packed_program(call: NetCall) -> ExportedProgram:
    """Return the graph of a net as a program whose weights are packed at its first call.

    Attention that the net writes out is one call in it.
    """
    load_op()
    graph = net_graph(call)
    fuse_attention(graph.module)
    if not pack_products(graph.module):
        raise BackendError("the graph has no product or convolution whose weights can be packed")
    return _exported(call, graph, graph.module.forward)


def _exported(
    call: NetCall, graph: NetGraph, function: Callable[..., Sequence[Any]]
) -> ExportedProgram:
    net = _RewrittenNet(call, graph, function)
    with boundary(BackendError, "torch.export"), torch.no_grad():
        return export(net, tuple(call.tensors()), strict=False)


def export_rewritten(
    net: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], passes: Folders
) -> ExportedProgram:
    """Return `rewritten_program` of a call of a user's net, which stays as it is.

    Its kernels are listed for processes that load a package of it.
    """
    folders = [Path(passes)] if isinstance(passes, (str, Path)) else [Path(path) for path in passes]
    if not folders:
        raise InputError("give a pass folder, or several")
    own_args, own_kwargs = tree_map_only(torch.Tensor, torch.clone, (args, kwargs))
    buffers = dict(net.named_buffers()) if isinstance(net, torch.nn.Module) else {}
    former = {name: (buffer._version, buffer.clone()) for name, buffer in buffers.items()}
    try:
        program = rewritten_program(NetCall(net, own_args, own_kwargs), folders)
        names = [*map(name_of, kernels_of(program.graph))]
        for pass_ in loaded_passes(folders):
            if isinstance(pass_, Pass) and not pass_.kernel_ops:
                known_kernels(pass_.digest, names)
        return program
    finally:
        with torch.no_grad():
            for name, buffer in buffers.items():
                if buffer._version != former[name][0]:
                    buffer.copy_(former[name][1])


def _passes(says: str, residual: Residual) -> Backend:
    return Backend(
        says,
        partial(build_with_passes, residual=residual),
        partial(load_with_passes, residual=residual),
        is_inductor=residual != "eager",
        when="authors",
        is_of_one_size=True,
    )


BACKENDS: Mapping[str, Backend] = {
    "eager": Backend("eager torch", build_eager, build_eager),
    "graph": Backend("the graph of the net, op by op", build_graph, build_graph),
    "passes": _passes("the graph with passes, the rest op by op", "eager"),
    "passes_compiled": _passes("the graph with passes, the rest by Inductor", "inlined"),
}
