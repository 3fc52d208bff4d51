"""The dispatch of calls to the backends that they fit, and warnings about all other calls."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any

import torch

from passnet.optimizer.call.call_check import (
    CallCheck,
    InputSignature,
    Misfit,
    find_misfit,
    input_signature,
)
from passnet.optimizer.call.compiled_check import call_check, num_watched_bytes
from passnet.optimizer.call.net_call import BuiltBackend, leaf_in_words, name_of
from passnet.optimizer.call.net_state import is_moved
from passnet.optimizer.call.sizes import CallSizes, nearest, sizes_of
from passnet.optimizer.call.values import OutputStructure, nested

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

NO_BACKEND = object()
"""The sign of a call that the net itself runs."""

MAX_SIZES = 4096
"""Sizes of calls that are remembered."""

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
    by_size: Sequence[tuple[CallSizes, "_CheckedBackend | None"]] = ()
    known_sizes: dict[CallSizes, "_CheckedBackend | None"] = field(default_factory=dict)

    def at_size(self, tensors: Sequence[torch.Tensor]) -> "_CheckedBackend | None":
        """Return the backend that is fastest for the sizes of a call; None for eager torch."""
        sizes = sizes_of(self.built.ranges, tensors)
        if sizes not in self.known_sizes:
            if len(self.known_sizes) >= MAX_SIZES:
                self.known_sizes.clear()
            number = nearest(sizes, [measured for measured, _ in self.by_size])
            self.known_sizes[sizes] = self.by_size[number][1]
        return self.known_sizes[sizes]


class Dispatch:
    """The backends of a net, and warnings about calls that fit none.

    One thread at a time uses a backend; another one meanwhile runs the net. Of two backends for the
    same input signature the last is tried first. With `warns` it logs, once for each reason, why a
    call fits no backend. `methods` of the returned net take the place of the net's own.

    Raises:
        InputError: a backend has inputs that cannot be checked, or weights that are not the net's.
    """

    def __init__(
        self, net: torch.nn.Module, backends: Sequence[BuiltBackend] = (), warns: bool = True
    ) -> None:
        self.net, self._checked_net, self._warns = net, net, warns
        self._backends = tuple(_checked(net, built) for built in reversed(backends))
        self._why_none = "it has no backends"
        self._warned: set[int | str] = set()
        self.to_settle: dict[int, _CheckedBackend] = {}
        self.methods: Mapping[str, Callable[..., Any]] = {}

    @property
    def built_backends(self) -> tuple[BuiltBackend, ...]:
        """The backends, the last used one first."""
        return tuple(backend.built for backend in self._backends)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call by the first backend that it fits; return NO_BACKEND where it fits none."""
        misfit = 0
        if self.to_settle:  # a call before may have failed
            self.to_settle.pop(threading.get_ident(), None)
        for first in self._backends:
            backend, tensors = first, first.check(args, kwargs)
            if first.built.keeps_values and not isinstance(tensors, int):
                self.to_settle[threading.get_ident()] = first
                break  # the net itself sets what its first call keeps
            if first.by_size and not isinstance(tensors, int):
                at_size = first.at_size(tensors)
                if at_size is None:
                    break  # eager torch is the fastest
                if at_size.check is not first.check:
                    backend, tensors = at_size, at_size.check(args, kwargs)
            if isinstance(tensors, int) and tensors >= Misfit.VALUES and backend.instead:
                if self._warns and tensors not in self._warned:
                    self._warn(tensors, args, kwargs, f"{backend.instead.built.engine} runs it")
                backend, tensors = backend.instead, backend.instead.check(args, kwargs)
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
                    self._backends = (first, *later)
                return backend.unflatten(outputs)
        else:
            if self._warns and misfit not in self._warned:
                self._warn(misfit, args, kwargs)
        return NO_BACKEND

    def settle(self) -> None:
        """Take the net as its own call has left it, if that was the first of a backend's."""
        first = self.to_settle.pop(threading.get_ident(), None)
        if first is None or all(first is not each for each in self._backends):
            return
        settled = _checked(self._checked_net, _settled(first.built))
        self._backends = tuple(settled if each is first else each for each in self._backends)

    def warn_of_copy(self) -> None:
        """Log once that a copy of the net has no backends."""
        if self._backends:
            self._warn_of("copy", "backends are not copied", "; give it to passnet.optimize")

    def in_words(self) -> str:
        """Describe the backends, a line each."""
        return "".join(f"  {b.built.engine}: {_in_words(b)}\n" for b in self._backends)

    def drop_moved(self) -> None:
        """Drop backends whose weights were moved or converted."""
        in_place = tuple(
            backend
            for backend in self._backends
            if not is_moved(self._checked_net, backend.signature.weights)
        )
        if len(in_place) < len(self._backends):
            self._backends = in_place
            self._why_none = "its weights were moved or converted"
            self._warn(0, (), {})

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
            self._warn_of(sentence if kind == Misfit.NET else kind, sentence, advice, instead)
        if misfit != Misfit.NET:  # of which there are many kinds, each said once
            self._warned.add(misfit)
        return None

    def _warn_of(
        self, reason: int | str, sentence: str, advice: str = "", instead: str = _AS_IT_WAS
    ) -> None:
        if reason in self._warned:
            return
        self._warned.add(reason)
        _log.warning("%s: %s: %s%s", name_of(self.net), sentence, instead, advice)


def _checked(net: torch.nn.Module, built: BuiltBackend) -> _CheckedBackend:
    signature = input_signature(net, built)
    check, unflatten = call_check(signature), _unflatten(built.structure)
    instead = None if built.instead is None else _checked(net, built.instead)
    first = _CheckedBackend(built, signature, check, threading.Lock(), unflatten, instead)
    checked = {built.engine: first, **({instead.built.engine: instead} if instead else {})}
    by_size: list[tuple[CallSizes, _CheckedBackend | None]] = []
    for sizes, other in built.by_size:
        if other is not None and other.engine not in checked:
            checked[other.engine] = _checked(net, other)
        by_size.append((sizes, None if other is None else checked[other.engine]))
    return replace(first, by_size=by_size)


def _settled(built: BuiltBackend) -> BuiltBackend:
    """Return a backend of a net whose first call was made, so that it has no later attributes."""
    instead = built.instead and _settled(built.instead)
    by_size = tuple((sizes, each and _settled(each)) for sizes, each in built.by_size)
    own = {"attributes": {}, "keeps_values": False}
    return replace(built, instead=instead, by_size=by_size, **own)


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
    for size_range in backend.built.ranges:
        words += f", {size_range.name} from {size_range.low} to {size_range.high}"
    others = {other.built.engine for _, other in backend.by_size if other is not None}
    if others - {backend.built.engine}:
        words += f", {' and '.join(sorted(others))} by size"
    if not backend.built.is_frozen:
        return words
    if not backend.built.compares:
        return f"{words} (frozen)"
    num_bytes = sum(storage.contents.numel() for storage in backend.signature.storages)
    share = num_watched_bytes(backend.check) / max(1, num_bytes)
    watched = f", {share:.0%} of their bytes watched by the kernel" if share else ""
    return f"{words} (weights compared{watched})"
