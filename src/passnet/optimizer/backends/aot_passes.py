"""The graph of a net with passes, as a program for AOTInductor, which compiles replacements too."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch.export import ExportedProgram, export

from passnet.errors import BackendError, boundary
from passnet.optimizer.backends.dynamo_graph import NetGraph, argument_sources, net_graph, rewritten
from passnet.optimizer.call.net_call import NetCall, weights_of
from passnet.passes.apply.first_call import noting_first_calls
from passnet.passes.cpp import seen_by_tracers


class _RewrittenNet(torch.nn.Module):
    """A rewritten graph with a net's own weights by their own names."""

    def __init__(self, call: NetCall, graph: NetGraph, passes: Sequence[Path]) -> None:
        super().__init__()
        net = call.net
        self._modules, self._parameters, self._buffers = net._modules, net._parameters, net._buffers
        self._non_persistent_buffers_set = net._non_persistent_buffers_set
        self.training = False
        names = {id(weight): name for name, weight in reversed(list(call.weights.items()))}
        self._sources = [
            source if isinstance(source, int) else names[id(source)]
            for source in argument_sources(call, graph.arguments)
        ]
        self._outputs = graph.outputs
        self._function = rewritten(graph, passes, "eager")

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the outputs of the net, flat."""
        weights = weights_of(self)
        results = self._function(
            *(tensors[name] if isinstance(name, int) else weights[name] for name in self._sources)
        )
        return tuple(results[number] for number in self._outputs)


def rewritten_program(call: NetCall, passes: Sequence[Path]) -> ExportedProgram:
    """Return the graph of a net rewritten by passes, as a program of `torch.export`.

    Where a replacement cannot be traced, or changes shapes or dtypes, the original ops remain.

    Raises:
        BackendError: the net is not one graph, no pass matches, no replacement can be traced, or
            the graph cannot be exported.
    """
    net = _RewrittenNet(call, net_graph(call), passes)
    with (
        boundary(BackendError, "torch.export"),
        torch.no_grad(),
        seen_by_tracers(),
        noting_first_calls() as failures,
    ):
        program = export(net, tuple(call.tensors()), strict=False)
    if failures and all(failures):
        texts = "; ".join(sorted({*map(str, failures)}))
        raise BackendError(f"no pass can be in a package: {texts}")
    return program
