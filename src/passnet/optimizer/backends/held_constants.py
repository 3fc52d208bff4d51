"""Constants of an exported program that are tensors of the net."""

from typing import Any

import torch
from torch.export import ExportedProgram

from passnet.errors import BackendError
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.call.values import is_dense


def held_constants(
    call: NetCall, program: ExportedProgram
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the constants of a program that are its own, and the names of weights that others are:
    tensors in lists, dicts and objects of the net, which may be updated.

    Raises:
        BackendError: a constant is a part of such a weight.
    """
    own: dict[str, Any] = {}
    names: dict[str, str] = {}
    for constant, value in program.constants.items():
        weight = next((n for n, w in call.weights.items() if _share_memory(w, value)), None)
        if weight is None:
            own[constant] = value
        elif _form(call.weights[weight]) == _form(value):
            names[constant] = weight
        else:
            raise BackendError(f"a program would keep a part of {weight} as it is now")
    return own, names


def _share_memory(weight: torch.Tensor, value: Any) -> bool:
    both = isinstance(value, torch.Tensor) and is_dense(value) and is_dense(weight)
    return both and weight.untyped_storage().data_ptr() == value.untyped_storage().data_ptr() != 0


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset()
