"""A copy of a net and of its arguments, so that the user's own stay exactly as they are.

Backends are built from the copy, which is all that runs. While they are built and timed, weights
take twice their memory. `served` then points the copy's weights at the memory of the user's, which
frees the copy's and lets a backend see later updates.
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

    Functions are not copied, hence neither is what a closure or a hook holds.

    Raises:
        InputError: a net or an argument cannot be copied, or a weight is of a kind whose changes
            cannot be seen.
    """
    module, name = as_module(net), name_of(net)
    weights = weights_of(module)
    remember_weights(module, weights)
    attributes = [value for each in module.modules() for value in vars(each).values()]
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


def served(entry: BuiltBackend, net: torch.nn.Module) -> BuiltBackend:
    """Return an entry that was built from a copy, for the user's net and in its weights' memory."""
    own = weights_of(net)
    weights = {name: own[name] for name in entry.weights if name in own}
    for name, weight in weights.items():
        entry.weights[name].data = weight.data
    if entry.bind is not None:
        entry.bind(weights)
    instead = None if entry.instead is None else served(entry.instead, net)
    return replace(
        entry, weights=weights, instead=instead, attributes=attributes_of(entry.net), net=None
    )


def fast_net(net: Callable[..., Any], entries: Sequence[BuiltBackend], warns: bool) -> FastNet:
    """Return the user's net with entries that were built from its copy."""
    module = as_module(net)
    return FastNet(module, [served(entry, module) for entry in entries], warns)


@contextmanager
def process_state_kept(num_threads: int | None = None) -> Iterator[None]:
    """Run with a number of torch threads; put these and all random generators back at the end."""
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
