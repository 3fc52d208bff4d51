"""What backends by other runtimes than torch share: the tensors that they take, and files.

They take the net from `torch.export` with its weights folded in, and save it in a file, in a child
process. They read inputs in torch's memory, as numpy arrays.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import torch

from passnet.errors import BackendError
from passnet.optimizer.call.call_check import flushes_denormals
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.compare.fresh_values import fresh_tensors

DTYPES = {
    *(torch.float64, torch.float32, torch.float16, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
}
"""The dtypes that tensors of a call may have: numpy has no bfloat16."""


Rounding: TypeAlias = Callable[[Path], None]
"""Round numbers in a net's file in a folder."""

SAMPLES_FILE, NUM_SAMPLES = "samples.pt", 8
"""Arguments by which a child chooses scales: the example's, and so many sets like them."""


def save_samples(call: NetCall, folder: Path) -> None:
    """Save samples of arguments for a child."""
    samples = [fresh_tensors(call, seed) for seed in range(NUM_SAMPLES)]
    torch.save([call.tensors(), *samples], folder / SAMPLES_FILE)


def read_samples(folder: Path) -> list[list[torch.Tensor]]:
    """Read the samples of arguments."""
    samples: list[list[torch.Tensor]] = torch.load(folder / SAMPLES_FILE, weights_only=True)
    return samples


def check_call(call: NetCall, name: str) -> None:
    """Refuse calls with tensors that no runtime takes, by a BackendError."""
    if flushes_denormals():
        raise BackendError("torch.set_flush_denormal is on, which runtimes switch off")
    for tensor in (*call.tensors(), *call.outputs):
        if tensor.dtype not in DTYPES:
            dtype = str(tensor.dtype).removeprefix("torch.")
            raise BackendError(f"{name} takes and returns no {dtype}")
    for tensor in all_tensors(call):
        if tensor.device.type != "cpu":
            raise BackendError(f"{name} runs on the processor, and a tensor is on {tensor.device}")


def all_tensors(call: NetCall) -> list[torch.Tensor]:
    """Return arguments, outputs and weights."""
    return [*call.tensors(), *call.outputs, *call.weights.values()]


def saved_file(call: NetCall, path: Path, name: str) -> Path:
    """Return the file of a net that a child saved; BackendError where it is gone."""
    check_call(call, name)
    if not path.is_file():
        raise BackendError(f"{path} is missing; optimise the net again")
    return path


def array_of(tensor: torch.Tensor) -> Any:
    """Return a numpy array of the same memory, or a copy if the tensor is not contiguous."""
    return tensor.detach().contiguous().numpy()


def input_name(number: int | str) -> str:
    """Return the name of an input by its position among the tensors of a call."""
    return f"passnet_input_{number}"


def is_own(name: str) -> bool:
    """Return whether a name is of `input_name`."""
    return name.startswith(input_name(""))


def position_of(name: str) -> int:
    """Return the position of an input; runtimes drop unused ones.

    >>> position_of(input_name(2))
    2
    """
    return int(name.removeprefix(input_name("")))
