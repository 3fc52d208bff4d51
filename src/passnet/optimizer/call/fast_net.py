"""The net that is returned to the user: an entry runs the calls that fit it, and the net as it was
all others.
"""

import copy
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, NoReturn, Self

import torch
from torch.utils._pytree import TreeSpec, tree_unflatten

from passnet.errors import InputError
from passnet.optimizer.call.built_backend import BuiltBackend, leaf_in_words
from passnet.optimizer.call.call_check import (
    CallCheck,
    InputSignature,
    Misfit,
    find_misfit,
    input_signature,
)
from passnet.optimizer.call.compiled_check import call_check, num_watched_bytes
from passnet.optimizer.call.net_call import as_module
from passnet.optimizer.call.net_state import is_moved

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
"""What to do about a misfit that is not of the inputs."""

_BUSY = max(Misfit) + 1
_AS_IT_WAS = "the net runs as it was"


@dataclass(frozen=True, slots=True)
class _Way:
    """An entry with all that a call of it needs."""

    entry: BuiltBackend
    form: InputSignature
    check: CallCheck
    lock: threading.Lock
    unflatten: Callable[[Sequence[Any]], Any]
    instead: "_Way | None"


class FastNet(torch.nn.Module):
    """A net that an entry runs where a call fits it, and that runs as it was everywhere else.

    To everything but calls it is the net: its state, modules, attributes and mode are the net's.
    One thread at a time is within an entry; one that calls meanwhile runs the net as it was.

    Args:
        net: the net, or a function of tensors.
        entries: backends to run it; of two for the same form the last is tried first.
        warns: whether it is told, once a reason, why a call fits no entry. It need not be where the
            net as it was is the best way for some inputs.

    Raises:
        InputError: an entry has inputs that cannot be checked, or weights that are not the net's;
            a function holds weights.
    """

    original_net: torch.nn.Module
    _ways: tuple[_Way, ...]
    _why_none: str
    _warned: set[int | str]
    _warns: bool

    def __init__(
        self, net: Callable[..., Any], entries: Sequence[BuiltBackend] = (), warns: bool = True
    ) -> None:
        super().__init__()
        module = as_module(net)
        own = {
            "original_net": module,
            # the very dicts of the net, so that names, state and assignments are the net's
            **{name: getattr(module, name) for name in ("_parameters", "_buffers", "_modules")},
            "_ways": tuple(_way(module, entry) for entry in reversed(entries)),
            "_why_none": "it has no entries",
            "_warned": set(),
            "_warns": warns,
        }
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the net returns."""
        if torch.compiler.is_compiling():
            return self.original_net(*args, **kwargs)
        misfit = 0
        for first in self._ways:
            way, tensors = first, first.check(args, kwargs)
            if isinstance(tensors, int) and tensors >= Misfit.VALUES and first.instead:
                if self._warns and tensors not in self._warned:
                    self._warn(tensors, args, kwargs, f"{first.instead.entry.engine} runs it")
                way, tensors = first.instead, first.instead.check(args, kwargs)
            if isinstance(tensors, int):
                misfit = max(misfit, tensors)
            elif not way.lock.acquire(blocking=False):
                misfit = _BUSY
            else:
                try:
                    outputs = way.entry.run(tensors)
                except Exception as error:  # noqa: BLE001 (of foreign code: the net says if it is one)
                    said = str(error).partition("\n")[0]  # traces of C++ follow
                    failed = f"{way.entry.engine} failed with {type(error).__name__}: {said}"
                    self._warn_of(way.entry.engine, failed)
                    break
                finally:
                    way.lock.release()
                if first is not self._ways[0]:
                    self._try_first(first)
                return way.unflatten(outputs)
        else:
            if self._warns and misfit not in self._warned:
                self._warn(misfit, args, kwargs)
        return self.original_net(*args, **kwargs)

    @property
    def entries(self) -> tuple[BuiltBackend, ...]:
        """The backends, the last used one first."""
        return tuple(way.entry for way in self._ways)

    @property
    def training(self) -> bool:
        """The mode of the net."""
        return self.original_net.training

    @training.setter
    def training(self, mode: bool) -> None:
        if "original_net" in self.__dict__:  # not while Module.__init__ sets it
            self.original_net.training = mode

    def _try_first(self, way: _Way) -> None:
        others = tuple(each for each in self._ways if each is not way)
        object.__setattr__(self, "_ways", (way, *others))

    def _warn(
        self, misfit: int, args: tuple[Any, ...], kwargs: dict[str, Any], instead: str = _AS_IT_WAS
    ) -> None:
        """Say once why no entry fits: of several, that one which fitted the longest."""
        if not self._ways:
            return self._warn_of(0, self._why_none, "; give it to passnet.optimize")
        if misfit == _BUSY:
            return self._warn_of(misfit, "another thread is within its entry")
        found = [each for way in self._ways if (each := find_misfit(way.form, args, kwargs))]
        if found:  # it is asked again, a moment later
            kind, sentence = max(found)
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

    def _without_entries(self, net: torch.nn.Module, why: str) -> "FastNet":
        made = FastNet(net)
        object.__setattr__(made, "_why_none", why)
        return made

    def __copy__(self) -> "FastNet":
        return self._without_entries(self.original_net, "entries are not copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> "FastNet":
        net = copy.deepcopy(self.original_net, memo)
        memo[id(self)] = made = self._without_entries(net, "entries are not copied")
        return made

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InputError(
            "an optimised net cannot be pickled; save its state_dict(), or save the folder "
            "(passnet.optimize(..., out=FOLDER)) and use passnet.load(FOLDER, net)"
        )

    def __repr__(self) -> str:
        entries = [f"  {way.entry.engine}: {_in_words(way)}\n" for way in self._ways]
        return f"FastNet with {len(entries)} entries:\n{''.join(entries)}of {self.original_net!r}"

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
        """Move or convert the net (`to`, `half`, `cuda`), and drop the entries that this breaks."""
        self.original_net._apply(fn, recurse)
        kept = tuple(way for way in self._ways if not is_moved(self.original_net, way.form.weights))
        if len(kept) < len(self._ways):
            object.__setattr__(self, "_ways", kept)
            object.__setattr__(self, "_why_none", "its weights were moved or converted")
            self._warn(0, (), {})
        return self

    def train(self, mode: bool = True) -> Self:
        """Set the mode of the net; in training mode it runs as it was."""
        self.original_net.train(mode)
        return self

    def apply(self, fn: Callable[[torch.nn.Module], Any]) -> Self:
        """Call a function with each module of the net."""
        self.original_net.apply(fn)
        return self

    def named_modules(
        self,
        memo: set[torch.nn.Module] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Any:
        """Return the modules of the net, itself the first."""
        return self.original_net.named_modules(memo, prefix, remove_duplicate)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the state of the net."""
        state: dict[str, Any] = self.original_net.state_dict(*args, **kwargs)
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Load a state into the net."""
        return self.original_net.load_state_dict(state_dict, *args, **kwargs)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self.original_net._load_from_state_dict(*args, **kwargs)


def _way(net: torch.nn.Module, entry: BuiltBackend) -> _Way:
    form = input_signature(net, entry)
    instead = None if entry.instead is None else _way(net, entry.instead)
    unflatten = _unflatten(entry.out_spec)
    return _Way(entry, form, call_check(form), threading.Lock(), unflatten, instead)


def _unflatten(spec: TreeSpec) -> Callable[[Sequence[Any]], Any]:
    """Return what nests outputs; `tree_unflatten` takes microseconds for what most nets return."""
    if spec.is_leaf():
        return itemgetter(0)
    if spec.type in (tuple, list) and all(child.is_leaf() for child in spec.children()):
        return spec.type
    return partial(tree_unflatten, treespec=spec)


def _in_words(way: _Way) -> str:
    """The form of the inputs of a way, and how it is known that folded weights are as they were."""
    words = ", ".join(map(leaf_in_words, way.entry.leaves))
    if not way.entry.is_frozen:
        return words
    if not way.entry.compares:
        return f"{words} (frozen)"
    share = num_watched_bytes(way.check) / max(
        1, sum(s.contents.numel() for s in way.form.storages)
    )
    watched = f", {share:.0%} of their bytes watched by the kernel" if share else ""
    return f"{words} (weights compared{watched})"
