"""Whether a call of a net is of the form that an entry was built for, and if not, why.

A call fits where its arguments are nested like those of the example, its constants are equal, and
its tensors are plain ones of the same dtype, device, layout, shape and strides (of dims larger than
1); where nothing asks more of torch than to compute (a mode, a transform of functorch, autocast,
gradients); and where the net is as it was, which `net_state` tells.
"""

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import torch
from torch.autograd import forward_ad
from torch.utils._pytree import (
    TreeSpec,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_unflatten,
)

from passnet.errors import InputError
from passnet.optimizer.call import net_state
from passnet.optimizer.call.built_backend import BuiltBackend


class Misfit(IntEnum):
    """Why a call does not fit, in the order in which one looks; call_check.cpp has the same."""

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
"""Takes the arguments of a call; returns its tensors, in order, or the number of a `Misfit`."""


@dataclass(frozen=True, slots=True)
class TensorSignature:
    """What a tensor of a call must be like."""

    dtype: torch.dtype
    device: torch.device
    keys: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InputSignature:
    """What a call must be like for an entry.

    Args:
        args_spec: how positional and named arguments are nested.
        leaves: the example's constants, and forms in place of its tensors.
        examples: the example's leaves as they are.
        same_as: for each leaf the first one that is the same object, itself or an earlier one.
        names: for each leaf what it is called in a sentence.
        ignored_keys: dispatch keys of which tensors may differ: whether they are inference tensors.
        default_dtype: torch's, when the entry was built.
        modules: the net's modules as they were.
        weights: the entry's weights as they were.
        is_frozen: whether these must not have been updated.
        storages: those of weights that must hold what they did.
        bound: the largest magnitude of a float in the arguments; None for any.
        index_bounds: for each leaf the smallest and largest whole number that it may hold, None
            where it may be any.
    """

    args_spec: TreeSpec
    leaves: tuple[Any, ...]
    examples: tuple[Any, ...]
    same_as: tuple[int, ...]
    names: tuple[str, ...]
    ignored_keys: int
    default_dtype: torch.dtype
    modules: tuple[net_state.RememberedDict, ...]
    weights: tuple[net_state.RememberedWeight, ...]
    is_frozen: bool
    storages: tuple[net_state.RememberedStorage, ...] = ()
    bound: float | None = None
    index_bounds: tuple[tuple[int, int] | None, ...] = ()


def input_signature(net: torch.nn.Module, entry: BuiltBackend) -> InputSignature:
    """Return what calls must be like for a backend that was built of this net as it is now.

    Raises:
        InputError: the example holds what cannot be checked, or the weights are not the net's.
    """
    example = tree_unflatten(list(entry.leaves), entry.args_spec)
    names = tuple(_name(path) for path, _ in tree_flatten_with_path(example)[0])
    with torch.inference_mode(False):
        plain = torch._C._dispatch_keys(torch.empty(0)).raw_repr()
    with torch.inference_mode():
        ignored_keys = plain & ~torch._C._dispatch_keys(torch.empty(0)).raw_repr()
    leaves: list[Any] = []
    for name, leaf in zip(names, entry.leaves, strict=True):
        if _is_dense(leaf):
            keys = torch._C._dispatch_keys(leaf).raw_repr() & ~ignored_keys
            leaves.append(TensorSignature(leaf.dtype, leaf.device, keys, leaf.shape, leaf.stride()))
        elif net_state.is_plain(leaf):
            leaves.append(leaf)
        else:
            raise InputError(
                f"{name} is {type(leaf).__name__}; only plain dense tensors, numbers, strings and "
                "None, in tuples, lists and dicts, can be told from others in microseconds"
            )
    same_as = tuple(_first(entry.leaves, leaf) for leaf in entry.leaves)
    weights = net_state.remember_weights(net, entry.weights)
    return InputSignature(
        entry.args_spec,
        tuple(leaves),
        tuple(entry.leaves),
        same_as,
        names,
        ignored_keys,
        torch.get_default_dtype(),
        net_state.remember_net(net, entry.attributes),
        weights,
        entry.is_frozen and not entry.compares,
        net_state.remember_storages(weights) if entry.compares else (),
        entry.bound,
        _by_leaf(entry),
    )


def _by_leaf(entry: BuiltBackend) -> tuple[tuple[int, int] | None, ...]:
    """Return the bounds of whole numbers, by leaf instead of by tensor."""
    bounds = iter(entry.index_bounds)
    return tuple(
        next(bounds, None) if isinstance(leaf, torch.Tensor) else None for leaf in entry.leaves
    )


def python_check(form: InputSignature) -> CallCheck:
    """Return the check in Python."""

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor] | int:
        found = find_misfit(form, args, kwargs)
        if found is not None:
            return int(found[0])
        return [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)]

    return check


def find_misfit(
    form: InputSignature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Misfit, str] | None:
    """Return why a call does not fit, as the beginning of a sentence too, or None where it does."""
    if found := _misfit_of_thread(form):
        return found
    leaves, spec = tree_flatten((args, kwargs))
    if spec != form.args_spec:
        return Misfit.NESTING, "the inputs are other ones, or nested or ordered otherwise"
    for index, (name, expected, leaf) in enumerate(
        zip(form.names, form.leaves, leaves, strict=True)
    ):
        if not isinstance(expected, TensorSignature):
            if not net_state.is_same(form.examples[index], leaf):
                return Misfit.CONSTANT, f"{name} is {_in_short(leaf)} and not {_in_short(expected)}"
        elif found := _misfit_of_tensor(form, expected, leaf):
            return found[0], f"{name} {found[1]}"
        elif (first := _first(leaves, leaf)) != form.same_as[index]:
            if first == index:
                return Misfit.SAME, f"{name} is not the same tensor as an earlier one"
            return Misfit.SAME, f"{name} is the same tensor as {form.names[first]}"
        elif leaf.device.type != "cpu" and leaf.data_ptr() % 16:
            return Misfit.ADDRESS, f"{name} does not begin at a multiple of 16 bytes"
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return (
        _misfit_of_gradients(form, tensors)
        or _misfit_of_net(form)
        or _misfit_of_values(form, leaves)
    )


def can_be_bounded(tensor: torch.Tensor) -> bool:
    """Whether the magnitudes of a tensor can be looked at in each call: it is not of floats, or of
    usual ones, one after the other in the memory of the processor.
    """
    if not tensor.is_floating_point():
        return not tensor.is_complex()
    is_usual = tensor.dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    return is_usual and tensor.device.type == "cpu" and is_dense_in_memory(tensor)


def can_be_within(tensor: torch.Tensor) -> bool:
    """Whether the whole numbers of a tensor can be looked at in each call: they are of 32 or 64
    bits, one after the other in the memory of the processor.
    """
    is_usual = tensor.dtype in (torch.int32, torch.int64)
    return is_usual and tensor.device.type == "cpu" and is_dense_in_memory(tensor)


def is_dense_in_memory(tensor: torch.Tensor) -> bool:
    """Return whether a tensor's elements fill the memory from its first to its last, each once."""
    expected = 1
    dims = sorted(zip(tensor.stride(), tensor.shape, strict=True))
    for stride, size in dims:
        if size > 1:
            if stride != expected:
                return False
            expected *= size
    return True


def misfit_of_modules(form: InputSignature) -> int:
    """Return the misfit of the net's modules alone, or 0."""
    return Misfit.NET if net_state.change_of_net(form.modules) else 0


def _misfit_of_tensor(
    form: InputSignature, expected: TensorSignature, leaf: Any
) -> tuple[Misfit, str] | None:
    if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
        return Misfit.KIND, f"is {type(leaf).__name__} and not a plain tensor"
    if leaf.dtype is not expected.dtype:
        return Misfit.DTYPE, f"has dtype {leaf.dtype} and not {expected.dtype}"
    if leaf.device != expected.device:
        return Misfit.DEVICE, f"is on {leaf.device} and not on {expected.device}"
    if torch._C._dispatch_keys(leaf).raw_repr() & ~form.ignored_keys != expected.keys:
        return Misfit.LAYOUT, "is not laid out as plain numbers (sparse, conjugated, nested)"
    if leaf.shape != expected.shape:
        return Misfit.SHAPE, f"has shape {tuple(leaf.shape)} and not {tuple(expected.shape)}"
    for size, stride, wanted in zip(leaf.shape, leaf.stride(), expected.strides, strict=True):
        if size > 1 and stride != wanted:
            return Misfit.STRIDES, f"has strides {leaf.stride()} and not {expected.strides}"
    return None


def _misfit_of_thread(form: InputSignature) -> tuple[Misfit, str] | None:
    keys = torch._C.DispatchKey
    included = torch._C._dispatch_tls_local_include_set()
    for key in (keys.BackendSelect, keys.ADInplaceOrView):
        included = included - torch._C.DispatchKeySet(key)
    if included.raw_repr() or torch._C._len_torch_function_stack():
        return Misfit.MODE, "a mode, a default device, a trace or a transform of torch is active"
    if torch.get_default_dtype() is not form.default_dtype:
        return Misfit.MODE, f"torch's default dtype is not {form.default_dtype}"
    if torch._C._is_any_autocast_enabled():
        return Misfit.AUTOCAST, "autocast is on"
    return None


def _misfit_of_gradients(
    form: InputSignature, tensors: list[torch.Tensor]
) -> tuple[Misfit, str] | None:
    if torch.is_grad_enabled():
        weights = [weight.tensor for weight in form.weights]
        if any(tensor.requires_grad for tensor in [*tensors, *weights]):
            return Misfit.GRADIENTS, (
                "gradients are on and an input or a weight needs one (call it within "
                "torch.no_grad() or torch.inference_mode())"
            )
    if forward_ad._current_level >= 0 and any(
        forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors
    ):
        return Misfit.GRADIENTS, "an input has a tangent"
    return None


def _misfit_of_net(form: InputSignature) -> tuple[Misfit, str] | None:
    if change := net_state.change_of_net(form.modules):
        return Misfit.NET, change
    if name := net_state.moved_weight(form.weights):
        return Misfit.WEIGHT, f"weight {name} was moved or given another form"
    return None


def _misfit_of_values(form: InputSignature, leaves: Sequence[Any]) -> tuple[Misfit, str] | None:
    for name, leaf, bounds in zip(form.names, leaves, form.index_bounds, strict=True):
        if bounds is not None and not bool(((leaf >= bounds[0]) & (leaf <= bounds[1])).all()):
            return Misfit.VALUES, f"{name} holds numbers beyond {bounds[0]} and {bounds[1]}"
    if form.bound is not None:
        for name, leaf in zip(form.names, leaves, strict=True):
            is_float = isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
            if is_float and not _is_within(leaf, form.bound):
                return Misfit.VALUES, f"{name} holds NaN, or more than {form.bound:.3g}"
    if form.is_frozen and (name := net_state.updated_weight(form.weights)):
        return Misfit.FROZEN, f"weight {name} was updated, and its value is frozen in"
    if name := net_state.changed_storage(form.storages):
        return Misfit.FROZEN, f"weight {name} has other values than those that were folded in"
    return None


def _is_within(tensor: torch.Tensor, bound: float) -> bool:
    return bool((tensor.abs() <= min(bound, torch.finfo(tensor.dtype).max)).all())


def _is_dense(leaf: Any) -> bool:
    return (
        type(leaf) in (torch.Tensor, torch.nn.Parameter)
        and leaf.layout is torch.strided
        and not leaf.is_nested
    )


def _first(leaves: Any, leaf: Any) -> int:
    return next(index for index, each in enumerate(leaves) if each is leaf)


def _name(path: tuple[Any, ...]) -> str:
    """Return what a leaf of (args, kwargs) is called: "input 1", "input mask", "input 2[0]"."""
    where, which = path[0].idx, path[1]
    return f"input {which.key if where else which.idx + 1}{keystr(path[2:])}"


def _in_short(value: Any) -> str:
    return reprlib.repr(value) if net_state.is_plain(value) else f"a {type(value).__name__}"
