"""One built backend for one input signature."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import TreeSpec, tree_unflatten


@dataclass(frozen=True, slots=True)
class BuiltBackend:
    """One built backend for one input signature, without checks.

    Args:
        engine: the name of the backend.
        leaves: the example's arguments, flat: tensors, and constants of the input signature.
        run: takes the tensors among the leaves and returns the outputs, flat.
        weights: the parameters and buffers that it was built with, by name.
        is_frozen: weights are folded in.
        plain: the net as torch itself calls it, with a user's arguments.
        compares: folded values are compared with the weights at each call.
        bound: the largest magnitude of a float in arguments, none of them NaN; None for any.
        index_bounds: the least and greatest index allowed in each tensor, None for any.
        instead: the backend for calls that this one refuses for values of weights or arguments.
        says: a description, where it differs from the backend's usual one.
        ends_process: it may end the process where eager torch raises an error.
        bind: makes it read other weights, by name, where it keeps its own references.
        net: the copy of the net that it was built from.
        attributes: by module, attributes of the copy after its calls.
    """

    engine: str
    args_spec: TreeSpec
    leaves: tuple[Any, ...]
    run: Callable[[list[torch.Tensor]], Sequence[Any]]
    out_spec: TreeSpec
    weights: Mapping[str, torch.Tensor]
    is_frozen: bool = False
    plain: Callable[..., Any] | None = None
    compares: bool = False
    bound: float | None = None
    index_bounds: tuple[tuple[int, int] | None, ...] = ()
    instead: "BuiltBackend | None" = None
    says: str = ""
    ends_process: bool = False
    bind: Callable[[Mapping[str, torch.Tensor]], None] | None = None
    net: torch.nn.Module | None = None
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def is_bounded(self) -> bool:
        """True where it runs only some values of arguments."""
        return self.bound is not None or bool(self.index_bounds)

    def tensors(self) -> list[torch.Tensor]:
        """Return the tensors of the example."""
        return [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]

    def __call__(self, tensors: list[torch.Tensor]) -> Any:
        """Return the outputs, nested as the net returns them."""
        return tree_unflatten(self.run(tensors), self.out_spec)


def leaf_in_words(leaf: Any) -> str:
    """Return the dtype and shape of a tensor, or a constant, as text."""
    if isinstance(leaf, torch.Tensor):
        return f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
    return repr(leaf)
