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
        engine: the name of the backend: "eager", "compile", "aot".
        args_spec: how the positional and named arguments are nested.
        leaves: the arguments of an example, flat: tensors, and the constants that are part of the
            form.
        run: takes the tensors among the leaves, in order, and returns the outputs, flat.
        out_spec: how the outputs are nested.
        weights: the parameters and buffers of the net that it was built with, by name.
        is_frozen: whether the values of these are folded in.
        plain: the way as torch itself calls it, with what a user would give the net; None without.
        compares: whether folded values are compared with the weights at each call, so that these
            may change; if not, that they were not updated is all that is looked at.
        bound: the largest magnitude of a float among the arguments, none of which may be NaN; None
            where it may be any.
        index_bounds: for each tensor the smallest and the largest whole number that it may hold,
            None where it may be any; empty where all may.
        instead: the backend for calls that fit but for the values of weights or arguments.
        says: what it is, where that is not what its engine is for other nets.
        ends_process: whether it may end the process where eager torch raises an error.
        bind: lets it read other weights, by name, where it does not follow those it was built with.
        net: the copy of the net that it was built from.
        attributes: by module, attributes that the copy has after its calls.
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
        """Return whether it runs only arguments of some values."""
        return self.bound is not None or bool(self.index_bounds)

    def tensors(self) -> list[torch.Tensor]:
        """Return the tensors of the example."""
        return [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]

    def __call__(self, tensors: list[torch.Tensor]) -> Any:
        """Return what the net returns for these tensors."""
        return tree_unflatten(self.run(tensors), self.out_spec)


def leaf_in_words(leaf: Any) -> str:
    """Return the form of a tensor, or a constant, as it is shown."""
    if isinstance(leaf, torch.Tensor):
        return f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
    return repr(leaf)
