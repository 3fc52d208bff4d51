"""The check of a call: whether it fits a built backend, and if not, why.

A call fits where its arguments are nested like the example's, its constants are equal, and its
tensors are plain ones of the same dtype, device, layout, shape and strides (of dims of size 1 as
far as convolutions read them), or contiguous ones whose sizes are in ranges that were asked for;
where no mode, transform, autocast or gradient of torch is active; and where the net is unchanged.
"""

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import torch
from torch.autograd import forward_ad
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from passnet.optimizer.call import net_state
from passnet.optimizer.call.net_call import BuiltBackend
from passnet.optimizer.call.values import argument_names, check_arguments, is_dense, is_plain
from passnet.optimizer.record import SizeRange

WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
"""Dtypes whose values can be kept within bounds."""


class Misfit(IntEnum):
    """The reason why a call does not fit, in the order of the checks, as in call_check.cpp."""

    MODE = 1
    AUTOCAST = 2
    NESTING = 3
    CONSTANT = 4
    KIND = 5
    DTYPE = 6
    DEVICE = 7
    LAYOUT = 8
    SHAPE = 9
    STRIDES = 10
    SAME = 11
    ADDRESS = 12
    GRADIENTS = 13
    NET = 14
    WEIGHT = 15
    VALUES = 16
    FROZEN = 17


CallCheck: TypeAlias = Callable[[tuple[Any, ...], dict[str, Any]], "list[torch.Tensor] | int"]
"""Return the tensors among the arguments of a call, in order, or the number of a `Misfit`."""


@dataclass(frozen=True, slots=True)
class TensorSignature:
    """The requirements on a tensor of a call; `varies`: pairs of an axis and a range's number."""

    dtype: torch.dtype
    device: torch.device
    keys: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    needs_gradient: bool
    varies: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class InputSignature:
    """The requirements on a call.

    Args:
        leaves: the example's constants, and signatures in place of its tensors.
        examples: the example's leaves themselves.
        same_as: for each leaf the first one that is the same object.
        names: the name of each leaf in a sentence.
        ignored_keys: dispatch keys that may differ between tensors, as in inference mode.
        is_frozen: the weights must not have been updated.
        storages: the storages that must have their former bytes.
        bound: the largest magnitude of a float in the arguments; None for any.
        index_bounds: for each leaf the least and greatest index allowed, None for any.
        filled_rows: for each leaf whether every row along its last axis must hold more than zeros.
        ranges: the sizes that vary from call to call.
    """

    args_spec: TreeSpec
    leaves: tuple[Any, ...]
    examples: tuple[Any, ...]
    same_as: tuple[int, ...]
    names: tuple[str, ...]
    ignored_keys: int
    default_dtype: torch.dtype
    autocast_dtype: torch.dtype
    flushes_denormals: bool
    modules: tuple[net_state.RememberedDict, ...]
    weights: tuple[net_state.RememberedWeight, ...]
    is_frozen: bool
    storages: tuple[net_state.RememberedStorage, ...] = ()
    bound: float | None = None
    index_bounds: tuple[tuple[int, int] | None, ...] = ()
    filled_rows: tuple[bool, ...] = ()
    ranges: tuple[SizeRange, ...] = ()


def input_signature(net: torch.nn.Module, built: BuiltBackend) -> InputSignature:
    """Return the requirements of a backend that was built from this net as it is now.

    InputError where the example cannot be checked, or the weights are not the net's.
    """
    args, kwargs = tree_unflatten(list(built.leaves), built.args_spec)
    check_arguments(args, kwargs)
    names = argument_names(args, kwargs)
    with torch.inference_mode(False):
        plain = torch._C._dispatch_keys(torch.empty(0)).raw_repr()
    with torch.inference_mode():
        ignored_keys = plain & ~torch._C._dispatch_keys(torch.empty(0)).raw_repr()
    leaves: list[Any] = []
    number = 0  # among the tensors
    for leaf in built.leaves:
        if is_dense(leaf):
            keys = torch._C._dispatch_keys(leaf).raw_repr() & ~ignored_keys
            form = leaf.dtype, leaf.device, keys, leaf.shape, leaf.stride(), leaf.requires_grad
            places = [
                (axis, index)
                for index, size_range in enumerate(built.ranges)
                for tensor, axis in size_range.places
                if tensor == number
            ]
            leaves.append(TensorSignature(*form, tuple(places)))
            number += 1
        else:
            leaves.append(leaf)
    bounds, rows = iter(built.index_bounds), iter(built.filled_rows)
    weights = net_state.remember_weights(net, built.weights)
    return InputSignature(
        built.args_spec,
        tuple(leaves),
        tuple(built.leaves),
        tuple(_first(built.leaves, leaf) for leaf in built.leaves),
        names,
        ignored_keys,
        torch.get_default_dtype(),
        torch.get_autocast_dtype("cpu"),
        flushes_denormals(),
        net_state.remember_net(net, built.attributes),
        weights,
        built.is_frozen and not built.compares,
        net_state.remember_storages(weights) if built.compares else (),
        built.bound,
        tuple(
            next(bounds, None) if isinstance(leaf, torch.Tensor) else None for leaf in built.leaves
        ),
        tuple(isinstance(leaf, torch.Tensor) and next(rows, False) for leaf in built.leaves),
        built.ranges,
    )


def python_check(signature: InputSignature) -> CallCheck:
    """Return the check in Python."""

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor] | int:
        misfit = find_misfit(signature, args, kwargs)
        if misfit is not None:
            return int(misfit[0])
        return [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)]

    return check


def find_misfit(
    signature: InputSignature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Misfit, str] | None:
    """Return why a call does not fit, also as the beginning of a sentence; None where it fits."""
    if misfit := _misfit_of_thread(signature):
        return misfit
    leaves, spec = tree_flatten((args, kwargs))
    if spec != signature.args_spec:
        return Misfit.NESTING, "the inputs are other ones, or nested or ordered otherwise"
    sizes: list[int | None] = [None] * len(signature.ranges)
    for index, (name, expected, leaf) in enumerate(
        zip(signature.names, signature.leaves, leaves, strict=True)
    ):
        if not isinstance(expected, TensorSignature):
            if not net_state.is_same(signature.examples[index], leaf):
                return Misfit.CONSTANT, f"{name} is {_in_short(leaf)} and not {_in_short(expected)}"
        elif misfit := _misfit_of_tensor(signature, expected, leaf, sizes):
            return misfit[0], f"{name} {misfit[1]}"
        elif (first := _first(leaves, leaf)) != signature.same_as[index]:
            if first == index:
                return Misfit.SAME, f"{name} is not the same tensor as an earlier one"
            return Misfit.SAME, f"{name} is the same tensor as {signature.names[first]}"
        elif leaf.device.type != "cpu" and leaf.data_ptr() % 16:
            return Misfit.ADDRESS, f"{name} does not begin at a multiple of 16 bytes"
    return (
        _misfit_of_gradients(signature, leaves)
        or _misfit_of_net(signature)
        or _misfit_of_values(signature, leaves)
    )


def can_be_bounded(tensor: torch.Tensor) -> bool:
    """Return whether each call can check the magnitudes of a tensor, which not all floats allow."""
    if not tensor.is_floating_point():
        return not tensor.is_complex()
    is_usual = tensor.dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    return is_usual and tensor.device.type == "cpu" and is_dense_in_memory(tensor)


def can_be_within(tensor: torch.Tensor) -> bool:
    """Return whether each call can check whole numbers or bools: dense ones on the CPU."""
    is_usual = tensor.dtype in WHOLE
    return is_usual and tensor.device.type == "cpu" and is_dense_in_memory(tensor)


def can_have_rows(tensor: torch.Tensor) -> bool:
    """Return whether each call can check the rows of a tensor: bools or whole numbers in order."""
    return tensor.dim() > 0 and can_be_within(tensor) and tensor.is_contiguous()


def has_empty_row(tensors: Sequence[torch.Tensor], rows: Sequence[bool]) -> bool:
    """Return whether one of the tensors that `rows` marks has a row of zeros along its last axis.

    >>> has_empty_row([torch.tensor([[1, 0], [0, 0]])], [True])
    True
    """
    pairs = zip(tensors, rows, strict=False)
    return any(is_one and not bool(tensor.any(-1).all()) for tensor, is_one in pairs)


def is_dense_in_memory(tensor: torch.Tensor) -> bool:
    """Return whether a tensor's elements fill a contiguous range of memory, each once."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride != expected:
            return False
        expected *= max(size, 1)
    return True


def _misfit_of_tensor(
    signature: InputSignature, expected: TensorSignature, leaf: Any, sizes: list[int | None]
) -> tuple[Misfit, str] | None:
    if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
        return Misfit.KIND, f"is {type(leaf).__name__} and not a plain tensor"
    if any(not name.startswith("_") for name in vars(leaf)):
        return Misfit.KIND, "has attributes of its own, which a backend does not see"
    if leaf.dtype is not expected.dtype:
        return Misfit.DTYPE, f"has dtype {leaf.dtype} and not {expected.dtype}"
    if leaf.device != expected.device:
        return Misfit.DEVICE, f"is on {leaf.device} and not on {expected.device}"
    if torch._C._dispatch_keys(leaf).raw_repr() & ~signature.ignored_keys != expected.keys:
        return Misfit.LAYOUT, "is not laid out as plain numbers (sparse, conjugated, nested)"
    example = torch.empty_strided(expected.shape, expected.strides, device="meta")
    if len(expected.shape) == leaf.dim() and _format(leaf) is not _format(example):
        return Misfit.STRIDES, "has its channels in another place in memory"
    if expected.varies:
        return _misfit_of_sizes(signature, expected, leaf, sizes)
    if leaf.shape != expected.shape:
        return Misfit.SHAPE, f"has shape {tuple(leaf.shape)} and not {tuple(expected.shape)}"
    strides = zip(leaf.shape, leaf.stride(), expected.strides, strict=True)
    if any(size > 1 and stride != former for size, stride, former in strides):
        return Misfit.STRIDES, f"has strides {leaf.stride()} and not {expected.strides}"
    return None


def _format(tensor: torch.Tensor) -> torch.memory_format:
    """Return the order in memory of a convolution's result."""
    return torch._prims_common.suggest_memory_format(tensor)


def _misfit_of_sizes(
    signature: InputSignature,
    expected: TensorSignature,
    leaf: torch.Tensor,
    sizes: list[int | None],
) -> tuple[Misfit, str] | None:
    """Check a shape with sizes that vary against the `sizes` of earlier tensors."""
    varies = dict(expected.varies)
    fixed = zip(leaf.shape, expected.shape, strict=False)
    if leaf.dim() != len(expected.shape) or any(
        size != former for axis, (size, former) in enumerate(fixed) if axis not in varies
    ):
        return Misfit.SHAPE, f"has shape {tuple(leaf.shape)} and not {tuple(expected.shape)}"
    for axis, number in expected.varies:
        size, allowed = leaf.shape[axis], signature.ranges[number]
        if not allowed.low <= size <= allowed.high:
            ends = f"{allowed.low} to {allowed.high}"
            return Misfit.SHAPE, f"has size {size} on axis {axis}, which is not among {ends}"
        if sizes[number] not in (None, size):
            earlier = f"and an earlier one has {sizes[number]}"
            return Misfit.SHAPE, f"has size {size} on axis {axis}, {earlier}"
        sizes[number] = size
    if not leaf.is_contiguous():
        return Misfit.STRIDES, "is not contiguous"
    return None


def flushes_denormals() -> bool:
    """Return whether torch takes denormal numbers for zeros in this thread."""
    tiny = torch.tensor(1e-40, dtype=torch.float32, device="cpu")
    return not float(tiny * 1)


def _misfit_of_thread(signature: InputSignature) -> tuple[Misfit, str] | None:
    keys = torch._C.DispatchKey
    included = torch._C._dispatch_tls_local_include_set()
    for key in (keys.BackendSelect, keys.ADInplaceOrView):
        included = included - torch._C.DispatchKeySet(key)
    if included.raw_repr() or torch._C._len_torch_function_stack():
        return Misfit.MODE, "a mode, a default device, a trace or a transform of torch is active"
    if torch.get_default_dtype() is not signature.default_dtype:
        return Misfit.MODE, f"torch's default dtype is not {signature.default_dtype}"
    if flushes_denormals() != signature.flushes_denormals:
        return Misfit.MODE, "torch.set_flush_denormal was set otherwise"
    if torch._C._is_any_autocast_enabled():
        return Misfit.AUTOCAST, "autocast is on"
    if torch.get_autocast_dtype("cpu") is not signature.autocast_dtype:
        return Misfit.AUTOCAST, f"the dtype of autocast is not {signature.autocast_dtype}"
    return None


def _misfit_of_gradients(
    signature: InputSignature, leaves: Sequence[Any]
) -> tuple[Misfit, str] | None:
    if torch.is_grad_enabled():
        return Misfit.GRADIENTS, (
            "gradients are on (call it within torch.no_grad() or torch.inference_mode())"
        )
    for name, expected, leaf in zip(signature.names, signature.leaves, leaves, strict=True):
        if not isinstance(expected, TensorSignature):
            continue
        if leaf.requires_grad != expected.needs_gradient:
            return Misfit.GRADIENTS, f"{name} {_needs(leaf.requires_grad)}"
        if forward_ad._current_level >= 0 and forward_ad.unpack_dual(leaf).tangent is not None:
            return Misfit.GRADIENTS, f"{name} has a tangent"
    for weight in signature.weights:
        if weight.tensor.requires_grad != weight.needs_gradient:
            return Misfit.GRADIENTS, f"weight {weight.name} {_needs(not weight.needs_gradient)}"
    return None


def _needs(needs_gradient: bool) -> str:
    return "needs a gradient" if needs_gradient else "needs no gradient any more"


def _misfit_of_net(signature: InputSignature) -> tuple[Misfit, str] | None:
    if change := net_state.change_of_net(signature.modules).says:
        return Misfit.NET, change
    if name := net_state.moved_weight(signature.weights):
        return Misfit.WEIGHT, f"weight {name} was moved, converted or reshaped"
    return None


def _misfit_of_values(
    signature: InputSignature, leaves: Sequence[Any]
) -> tuple[Misfit, str] | None:
    for name, leaf, bounds in zip(signature.names, leaves, signature.index_bounds, strict=True):
        if bounds is not None and not bool(((leaf >= bounds[0]) & (leaf <= bounds[1])).all()):
            return Misfit.VALUES, f"{name} holds numbers beyond {bounds[0]} and {bounds[1]}"
    for name, leaf, is_one in zip(signature.names, leaves, signature.filled_rows, strict=True):
        if is_one and has_empty_row([leaf], [True]):
            return Misfit.VALUES, f"{name} has a row of zeros"
    if signature.bound is not None:
        for name, leaf in zip(signature.names, leaves, strict=True):
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
                largest = min(signature.bound, torch.finfo(leaf.dtype).max)
                if not bool((leaf.abs() <= largest).all()):
                    return Misfit.VALUES, f"{name} holds NaN, or more than {signature.bound:.3g}"
    if signature.is_frozen and (name := net_state.updated_weight(signature.weights)):
        return Misfit.FROZEN, f"weight {name} was updated, and its value is frozen in"
    if name := net_state.changed_storage(signature.storages):
        return Misfit.FROZEN, f"weight {name} has other values than those that were folded in"
    return None


def _first(leaves: Any, leaf: Any) -> int:
    return next(index for index, earlier in enumerate(leaves) if earlier is leaf)


def _in_short(value: Any) -> str:
    return reprlib.repr(value) if is_plain(value) else f"a {type(value).__name__}"
