"""Activations that follow another call in a graph."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch.fx

from passnet.passes.match.graph_index import first_values
from passnet.passes.match.normalise import CanonicalCall

Activation: TypeAlias = tuple[str, str, tuple[float, ...]]
"""oneDNN's name of an activation, its algorithm and numbers."""

_ACTIVATIONS: Mapping[str, Callable[[Mapping[str, Any]], Activation]] = {
    "relu": lambda values: ("relu", "none", ()),
    "relu6": lambda values: ("hardtanh", "none", (0.0, 6.0)),
    "hardtanh": lambda v: ("hardtanh", "none", (float(v["min_val"]), float(v["max_val"]))),
    "silu": lambda values: ("swish", "none", ()),
    "gelu": lambda values: ("gelu", str(values["approximate"]), ()),
    "hardswish": lambda values: ("hardswish", "none", ()),
    "sigmoid": lambda values: ("sigmoid", "none", ()),
    "tanh": lambda values: ("tanh", "none", ()),
    "leaky_relu": lambda v: ("leaky_relu", "none", (float(v["negative_slope"]),)),
}
"""By torch's name, from torch's arguments."""


def activation_of(
    node: torch.fx.Node, call: CanonicalCall, value: torch.fx.Node
) -> Activation | None:
    """Return the activation that a call computes of a value; None if it is none."""
    name = call.label.rpartition(".")[2]
    is_plain = call.label.startswith(("torch.", "Tensor.")) and name in _ACTIVATIONS
    if not is_plain or first_values(node) != [value]:
        return None
    return _ACTIVATIONS[name](dict(call.arguments))
