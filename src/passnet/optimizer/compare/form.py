"""The form of outputs in memory: strides, and memory shared with arguments, weights or each other.

Callers see both: `.view` fails on other strides, and a write into an output may reach an argument.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from passnet.errors import BackendError
from passnet.optimizer.call.call_check import is_dense_in_memory
from passnet.optimizer.call.net_call import BuiltBackend, NetCall
from passnet.optimizer.call.sizes import traced_sizes

RunBackend = Callable[[list[torch.Tensor]], Sequence[Any]]
StridesOf = Callable[[Sequence[int]], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _View:
    """An output that is a view: of an argument by number, a weight by name, or an earlier output.

    `offset` is in elements from where the other tensor begins; `is_itself`: it is that tensor.
    """

    of: tuple[str, int | str]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    is_itself: bool


def with_form(call: NetCall, built: BuiltBackend) -> BuiltBackend:
    """Return a backend whose outputs lie in memory as eager torch's do; BackendError if none can.

    Outputs are laid out anew, and views are made of what eager torch makes them of, only where the
    backend's own outputs for the example lie otherwise.
    """
    if call.ranges:  # axes of size 1 have no order in memory
        call = call.at(traced_sizes(call.ranges))
    with torch.no_grad():
        outputs = list(built.run(call.tensors()))
    if not all(isinstance(output, torch.Tensor) for output in outputs):
        return built  # a comparison says so
    if len(outputs) != len(call.outputs):
        return built
    if [x.is_inference() for x in outputs] != [x.is_inference() for x in call.outputs]:
        raise BackendError("the net returns tensors of inference mode, or takes such")
    views = _views(call, call.outputs, call.weights)
    if views == _views(call, outputs, built.weights) and not any(
        map(_differ, outputs, call.outputs)
    ):
        return built
    for number, output in enumerate(call.outputs):
        if number not in views and not is_dense_in_memory(output):
            raise BackendError(f"output {number} of the net overlaps itself or has gaps in memory")
    if call.ranges and not all(view.is_itself for view in views.values()):
        raise BackendError("the net returns a view, whose place in memory varies with its size")
    strides = [_strides_of(output, bool(call.ranges)) for output in call.outputs]
    return replace(built, run=_laid_out(built.run, strides, views, dict(call.weights)))


def _strides_of(output: torch.Tensor, varies: bool) -> StridesOf:
    """Return a function of a shape that returns an output's strides."""
    strides, order = output.stride(), _order(output)  # the output itself is not kept
    return (lambda shape: _strides(shape, order)) if varies else (lambda shape: strides)


def _order(tensor: torch.Tensor) -> list[int]:
    """Return the axes of a tensor from the outermost in memory to the innermost."""
    steps = [(stride, size > 1) for stride, size in zip(tensor.stride(), tensor.shape, strict=True)]
    return sorted(range(tensor.dim()), key=steps.__getitem__, reverse=True)


def _strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense tensor whose axes have this order in memory."""
    strides, step = [1] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def _laid_out(
    run: RunBackend,
    strides_of: Sequence[StridesOf],
    views: Mapping[int, _View],
    weights: Mapping[str, torch.Tensor],
) -> RunBackend:
    def run_laid_out(tensors: list[torch.Tensor]) -> Sequence[Any]:
        outputs = list(run(tensors))
        for number, of_shape in enumerate(strides_of):
            shape = outputs[number].shape
            view = views.get(number)
            if view is not None:
                kind, name = view.of
                base = {"argument": tensors, "weight": weights, "output": outputs}[kind][name]  # type: ignore[index]
                offset = base.storage_offset() + view.offset
                view_of_it = base.detach().as_strided(view.shape, view.strides, offset)
                outputs[number] = base if view.is_itself else view_of_it
            elif outputs[number].stride() != (strides := of_shape(shape)):
                laid = torch.empty_strided(
                    shape, strides, dtype=outputs[number].dtype, device=outputs[number].device
                )
                outputs[number] = laid.copy_(outputs[number])
        return outputs

    return run_laid_out


def _views(
    call: NetCall, outputs: Sequence[torch.Tensor], weights: Mapping[str, torch.Tensor]
) -> dict[int, _View]:
    """Return the outputs that share memory with an argument, a weight or an earlier output."""
    bases: list[tuple[tuple[str, int | str], torch.Tensor]] = [
        *((("argument", number), tensor) for number, tensor in enumerate(call.tensors())),
        *((("weight", name), weight) for name, weight in weights.items()),
    ]
    views = {}
    for number, output in enumerate(outputs):
        for of, base in bases:
            if _shares(output, base):
                offset = int(output.storage_offset() - base.storage_offset())
                is_alike = output.dtype is base.dtype and output.is_conj() == base.is_conj()
                if not is_alike or output.is_neg() != base.is_neg():
                    raise BackendError(f"output {number} is a view of other bits of a tensor")
                form = tuple(output.shape), output.stride()
                is_itself = output is base and of[0] != "weight"  # those are of a copy
                views[number] = _View(of, *form, offset, is_itself)
                break
        bases.append((("output", number), output))
    return views


def _shares(first: torch.Tensor, second: torch.Tensor) -> bool:
    if torch.strided not in (first.layout, second.layout) or first.layout != second.layout:
        return False
    is_empty = not first.numel() or not second.numel()
    same = first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    return same and not is_empty


def _differ(output: torch.Tensor, right: torch.Tensor) -> bool:
    """Return whether two outputs of one shape have other strides, of axes longer than 1."""
    if output.shape != right.shape or right.layout is not torch.strided or not right.numel():
        return False
    pairs = zip(right.shape, output.stride(), right.stride(), strict=True)
    return any(size > 1 and own != expected for size, own, expected in pairs)
