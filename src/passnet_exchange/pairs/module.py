"""A candidate in one file: its class or function, called on the arguments of a graph."""

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from passnet.core.records.serialise import read_json
from passnet.errors import PassError, boundary
from passnet_exchange.pairs.binding import (
    BINDING_FILE,
    CANDIDATE_FILE,
    BoundWeight,
    ModuleBinding,
)


def module_call(folder: Path, arguments: Sequence[Any]) -> Callable[..., tuple[Any, ...]]:
    """Load the candidate in a folder, and return its call as a function of a graph's arguments.

    At every call its weights are those of the call. Raises PassError if it cannot be used.
    """
    binding = read_json(folder / BINDING_FILE, ModuleBinding)
    entry = _entry(folder / CANDIDATE_FILE, binding.entry)
    if binding.init is not None:
        torch.manual_seed(binding.seed)
        with boundary(PassError, f"building {binding.entry}"):
            entry = entry(*ast.literal_eval(binding.init))
        if isinstance(entry, torch.nn.Module):
            entry = entry.eval() if binding.is_evaluated else entry
            devices = {each.device for each in arguments if isinstance(each, torch.Tensor)}
            entry = entry.to(devices.pop()) if devices else entry
    bound = _bound_weights(binding, entry, arguments)
    weights = [(own, weight.argument) for own, weight in zip(bound, binding.weights, strict=True)]
    usual = [ast.literal_eval(each) if isinstance(each, str) else None for each in binding.inputs]
    tensors = [(place, each) for place, each in enumerate(binding.inputs) if isinstance(each, int)]

    def call(*values: Any) -> tuple[Any, ...]:
        for own, number in weights:
            own.data = values[number]  # whoever holds the parameter sees the values
        inputs = usual.copy()
        for place, number in tensors:
            inputs[place] = values[number]
        outputs = entry(*inputs)
        return (outputs,) if isinstance(outputs, torch.Tensor) else tuple(flat_outputs(outputs))

    return call


def flat_outputs(outputs: Any) -> list[Any]:
    """Return the tensors and numbers in an output of tuples, lists and dicts, in order."""
    if outputs is None:
        return []
    parts = outputs.values() if isinstance(outputs, dict) else outputs
    if not isinstance(outputs, (dict, tuple, list)):
        return [outputs]
    return [value for part in parts for value in flat_outputs(part)]


def digest(tensor: torch.Tensor) -> str:
    """Return SHA-256 of a tensor's dtype, shape and bytes.

    Examples:
        >>> digest(torch.zeros(2)) == digest(torch.zeros(2)) != digest(torch.zeros(2, 1))
        True
    """
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    text = f"{tensor.dtype} {tuple(tensor.shape)}\0".encode()
    return hashlib.sha256(text + flat.numpy().tobytes()).hexdigest()


def named_tensors(module: Any) -> dict[str, torch.Tensor]:
    """Return the parameters, buffers and other tensor attributes of a module, by dotted name."""
    if not isinstance(module, torch.nn.Module):
        return {}
    named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for prefix, inner in module.named_modules():
        for name, value in vars(inner).items():
            if isinstance(value, torch.Tensor):
                named[f"{prefix}.{name}".lstrip(".")] = value
    return named


def _entry(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location("candidate", path)
    assert spec is not None and spec.loader is not None, "the name ends in .py"
    module = sys.modules["candidate"] = importlib.util.module_from_spec(spec)
    with boundary(PassError, "loading the candidate"):
        spec.loader.exec_module(module)
    if not callable(entry := getattr(module, name, None)):
        raise PassError(f"the candidate defines no {name}")
    return entry


def _bound_weights(
    binding: ModuleBinding, module: Any, arguments: Sequence[Any]
) -> list[torch.Tensor]:
    """Return the candidate's tensor for each weight: of its name, or else of its first value."""
    named = named_tensors(module)
    found: dict[BoundWeight, torch.Tensor] = {}
    for weight in binding.weights:
        own, wanted = named.get(weight.name), arguments[weight.argument]
        if own is not None and (own.shape, own.dtype) == (wanted.shape, wanted.dtype):
            found[weight] = own
    taken = {id(tensor) for tensor in found.values()}
    free = [tensor for tensor in named.values() if id(tensor) not in taken]
    digests = [digest(tensor) for tensor in free]
    missing = [weight for weight in binding.weights if weight not in found]
    for weight in missing:
        is_only = [other.digest for other in missing].count(weight.digest) == 1
        if digests.count(weight.digest) != 1 or not is_only:
            wanted = arguments[weight.argument]
            raise PassError(
                f"{binding.entry} has no {weight.name} of shape {list(wanted.shape)} and dtype "
                f"{wanted.dtype}, as the reference has, nor another weight of its value under the "
                "same seed; give it the names, shapes and order of the reference's"
            )
        found[weight] = free[digests.index(weight.digest)]
    return [found[weight] for weight in binding.weights]
