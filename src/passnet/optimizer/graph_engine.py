"""The graph that Dynamo finds of a net, called without Dynamo: op by op, rewritten by passes, or
with the rest compiled by Inductor.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
from torch.utils._pytree import tree_leaves

from passnet.errors import EngineError
from passnet.extract.trace import Segment, Trace
from passnet.optimizer.entry import Entry
from passnet.optimizer.net_call import NetCall
from passnet.passes.backend import Residual, compile_graph, loaded_passes


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
    module, [(arguments, given)] = segments[0].module, runs
    places = _places(call, arguments)
    numbers = {id(value): number for number, value in enumerate(given)}
    if not all(id(value) in numbers for value in returned):
        raise EngineError("the net returns what its graph does not compute")
    order = [numbers[id(value)] for value in returned]
    function, _ = compile_graph(module, arguments, loaded_passes(list(passes)), residual)

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        inputs = [tensors[place] if isinstance(place, int) else place for place in places]
        with torch.no_grad():
            results = function(*inputs)
        return [results[number] for number in order]

    return call.entry(engine, run)


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
