"""The state of a net, its arguments and the process, as values that can be compared."""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_leaves

MAX_DEPTH = 6
"""Containers nested deeper than this are compared by identity."""


def held(value: Any, depth: int = 0) -> Any:
    """Return the identity and the present contents of a value.

    Tensors are held by their bytes, memory, strides and count of updates; containers by their
    items; other objects by their identity.
    """
    if isinstance(value, torch.Tensor):
        return id(value), *_tensor(value)
    if depth > MAX_DEPTH:
        return id(value)
    if isinstance(value, Mapping):
        items = [(repr(key), held(item, depth + 1)) for key, item in value.items()]
        return id(value), items
    if isinstance(value, (list, tuple, set)):
        return id(value), [held(item, depth + 1) for item in value]
    if isinstance(value, (int, float, complex, str, bytes, type(None))):
        return repr(value)
    return id(value)


def _tensor(tensor: torch.Tensor) -> tuple[Any, ...]:
    if is_lazy(tensor):
        return ("uninitialised",)
    version = None if tensor.is_inference() else tensor._version
    plain = tensor.detach()
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        return repr(plain), version, tensor.requires_grad
    contents = plain.resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    data = contents.view(torch.uint8).numpy().tobytes() if contents.numel() else b""
    layout = (tuple(tensor.shape), tensor.stride(), tensor.data_ptr(), tensor.dtype)
    return data, layout, version, tensor.requires_grad, tensor.grad is None


def state(net: Any, given: Any) -> dict[str, Any]:
    """Return what an optimisation must leave: the net's, the arguments', the process's state."""
    found: dict[str, Any] = {}
    for name, module in net.named_modules() if isinstance(net, torch.nn.Module) else ():
        where = f"{name}." if name else ""
        for key, value in vars(module).items():
            if key not in ("_is_torch_compile", "_compiled_call_impl"):  # torch sets them itself
                found[f"{where}{key} of the net"] = held(value)
        methods = [(key, id(value)) for key, value in vars(type(module)).items() if callable(value)]
        found[f"the class of {name or 'the net'}"] = (type(module), methods)
    for number, leaf in enumerate(tree_leaves(given)):
        found[f"argument {number}"] = held(leaf)
    return {**found, **process_state()}


def process_state() -> dict[str, Any]:
    """Return the settings of torch and Python that an optimisation must leave."""
    legacy: Any = np.random.get_state()
    module = torch.nn.modules.module
    tiny = torch.tensor(1e-40)
    return {
        "torch's random generator": torch.get_rng_state().numpy().tobytes(),
        "numpy's random generator": (legacy[1].tobytes(), *legacy[2:]),
        "Python's random generator": random.getstate(),
        "the number of threads": torch.get_num_threads(),
        "the default dtype": torch.get_default_dtype(),
        "gradients on": torch.is_grad_enabled(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "the precision of products": torch.get_float32_matmul_precision(),
        "oneDNN": torch.backends.mkldnn.enabled,
        "denormals": float(tiny + tiny) != 0,
        "hooks of all modules": [
            held(getattr(module, name)) for name in dir(module) if name.startswith("_global_")
        ],
    }


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of what differs between two states."""
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            yield name
