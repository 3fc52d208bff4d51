"""The returned net: a backend runs the calls that fit it, the original net all others.

Backends are built from a copy, so weights take twice their memory. `served` then points the copy's
weights at the user's memory, so that a backend sees later updates.
"""

import copy
import logging
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_leaves

from passnet.errors import InputError
from passnet.optimizer.call.call_check import (
    CallCheck,
    InputSignature,
    Misfit,
    find_misfit,
    input_signature,
)
from passnet.optimizer.call.compiled_check import call_check, num_watched_bytes
from passnet.optimizer.call.forwarding import OfTheNet, forwarding_class
from passnet.optimizer.call.net_call import (
    BuiltBackend,
    FunctionNet,
    as_module,
    leaf_in_words,
    name_of,
    state_tensors,
    weights_of,
)
from passnet.optimizer.call.net_state import attributes_of, is_moved, remember_weights
from passnet.optimizer.call.values import OutputStructure, nested

Arguments: TypeAlias = tuple[Sequence[Any], Mapping[str, Any]]
"""The arguments of a call, by position and by name."""

_log = logging.getLogger("passnet")

_ADVICE = {
    Misfit.NET: "; put it back, or give the net to passnet.optimize again",
    Misfit.WEIGHT: "; give the net to passnet.optimize again",
    Misfit.FROZEN: "; give the net to passnet.optimize again",
    Misfit.VALUES: "",
    Misfit.MODE: "",
    Misfit.AUTOCAST: "",
    Misfit.GRADIENTS: "",
}
"""Advice about a misfit that is not of the inputs."""

_OF_THE_NET = (
    *("named_modules", "state_dict", "load_state_dict", "_load_from_state_dict"),
    *("_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks"),
    *("_load_state_dict_post_hooks", "_non_persistent_buffers_set"),
)
_BUSY = max(Misfit) + 1
_AS_IT_WAS = "the net runs as it was"


@dataclass(frozen=True, slots=True)
class _CheckedBackend:
    """A built backend with its check and lock."""

    built: BuiltBackend
    signature: InputSignature
    check: CallCheck
    lock: threading.Lock
    unflatten: Callable[[Sequence[Any]], Any]
    instead: "_CheckedBackend | None"


class FastNet(torch.nn.Module):
    """A net whose calls a backend runs where they fit it, and the original net elsewhere.

    In everything but calls it is the net: its state, modules, attributes and mode are the net's.
    One thread at a time uses a backend; another one meanwhile runs the original net. Of two
    backends for the same input signature the last is tried first. With `warns` it logs, once for
    each reason, why a call fits no backend.

    Raises:
        InputError: a backend has inputs that cannot be checked, or weights that are not the net's;
            a function holds weights.
    """

    original_net: torch.nn.Module
    _backends: tuple[_CheckedBackend, ...]
    _why_none: str
    _warned: set[int | str]
    _warns: bool
    _parameters = OfTheNet()
    _buffers = OfTheNet()
    _modules = OfTheNet()

    def __new__(cls, net: Any = None, *_: Any, **__: Any) -> Self:
        """Return an instance of a class with the methods of the net's class."""
        net = _unwrapped(net)
        if not isinstance(net, torch.nn.Module) or isinstance(net, FunctionNet):
            return super().__new__(cls)
        made: Self = super().__new__(forwarding_class(cls, net, FastNet._drop_moved))
        return made

    def __init__(
        self, net: Callable[..., Any], backends: Sequence[BuiltBackend] = (), warns: bool = True
    ) -> None:
        super().__init__()
        module = as_module(_unwrapped(net))
        own = {
            "original_net": module,
            # the very methods and hooks of the net, so that its names and state are the net's
            **{name: getattr(module, name) for name in _OF_THE_NET},
            "_backends": tuple(_checked(module, built) for built in reversed(backends)),
            "_why_none": "it has no backends",
            "_warned": set(),
            "_warns": warns,
        }
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run a call by the first backend that it fits, or by the original net."""
        if torch.compiler.is_compiling():
            return self.original_net(*args, **kwargs)
        misfit = 0
        for first in self._backends:
            backend, tensors = first, first.check(args, kwargs)
            if isinstance(tensors, int) and tensors >= Misfit.VALUES and first.instead:
                if self._warns and tensors not in self._warned:
                    self._warn(tensors, args, kwargs, f"{first.instead.built.engine} runs it")
                backend, tensors = first.instead, first.instead.check(args, kwargs)
            if isinstance(tensors, int):
                misfit = max(misfit, tensors)
            elif not backend.lock.acquire(blocking=False):
                misfit = _BUSY
            else:
                try:
                    outputs = backend.built.run(tensors)
                except Exception as error:  # noqa: BLE001 (foreign code; the net raises its own)
                    text = str(error).partition("\n")[0]  # traces of C++ follow
                    engine = backend.built.engine
                    self._warn_of(engine, f"{engine} failed with {type(error).__name__}: {text}")
                    break
                finally:
                    backend.lock.release()
                if first is not self._backends[0]:
                    later = tuple(other for other in self._backends if other is not first)
                    object.__setattr__(self, "_backends", (first, *later))
                return backend.unflatten(outputs)
        else:
            if self._warns and misfit not in self._warned:
                self._warn(misfit, args, kwargs)
        return self.original_net(*args, **kwargs)

    @property
    def built_backends(self) -> tuple[BuiltBackend, ...]:
        """The backends, the last used one first."""
        return tuple(backend.built for backend in self._backends)

    @property
    def training(self) -> bool:
        """The mode of the net."""
        return self.original_net.training

    @training.setter
    def training(self, mode: bool) -> None:
        if "original_net" in self.__dict__:  # not while Module.__init__ sets it
            self.original_net.training = mode

    def _warn(
        self, misfit: int, args: tuple[Any, ...], kwargs: dict[str, Any], instead: str = _AS_IT_WAS
    ) -> None:
        """Log once why no backend fits: of several reasons the latest in the order of checks."""
        if not self._backends:
            return self._warn_of(0, self._why_none, "; give it to passnet.optimize")
        if misfit == _BUSY:
            return self._warn_of(misfit, "another thread is within its backend")
        misfits = (find_misfit(backend.signature, args, kwargs) for backend in self._backends)
        reasons = [reason for reason in misfits if reason]
        if reasons:  # a moment later, the call may fit
            kind, sentence = max(reasons)
            advice = _ADVICE.get(kind, "; give such inputs to passnet.optimize too")
            self._warn_of(kind, sentence, advice, instead)
        self._warned.add(misfit)
        return None

    def _warn_of(
        self, reason: int | str, sentence: str, advice: str = "", instead: str = _AS_IT_WAS
    ) -> None:
        if reason in self._warned:
            return
        self._warned.add(reason)
        name = type(self.original_net).__name__
        _log.warning("%s: %s: %s%s", name, sentence, instead, advice)

    def __copy__(self) -> "FastNet":
        return self._without_backends(self.original_net)

    def __deepcopy__(self, memo: dict[int, Any]) -> "FastNet":
        bare = self._without_backends(copy.deepcopy(self.original_net, memo))
        memo[id(self)] = bare
        return bare

    def _without_backends(self, net: torch.nn.Module) -> "FastNet":
        bare = FastNet(net, (), self._warns)
        reason = "backends are not copied" if self._backends else self._why_none
        object.__setattr__(bare, "_why_none", reason)
        return bare

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        if isinstance(self.original_net, FunctionNet):
            return itemgetter(0), ((self.original_net.function,),)
        return self.original_net.__reduce_ex__(protocol)

    def __dir__(self) -> list[str]:
        return dir(self.original_net)

    def __repr__(self) -> str:
        lines = [f"  {backend.built.engine}: {_in_words(backend)}\n" for backend in self._backends]
        return f"FastNet with {len(lines)} backends:\n{''.join(lines)}of {self.original_net!r}"

    # From here on, all is the net's.

    def __getattr__(self, name: str) -> Any:
        if "original_net" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.original_net, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or hasattr(type(self), name):
            object.__setattr__(self, name, value)
        else:
            setattr(self.original_net, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.original_net, name)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """Move or convert the net (`to`, `half`, `cuda`), and drop backends that this breaks."""
        self.original_net._apply(fn, recurse)
        self._drop_moved()
        return self

    def _drop_moved(self) -> None:
        """Drop backends whose weights were moved or converted."""
        in_place = tuple(
            backend
            for backend in self._backends
            if not is_moved(self.original_net, backend.signature.weights)
        )
        if len(in_place) < len(self._backends):
            object.__setattr__(self, "_backends", in_place)
            object.__setattr__(self, "_why_none", "its weights were moved or converted")
            self._warn(0, (), {})

    def train(self, mode: bool = True) -> Self:
        """Set the mode of the net; in training mode the original net runs."""
        self.original_net.train(mode)
        return self

    def apply(self, fn: Callable[[torch.nn.Module], Any]) -> Self:
        """Call a function with each module of the net."""
        self.original_net.apply(fn)
        return self


def _unwrapped(net: Any) -> Any:
    """Return the original net of one that was optimised before, or the net itself."""
    return net.original_net if isinstance(net, FastNet) else net


def _checked(net: torch.nn.Module, built: BuiltBackend) -> _CheckedBackend:
    signature = input_signature(net, built)
    check, unflatten = call_check(signature), _unflatten(built.structure)
    instead = None if built.instead is None else _checked(net, built.instead)
    return _CheckedBackend(built, signature, check, threading.Lock(), unflatten, instead)


def _unflatten(structure: OutputStructure) -> Callable[[Sequence[Any]], Any]:
    """Return a function that nests outputs, without `tree_unflatten` (microseconds) if possible."""
    spec = structure.spec
    if structure.has_tensors_alone and spec.is_leaf():
        return itemgetter(0)
    is_flat = all(child.is_leaf() for child in spec.children())
    if structure.has_tensors_alone and spec.type in (tuple, list) and is_flat:
        return spec.type
    return partial(nested, structure)


def _in_words(backend: _CheckedBackend) -> str:
    """Describe the inputs of a backend, and how folded weights are checked."""
    words = ", ".join(map(leaf_in_words, backend.built.leaves))
    if not backend.built.is_frozen:
        return words
    if not backend.built.compares:
        return f"{words} (frozen)"
    num_bytes = sum(storage.contents.numel() for storage in backend.signature.storages)
    share = num_watched_bytes(backend.check) / max(1, num_bytes)
    watched = f", {share:.0%} of their bytes watched by the kernel" if share else ""
    return f"{words} (weights compared{watched})"


def copied(
    net: Callable[..., Any], calls: Sequence[Arguments]
) -> tuple[Callable[..., Any], Sequence[Arguments]]:
    """Copy a net and the arguments of some calls, tensors shared among them included.

    Functions are not copied, and neither are the objects that a closure or a hook holds.
    InputError where something cannot be copied, or changes of a weight cannot be seen.
    """
    net, name = _unwrapped(net), name_of(net)
    module = as_module(net)
    weights = weights_of(module)
    if lazy := [name for name, weight in weights.items() if is_lazy(weight)]:
        raise InputError(f"weight {lazy[0]} has no values yet; call {name} once first")
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
        with torch.no_grad():  # or weights of a scripted module get a history
            return copy.deepcopy(value, memo)
    except Exception as cause:
        raise InputError(
            f"{name} cannot be copied ({type(cause).__name__}: {cause}); passnet works on a copy, "
            "so give what copy.deepcopy can copy"
        ) from cause


def served(built: BuiltBackend, net: torch.nn.Module) -> BuiltBackend:
    """Return a backend of a copy as one of the user's net, with shared weights."""
    own = state_tensors(net)
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
    module = as_module(_unwrapped(net))
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
