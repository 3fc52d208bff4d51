"""The user's net while a copy of it is called, which may write into it by an object that both hold.

A hook or closure that names the net, a weak reference to it and an object whose copies are itself
lead there.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from passnet.optimizer.call import effects
from passnet.optimizer.call.held_objects import OF_MODULES, held_by
from passnet.optimizer.call.values import is_dense


@dataclass(frozen=True, slots=True)
class OriginalNet:
    """What a net was before a copy of it was called.

    Args:
        net: the user's net.
        tensors: its weights and tensors that it holds, by name.
        state: of all of it.
        values: of tensors that are no parameters, by name; those of a copy serve for the others.
        contents: of its dicts and of the containers that it holds.
    """

    net: torch.nn.Module
    tensors: Mapping[str, torch.Tensor]
    state: effects.State
    values: Mapping[str, torch.Tensor]
    contents: tuple[tuple[Any, list[tuple[Any, Any]]], ...]


def remember_original(net: torch.nn.Module, tensors: Mapping[str, torch.Tensor]) -> OriginalNet:
    """Remember a net with its tensors by name."""
    containers: list[Any] = [*held_by(net, with_classes=False).containers.values()]
    for module in net.modules():
        own = vars(module)
        containers += [own, *(own[name] for name in OF_MODULES if isinstance(own.get(name), dict))]
    values = {
        name: tensor.detach().clone()
        for name, tensor in tensors.items()
        if is_dense(tensor) and not isinstance(tensor, torch.nn.Parameter)
    }
    contents = tuple((container, effects.items_of(container)) for container in containers)
    return OriginalNet(net, tensors, effects.state_of(net, tensors), values, contents)


def calls_of_original(copy: torch.nn.Module, net: torch.nn.Module) -> str | None:
    """Return the path of a function of a copy that runs a method of the net; None without one.

    Functions are not copied: `net.forward = torch.compile(net.forward)` is such a one.
    """
    own = set(map(id, net.modules()))
    for path, module in copy.named_modules():
        for name, value in vars(module).items():
            for _ in range(effects.MOST_WRAPPED):
                if id(getattr(value, "__self__", None)) in own:
                    return f"{path}.{name}".removeprefix(".")
                value = getattr(value, "__wrapped__", None)
    return None


def put_back(former: OriginalNet, copies: Mapping[str, torch.Tensor]) -> tuple[list[str], bool]:
    """Put a net back as it was; return what was changed, and whether all values are back.

    `copies` are the tensors of a copy, which has the former values where nothing wrote into it.
    """
    now = effects.state_of(former.net, former.tensors)
    shared = effects.names_of_shared(former.net)
    changed = [name for name in effects.moved(former.state, now) if name not in shared]
    if changed:
        for container, items in former.contents:
            _fill(container, items)
    written, are_all_back = effects.written(former.state, now), True
    for name in written:
        tensor, before = former.tensors[name], former.state.tensors[name]
        values = former.values.get(name, copies.get(name))
        with torch.no_grad():
            if isinstance(values, torch.Tensor) and values.shape == tensor.shape:
                tensor.detach().copy_(values)
            if not tensor.is_inference() and len(before) > effects.VERSION:
                versions = (before[effects.VERSION],)
                torch._C._autograd._unsafe_set_version_counter((tensor,), versions)
        are_all_back &= effects.state_of(former.net, {name: tensor}).tensors[name] == before
    return [*written, *changed], are_all_back


def _fill(container: Any, items: list[tuple[Any, Any]]) -> None:
    """Give a container its former items, if it has others."""
    if isinstance(container, (dict, list, deque, set)):
        effects.refill(container, items)
    elif hasattr(container, "owner"):  # slots and the like
        for name, value in items:
            if getattr(container.owner, name, None) is not value:
                setattr(container.owner, name, value)
