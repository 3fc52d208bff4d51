"""A copy of a net and its arguments, so that the user's own stay exactly as they are.

Backends are built from the copy, so weights take twice their memory. `served` then points the
copy's weights at the user's memory, which a backend follows through later updates.
"""

import copy
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from passnet.errors import InputError
from passnet.optimizer.call.built_backend import BuiltBackend
from passnet.optimizer.call.fast_net import FastNet
from passnet.optimizer.call.net_call import as_module, name_of, weights_of
from passnet.optimizer.call.net_state import attributes_of, remember_weights

Arguments: TypeAlias = tuple[Sequence[Any], Mapping[str, Any]]
"""The arguments of a call, by position and by name."""


def copied(
    net: Callable[..., Any], calls: Sequence[Arguments]
) -> tuple[Callable[..., Any], Sequence[Arguments]]:
    """Copy a net and the arguments of some calls, tensors shared among them included.

    Functions are not copied, and neither are the objects that a closure or a hook holds.

    Raises:
        InputError: a net or an argument cannot be copied, or changes of a weight cannot be seen.
    """
    module, name = as_module(net), name_of(net)
    weights = weights_of(module)
    remember_weights(module, weights)
    attributes = [value for part in module.modules() for value in vars(part).values()]
    memo: dict[int, Any] = {}
    net_copy = _copy(net, name, [*weights.values(), *attributes], memo)
    return net_copy, _copy(list(calls), f"the arguments of {name}", tree_leaves(calls), memo)


def _copy(value: Any, name: str, tensors: Iterable[Any], memo: dict[int, Any]) -> Any:
    try:
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor) and not tensor.is_leaf:  # deepcopy refuses these
                memo[id(tensor)] = copy.deepcopy(tensor.detach(), memo).requires_grad_()
        return copy.deepcopy(value, memo)
    except Exception as cause:
        raise InputError(
            f"{name} cannot be copied ({type(cause).__name__}: {cause}); passnet works on a copy, "
            "so give what copy.deepcopy can copy"
        ) from cause


def served(built: BuiltBackend, net: torch.nn.Module) -> BuiltBackend:
    """Return a backend of a copy as one of the user's net, with shared weights."""
    own = weights_of(net)
    weights = {name: own[name] for name in built.weights if name in own}
    for name, weight in weights.items():
        built.weights[name].data = weight.data
    if built.bind is not None:
        built.bind(weights)
    instead = None if built.instead is None else served(built.instead, net)
    return replace(
        built, weights=weights, instead=instead, attributes=attributes_of(built.net), net=None
    )


def fast_net(
    net: Callable[..., Any], built_backends: Sequence[BuiltBackend], warns: bool
) -> FastNet:
    """Return the user's net with backends that were built from its copy."""
    module = as_module(net)
    return FastNet(module, [served(built, module) for built in built_backends], warns)


@contextmanager
def process_state_kept(num_threads: int | None = None) -> Iterator[None]:
    """Set the number of torch threads; restore it and all random generators at the end."""
    threads = torch.get_num_threads()
    generators = random.getstate(), np.random.get_state()
    cards = range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0)
    torch.set_num_threads(num_threads or threads)
    try:
        with torch.random.fork_rng(cards):
            yield
    finally:
        torch.set_num_threads(threads)
        random.setstate(generators[0])
        np.random.set_state(generators[1])
