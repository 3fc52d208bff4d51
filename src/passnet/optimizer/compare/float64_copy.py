"""A copy of a net in float64 that takes the memory of one weight at a time."""

import copy
from typing import Any

import torch

from passnet.optimizer.call.effects import bare_copy


class _InFloat64(dict[str, Any]):
    """Weights of a module; each float is converted as often as it is read."""

    def __getitem__(self, name: str) -> Any:
        weight = super().__getitem__(name)
        return weight.double() if weight is not None and weight.is_floating_point() else weight

    def items(self) -> Any:
        """Return the names and weights, converted."""
        return [(name, self[name]) for name in self]

    def values(self) -> Any:
        """Return the weights, converted."""
        return [self[name] for name in self]


def copy_in_float64(net: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a net that reads the same weights in float64.

    Scripted modules hold their weights elsewhere: of a net with such, all weights are copied.
    """
    if any(isinstance(module, torch.jit.ScriptModule) for module in net.modules()):
        return copy.deepcopy(net).double()
    made = bare_copy(net)
    for module in made.modules():
        for name in ("_parameters", "_buffers"):
            vars(module)[name] = _InFloat64(vars(module)[name])
        if isinstance(module, torch.nn.RNNBase):  # it keeps a list of them besides
            module._flat_weights = [getattr(module, name) for name in module._flat_weights_names]
    return made
