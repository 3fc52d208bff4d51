"""The graph that Dynamo finds of a net, called without Dynamo: op by op, rewritten by passes, or
with the rest compiled by Inductor. Of a net with graph breaks all graphs are rewritten, and called
by Dynamo.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.fx
from torch.utils._pytree import tree_leaves

from passnet.data.capture.capture import CapturedGraph, module_graph
from passnet.data.capture.trace import Segment, Trace
from passnet.errors import BackendError, CaptureError, GraphError
from passnet.inductor.compiler import dynamo_settings, reset_dynamo
from passnet.optimizer.call.built_backend import BuiltBackend
from passnet.optimizer.call.net_call import NetCall
from passnet.passes.apply.rewrite import PassReport
from passnet.passes.backend import (
    Residual,
    compile_graph,
    passnet_backend,
    without_bare_kernels,
)
from passnet.passes.load import loaded_passes

CHOSEN_FOLDER, PASSES_FOLDER = "chosen-passes", "passes"
"""Where the pass folders of a net lie, in the order in which they are applied: those that were
chosen for a form of inputs, and those that a backend has.
"""

MAX_FORMS = 64
"""How many graphs Dynamo may make of one function, as blocks of other shapes have; usually 8."""

BEHIND_GUARDS = "{num_graphs} graphs with passes, the rest {rest}, called behind Dynamo's guards"
"""What a backend with passes is of a net with graph breaks."""


@dataclass(frozen=True)
class GraphRun:
    """A graph of a net: its module, what it was called with first and gave, and how often it was
    called.
    """

    module: torch.fx.GraphModule
    arguments: tuple[Any, ...]
    results: Sequence[Any]
    num_calls: int


@dataclass(frozen=True)
class NetGraph:
    """The one graph of a net: its module, the arguments of a call, and which of its outputs are
    those of the net, in order.
    """

    module: torch.fx.GraphModule
    arguments: tuple[Any, ...]
    outputs: tuple[int, ...]


def traced(call: NetCall) -> tuple[list[GraphRun], list[Any]]:
    """The graphs that Dynamo finds of a net, in the order of their first calls, and what the net
    returned, flat.

    Raises:
        BackendError: it finds none.
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
        with dynamo_settings(recompile_limit=MAX_FORMS):
            returned = tree_leaves(Trace(call.net, keep).run(call.args, call.kwargs))
    except CaptureError as cause:
        raise BackendError(str(cause)) from cause
    finally:
        reset_dynamo()
    return list(runs.values()), returned


def captured_graphs(call: NetCall) -> list[tuple[CapturedGraph, torch.fx.Graph]]:
    """The graphs of a net as passes are looked up and written for them, beside those of Dynamo;
    none of a net, or of a part of it, that cannot be captured.
    """
    captured = []
    with suppress(BackendError):
        for run in traced(call)[0]:
            with suppress(CaptureError, GraphError):
                found = module_graph(run.module, list(run.arguments))
                captured.append((found, run.module.graph))
    return captured


def net_graph(call: NetCall) -> NetGraph:
    """Return the graph that Dynamo finds of a net.

    Raises:
        BackendError: there is none, or several, or the net returns what its graph does not compute.
    """
    runs, returned = traced(call)
    if len(runs) != 1:
        raise BackendError(f"Dynamo finds {len(runs)} graphs and not one")
    [run] = runs
    if run.num_calls != 1:
        raise BackendError(f"Dynamo finds one graph and calls it {run.num_calls} times")
    numbers = {id(value): number for number, value in enumerate(run.results)}
    if not all(id(value) in numbers for value in returned):
        raise BackendError("the net returns what its graph does not compute")
    outputs = tuple(numbers[id(value)] for value in returned)
    return NetGraph(run.module, run.arguments, outputs)


def build_graph(
    call: NetCall,
    folder: Path | None = None,
    name: str = "graph",
    passes: Sequence[Path] = (),
    residual: Residual = "eager",
) -> BuiltBackend:
    """Return the graph of a net, rewritten by the passes of some folders.

    Raises:
        BackendError: the net is not one graph, or reads what is neither an argument nor a weight.
    """
    graph = net_graph(call)
    return _rewritten(call, name, graph, argument_places(call, graph.arguments), passes, residual)


def _rewritten(
    call: NetCall,
    name: str,
    graph: NetGraph,
    places: Sequence[Any],
    passes: Sequence[Path],
    residual: Residual,
) -> BuiltBackend:
    """Return a graph rewritten by passes, whose arguments are at these places of a call."""
    function = rewritten(graph, passes, residual)

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        inputs = [tensors[place] if isinstance(place, int) else place for place in places]
        with torch.no_grad():
            results = function(*inputs)
        return [results[number] for number in graph.outputs]

    return call.built(name, run)


def rewritten(
    graph: NetGraph, passes: Sequence[Path], residual: Residual
) -> Callable[..., Sequence[Any]]:
    """Return what runs a graph rewritten by the passes of some folders.

    Raises:
        BackendError: none of them matches.
    """
    found = without_bare_kernels(loaded_passes(list(passes)))
    function, reports = compile_graph(
        graph.module, graph.arguments, found, residual, is_static=True
    )
    if passes:
        _check_matches(reports)
    return function


def build_with_passes(call: NetCall, folder: Path, name: str, residual: Residual) -> BuiltBackend:
    """Return the same with the passes that were chosen for the net, which lie beside the folder.

    Raises:
        BackendError: none was chosen.
    """
    chosen_passes(folder)
    shutil.copytree(folder.parent / CHOSEN_FOLDER, folder / PASSES_FOLDER)
    return load_with_passes(call, folder, name, residual)


def chosen_passes(folder: Path) -> list[Path]:
    """Return the pass folders that were chosen for the net, which lie beside the folder of a way.

    Raises:
        BackendError: none was chosen.
    """
    chosen = folder.parent / CHOSEN_FOLDER
    found = sorted(chosen.iterdir()) if chosen.is_dir() else []
    if not found:
        raise BackendError("no pass saves anything")
    return found


def load_with_passes(call: NetCall, folder: Path, name: str, residual: Residual) -> BuiltBackend:
    """The same with the passes that lie in the folder. Where the net is no single graph of its
    arguments and weights, it is called by Dynamo, whose guards remain.
    """
    passes = sorted((folder / PASSES_FOLDER).iterdir())
    try:
        graph = net_graph(call)
        places = argument_places(call, graph.arguments)
    except BackendError:
        return _behind_guards(call, name, passes, residual)
    return _rewritten(call, name, graph, places, passes, residual)


def _behind_guards(
    call: NetCall, name: str, passes: Sequence[Path], residual: Residual
) -> BuiltBackend:
    """Return a net of which Dynamo calls all graphs, each rewritten by passes."""
    found: list[list[PassReport]] = []
    options: dict[str, Any] = {"passes": list(passes), "residual": residual}
    options["report"] = found.append
    reset_dynamo()
    # not dynamic: other shapes never come here, and ints of a loop are no reason for symbols
    compiled = torch.compile(call.given, backend=passnet_backend, options=options, dynamic=False)

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        return call.eager_outputs(call.filled(tensors), compiled)

    with dynamo_settings(recompile_limit=MAX_FORMS, allow_rnn=True):
        run(call.tensors())
    _check_matches([report for reports in found for report in reports])
    rest = "op by op" if residual == "eager" else "by Inductor"
    says = BEHIND_GUARDS.format(num_graphs=len(found), rest=rest)
    return replace(call.built(name, run), says=says)


def _check_matches(reports: Sequence[PassReport]) -> None:
    if not any(report.num_matches for report in reports):
        raise BackendError("no pass matches in the whole net")


def argument_places(call: NetCall, arguments: Sequence[Any]) -> list[Any]:
    """Of each argument of a graph the number of the tensor of the call that it is, or a weight.

    Raises:
        BackendError: one is neither.
    """
    numbers = {id(tensor): number for number, tensor in reversed(list(enumerate(call.tensors())))}
    weights = {id(weight): weight for weight in call.weights.values()}
    places: list[Any] = []
    for argument in arguments:
        if id(argument) in numbers:
            places.append(numbers[id(argument)])
        elif id(argument) in weights:
            places.append(weights[id(argument)])
        else:
            kind = type(argument).__name__
            raise BackendError(f"the graph reads a {kind} that is neither argument nor weight")
    return places
