"""The graph of a net with passes, as a program for AOTInductor.

AOTInductor sees through replacements: what they call of torch is compiled with the rest, and their
kernels are called as its own are.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch.export import ExportedProgram, export

from passnet.errors import BackendError, boundary
from passnet.optimizer.backends.dynamo_graph import NetGraph, argument_places, net_graph, rewritten
from passnet.optimizer.call.net_call import NetCall
from passnet.passes.apply.first_call import noting_first_calls
from passnet.passes.cpp import seen_by_tracers


class _RewrittenNet(torch.nn.Module):
    """A net's own weights, by the net's own names, with its graph rewritten in its place."""

    def __init__(self, call: NetCall, graph: NetGraph, passes: Sequence[Path]) -> None:
        super().__init__()
        net = call.net
        self._modules, self._parameters, self._buffers = net._modules, net._parameters, net._buffers
        self._non_persistent_buffers_set = net._non_persistent_buffers_set
        self.training = False
        names = {id(weight): name for name, weight in reversed(list(call.weights.items()))}
        self._places = [
            place if isinstance(place, int) else names[id(place)]
            for place in argument_places(call, graph.arguments)
        ]
        self._outputs = graph.outputs
        self._function = rewritten(graph, passes, "eager")

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the outputs of the net, flat."""
        weights = {
            **dict(self.named_parameters(remove_duplicate=False)),
            **dict(self.named_buffers(remove_duplicate=False)),
        }
        inputs = [
            tensors[place] if isinstance(place, int) else weights[place] for place in self._places
        ]
        results = self._function(*inputs)
        return tuple(results[number] for number in self._outputs)


def rewritten_program(call: NetCall, passes: Sequence[Path]) -> ExportedProgram:
    """Return the graph of a net rewritten by the passes of some folders, as `torch.export` has it.

    A replacement that cannot be traced, or returns another form than the original ops, gives way to
    these.

    Raises:
        BackendError: the net is not one graph, no pass matches, all of them give way, or the graph
            cannot be exported.
    """
    net = _RewrittenNet(call, net_graph(call), passes)
    with (
        boundary(BackendError, "torch.export"),
        torch.no_grad(),
        seen_by_tracers(),
        noting_first_calls() as noted,
    ):
        program = export(net, tuple(call.tensors()), strict=False)
    if noted and all(noted):
        raise BackendError(f"no pass can be in a package: {'; '.join(sorted({*map(str, noted)}))}")
    return program
