"""The graph that Dynamo finds of a net, called without Dynamo: op by op, rewritten by passes, or
with the rest compiled by Inductor.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch.fx
from torch.utils._pytree import tree_leaves

from passnet.errors import EngineError
from passnet.extract.trace import Segment, Trace
from passnet.optimizer.entry import Entry
from passnet.optimizer.net_call import NetCall
from passnet.passes.backend import Residual, compile_graph, loaded_passes

CHOSEN_FOLDER, PASSES_FOLDER = "chosen-passes", "passes"
"""Where the pass folders of a net lie, in the order in which they are applied: those that were
chosen for a form of inputs, and those that a way has.
"""


@dataclass(frozen=True)
class NetGraph:
    """The one graph of a net: its module, the arguments of a call, and which of its outputs are
    those of the net, in order.
    """

    module: torch.fx.GraphModule
    arguments: tuple[Any, ...]
    outputs: tuple[int, ...]


def net_graph(call: NetCall) -> NetGraph:
    """The graph that Dynamo finds of a net.

    Raises:
        EngineError: there are several, or the net returns what its graph does not compute.
    """
    segments: list[Segment] = []
    runs: list[tuple[tuple[Any, ...], Sequence[Any]]] = []

    def keep(segment: Segment) -> None:
        def run(*arguments: Any) -> Any:
            runs.append((arguments, segment.module.forward(*arguments)))
            return runs[-1][1]

        segment.replay = run
        segments.append(segment)

    try:
        returned = tree_leaves(Trace(call.net, keep).run(call.args, call.kwargs))
    finally:
        torch._dynamo.reset()
    if len(segments) != 1 or len(runs) != 1:
        raise EngineError(f"Dynamo finds {len(segments)} graphs and not one")
    [(arguments, given)] = runs
    numbers = {id(value): number for number, value in enumerate(given)}
    if not all(id(value) in numbers for value in returned):
        raise EngineError("the net returns what its graph does not compute")
    outputs = tuple(numbers[id(value)] for value in returned)
    return NetGraph(segments[0].module, arguments, outputs)


def graph_entry(
    call: NetCall,
    folder: Path | None = None,
    engine: str = "graph",
    passes: Sequence[Path] = (),
    residual: Residual = "eager",
) -> Entry:
    """The graph of a net, rewritten by the passes of some folders.

    Raises:
        EngineError: the net is not one graph, or reads what is neither an argument nor a weight.
    """
    graph = net_graph(call)
    places = _places(call, graph.arguments)
    function, reports = compile_graph(
        graph.module, graph.arguments, loaded_passes(list(passes)), residual
    )
    if passes and not any(report.num_matches for report in reports):
        raise EngineError("no pass matches in the whole net")

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        inputs = [tensors[place] if isinstance(place, int) else place for place in places]
        with torch.no_grad():
            results = function(*inputs)
        return [results[number] for number in graph.outputs]

    return call.entry(engine, run)


def build_with_passes(call: NetCall, folder: Path, engine: str, residual: Residual) -> Entry:
    """The same with the passes that were chosen for the net, which lie beside the folder.

    Raises:
        EngineError: none was chosen.
    """
    chosen = folder.parent / CHOSEN_FOLDER
    if not chosen.is_dir() or not any(chosen.iterdir()):
        raise EngineError("no pass saves anything")
    shutil.copytree(chosen, folder / PASSES_FOLDER)
    return load_with_passes(call, folder, engine, residual)


def load_with_passes(call: NetCall, folder: Path, engine: str, residual: Residual) -> Entry:
    """The same with the passes that lie in the folder."""
    passes = sorted((folder / PASSES_FOLDER).iterdir())
    return graph_entry(call, folder, engine, passes, residual)


def _places(call: NetCall, arguments: Sequence[Any]) -> list[Any]:
    """Of each argument of a graph the number of the tensor of the call that it is, or a weight."""
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
            raise EngineError(f"the graph reads a {kind} that is neither argument nor weight")
    return places
