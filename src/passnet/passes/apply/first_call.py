"""A check of a replacement's first call in a user's process; other forms keep the original ops."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import torch
import torch.fx
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves, tree_map_only

from passnet.passes.apply.rewrite import Site
from passnet.passes.match.pattern import Pattern, as_module

_log = logging.getLogger("passnet")

_noted: ContextVar[tuple[list[str | None], ...]] = ContextVar("_noted", default=())


@contextlib.contextmanager
def noting_first_calls() -> Iterator[list[str | None]]:
    """Yield a list that gets, for each first call, None if the replacement is used, or a reason."""
    noted: list[str | None] = []
    token = _noted.set((*_noted.get(), noted))
    try:
        yield noted
    finally:
        _noted.reset(token)


def check_first_calls(module: torch.fx.GraphModule, sites: Sequence[Site]) -> None:
    """Check the call at every site when it is first made, and recompile the module."""
    for site in sites:
        source, inputs = site.source, site.pattern_arguments
        site.node.target = checked_call(source.name, source.pattern, site.node.target)
        site.node.args = (inputs, site.node.args)
    if sites:
        module.graph.lint()
        module.recompile()


def checked_call(name: str, pattern: Pattern, replacement: Any) -> Callable[..., Any]:
    """Return a call of a replacement, or of its pattern if the first result has another form."""
    decided: list[Callable[..., Any]] = []

    def choose(inputs: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
        unwritten = _unwritten(pattern, inputs)
        original, result = outputs_of(as_module(pattern)(*unwritten)), None
        try:
            result = replacement(*args)
            results = outputs_of(result)
            why = difference(results, original) or shared(results, args, original, unwritten)
        except Exception as cause:  # noqa: BLE001 (boundary: whatever a replacement raises)
            why = f"{type(cause).__name__}: {cause}"
        for noted in _noted.get():
            noted.append(None if why is None else f"{name}: its replacement {why}")
        if why is None:
            decided.append(lambda inputs, args: replacement(*args))
            return result
        _log.warning("%s is not applied, the original ops stay: its replacement %s", name, why)
        decided.append(
            lambda inputs, args: _as_returned(pattern, original_outputs(pattern, inputs))
        )
        return _as_returned(pattern, original)

    def call(inputs: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
        return decided[0](inputs, args) if decided else choose(inputs, args)

    call.__name__ = getattr(replacement, "__name__", "replacement")
    return call


def original_outputs(pattern: Pattern, inputs: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """Return the results of a pattern's ops; they write into copies."""
    outputs: tuple[torch.Tensor, ...] = as_module(pattern)(*_unwritten(pattern, inputs))
    return outputs


def _unwritten(pattern: Pattern, inputs: Sequence[Any]) -> tuple[Any, ...]:
    if not any(call.writes for call in pattern.calls.values()):
        return tuple(inputs)
    copies: tuple[Any, ...] = tree_map_only(torch.Tensor, torch.clone, tuple(inputs))
    return copies


def outputs_of(result: Any) -> tuple[Any, ...]:
    """Return a replacement's result as a tuple."""
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def difference(outputs: Sequence[Any], original: Sequence[torch.Tensor]) -> str | None:
    """Return how outputs differ from the original ops' in number, dtype, device or layout."""
    if len(outputs) != len(original):
        return f"returns {len(outputs)} values, and the original ops {len(original)}"
    for output, expected in zip(outputs, original, strict=True):
        if not isinstance(output, torch.Tensor):
            return f"returns a {type(output).__name__} in the place of a tensor"
        if _form(output) != _form(expected):
            return f"returns {_described(output)}, and the original ops {_described(expected)}"
    return None


def shared(
    outputs: Sequence[Any], args: Any, original: Sequence[torch.Tensor], inputs: Any
) -> str | None:
    """Return what memory outputs share with arguments or one another, and the original ones do not.

    A later write into such an output would change what it shares memory with.
    """
    for number, places in enumerate(_sharing(outputs, args)):
        if new := places - _sharing(original, inputs)[number]:
            other = min(new)
            shared_with = "an argument" if other < 0 else f"its result {other + 1}"
            return (
                f"returns memory of {shared_with} as result {number + 1}, and the original ops do "
                "not; return a clone"
            )
    return None


def _sharing(outputs: Sequence[torch.Tensor], args: Any) -> list[set[int]]:
    """Return for each output the earlier ones that it shares memory with, and -1 for arguments."""
    leaves = [leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)]
    strided = [leaf for leaf in leaves if leaf.layout is torch.strided]
    owners: dict[StorageWeakRef, int] = {memory_of(leaf): -1 for leaf in strided}
    places = []
    for number, output in enumerate(outputs):
        owner = owners.setdefault(memory_of(output), number)
        places.append({owner} - {number})
    return places


def memory_of(tensor: torch.Tensor) -> StorageWeakRef:
    """Return the memory of a tensor, equal for all that share it."""
    return StorageWeakRef(tensor.untyped_storage())


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    strides = [stride for size, stride in pairs if size != 1] if tensor.numel() else []
    return tensor.dtype, tensor.device, tensor.shape, strides


def _described(tensor: torch.Tensor) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{dtype} {tuple(tensor.shape)} with strides {tensor.stride()} on {tensor.device}"


def _as_returned(pattern: Pattern, outputs: tuple[torch.Tensor, ...]) -> Any:
    return outputs if pattern.returns_tuple else outputs[0]
