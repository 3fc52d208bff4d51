"""What a call of a net reads, by its ops: tensors that are neither arguments nor weights, and
divisors.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_MAKES = (torch.ops.aten.lift_fresh.default, torch.ops.aten.lift.default)
"""Ops whose argument was made of numbers in the same call."""


class _Reads(TorchDispatchMode):
    """Notes tensors that ops read and that no op of the same call made."""

    supports_higher_order_operators = True

    def __init__(self, known: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._known = {_memory(tensor) for tensor in known} | {0}
        self.foreign: list[torch.Tensor] = []
        self.divides_towards_zero = False

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        outputs = func(*args, **(kwargs or {}))
        if (kwargs or {}).get("rounding_mode") == "trunc" and isinstance(args[1], torch.Tensor):
            self.divides_towards_zero |= not outputs.is_floating_point()
        read = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if func not in _MAKES:
            self.foreign += [tensor for tensor in read if _memory(tensor) not in self._known]
        made = [leaf for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
        self._known |= {_memory(tensor) for tensor in (*read, *made)}
        return outputs


def _memory(tensor: torch.Tensor) -> int:
    """Return the address of the memory of a tensor, 0 where it has none of its own."""
    if tensor.layout is not torch.strided or tensor.is_meta:
        return 0
    return tensor.untyped_storage().data_ptr()


def foreign_tensors(
    call: Callable[[], Any], known: Iterable[torch.Tensor]
) -> tuple[Any, list[torch.Tensor], bool]:
    """Return the result of a call, the tensors that it reads besides those known, and whether it
    divides whole numbers by a tensor, towards zero.
    """
    # Dynamo, which eager torch.cond calls, would compile for this mode, and then for none again
    with torch.compiler.set_stance("force_eager"), _Reads(known) as reads:
        result = call()
    return result, reads.foreign, reads.divides_towards_zero


def constants_of_scripts(net: torch.nn.Module) -> list[torch.Tensor]:
    """Return the tensors in the graphs of scripted modules, which nobody can change."""
    scripts = [module for module in net.modules() if isinstance(module, torch.jit.ScriptModule)]
    graphs: list[Any] = [each.inlined_graph for each in scripts if hasattr(each, "forward")]
    nodes = [node for graph in graphs for node in graph.findAllNodes("prim::Constant", True)]
    return [node.t("value") for node in nodes if node.output().type().kind() == "TensorType"]
