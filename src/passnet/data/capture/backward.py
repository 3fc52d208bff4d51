"""The backward graph of a graph: what autograd would run, in ops of aten."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx


def trace_backward(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    keep: Callable[[torch.fx.GraphModule, list[Any]], None],
) -> None:
    """Trace a graph through autograd, and hand on what computes its gradients.

    Nothing is handed on if no argument needs a gradient. Its arguments are the values that the
    forward pass keeps and the gradients of its outputs; its outputs the gradients of the arguments.
    `keep` is called with it and what its arguments look like; `module` stays as it is.
    """
    from torch._functorch import config
    from torch._functorch.aot_autograd import aot_module_simplified

    def forward(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Any:
        return graph.forward

    def backward(graph: torch.fx.GraphModule, values: Sequence[Any]) -> Any:
        keep(graph, list(values))
        return graph.forward

    own = torch.fx.GraphModule(module, copy.deepcopy(module.graph))
    with torch.enable_grad(), config.patch(force_non_lazy_backward_lowering=True):
        compilers: dict[str, Any] = {"fw_compiler": forward, "bw_compiler": backward}
        aot_module_simplified(own, inputs, **compilers)
