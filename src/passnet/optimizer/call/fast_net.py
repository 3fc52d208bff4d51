"""The returned net: the net itself in all but calls, which a backend runs where they fit it.

Backends are built from a copy. `served` then points the copy's
weights at the user's memory, so that a backend sees later updates.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from types import new_class
from typing import Any, Self, TypeAlias

import torch
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_leaves

from passnet.errors import InputError
from passnet.optimizer.call.dispatch import NO_BACKEND, Dispatch
from passnet.optimizer.call.held_objects import uncopied
from passnet.optimizer.call.net_call import (
    BuiltBackend,
    FunctionNet,
    as_module,
    name_of,
    state_tensors,
    weights_of,
)
from passnet.optimizer.call.net_state import attributes_of, remember_weights
from passnet.optimizer.call.values import is_dense
from passnet.optimizer.call.weight_file import LARGE_BYTES, WeightFile

Arguments: TypeAlias = tuple[Sequence[Any], Mapping[str, Any]]
"""The arguments of a call, by position and by name."""


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class FastNet(torch.nn.Module):
    """A net whose calls a backend runs where they fit it, and the original net elsewhere.

    An instance is of a subclass of the net's class as well, and has the very attributes of the net:
    only calls differ. `original_net` is the net, and `built_backends` are its backends, unless the
    net has attributes of these names.

    Raises:
        InputError: as of `Dispatch`, or a function holds weights.
    """

    __slots__ = ("_passnet",)

    original_net: torch.nn.Module
    built_backends: tuple[BuiltBackend, ...]
    _passnet: Dispatch

    def __new__(cls, net: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Return an instance of a subclass of the net's class, with the net's attributes."""
        if cls is not FastNet:  # methods of the net's class make another net of it
            kind = cls.__mro__[2]
            is_bare = net is None and not args and not kwargs
            bare: FastNet = object.__new__(kind)
            return bare if is_bare else kind(net, *args, **kwargs)
        module = as_module(unwrapped(net))
        dispatch = kwargs.pop("dispatch", Dispatch)(module, *args, **kwargs)
        made = object.__new__(_fast_class(module, dispatch.methods))
        object.__setattr__(made, "__dict__", vars(module))
        object.__setattr__(made, "_passnet", dispatch)
        return made

    def __init__(
        self,
        net: Callable[..., Any],
        backends: Sequence[BuiltBackend] = (),
        warns: bool = True,
        dispatch: Callable[..., Dispatch] = Dispatch,
    ) -> None:
        """Take a net, its backends, whether to log why a call fits none, and their dispatch.

        `__new__` does all of it.
        """

    def __init_subclass__(cls) -> None:
        """Keep the net's class from taking notice of a subclass."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run a call by the first backend that it fits, or by the original net."""
        if torch.compiler.is_compiling():
            return super().__call__(*args, **kwargs)
        outputs = self._passnet(args, kwargs)
        if outputs is not NO_BACKEND:
            return outputs
        net = self._passnet.net
        is_of_its_class = type(net) in type(self).__mro__  # it may have been given another one
        # for hooks, which are given the module
        is_given = is_of_its_class and any(vars(net).get(name) for name in _HOOKS)
        outputs = (super().__call__ if is_given else net)(*args, **kwargs)
        if self._passnet.to_settle:
            self._passnet.settle()
        return outputs

    def _apply(self, *args: Any, **kwargs: Any) -> Self:
        """Move or convert the net (`to`, `half`, `cuda`), and drop backends that this breaks."""
        super()._apply(*args, **kwargs)
        self._passnet.drop_moved()
        return self

    def __copy__(self) -> torch.nn.Module:
        self._passnet.warn_of_copy()
        return copy.copy(self._passnet.net)

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.nn.Module:
        self._passnet.warn_of_copy()
        return copy.deepcopy(self._passnet.net, memo)

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        net = self._passnet.net
        if isinstance(net, FunctionNet):
            return itemgetter(0), ((net.function,),)
        return net.__reduce_ex__(protocol)

    def __repr__(self) -> str:
        backends = self._passnet.in_words()
        count = len(self._passnet.built_backends)
        if not count:
            return f"FastNet without a backend, of {self._passnet.net!r}"
        plural = "" if count == 1 else "s"
        return f"FastNet with {count} backend{plural}:\n{backends}of {self._passnet.net!r}"


class _OfDispatch:
    """An attribute of the dispatch; TorchScript would compile a property."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        return getattr(instance._passnet, self._name)


def _fast_class(net: torch.nn.Module, methods: Mapping[str, Callable[..., Any]]) -> type:
    """Return a class for the optimised net, a subclass of its class in all but the name.

    It has some methods in place of the net's own.
    """

    def set_class(self: Any, kind: type) -> None:
        self._passnet.net.__class__ = kind
        made.__bases__ = (FastNet, kind)

    kind = type(net)
    names: dict[str, Any] = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__slots__": (),
        # for `isinstance`, and for methods that make another net of its class
        "__class__": property(lambda self: type(self._passnet.net), set_class),
    }
    own = {"original_net": "net", "built_backends": "built_backends"}
    names |= {name: _OfDispatch(path) for name, path in own.items() if not hasattr(net, name)}
    names |= methods
    made = new_class(kind.__name__, (FastNet, kind), exec_body=lambda space: space.update(names))
    made.__init__ = FastNet.__init__  # type: ignore[misc] (TorchScript's metaclass has its own)
    return made


def unwrapped(net: Any) -> Any:
    """Return the original net of one that was optimised before, or the net itself."""
    return net._passnet.net if issubclass(type(net), FastNet) else net


def copied(
    net: Callable[..., Any],
    calls: Sequence[Arguments],
    file: Path | None = None,
    large_bytes: int = LARGE_BYTES,
    shares_weights: bool = False,
) -> tuple[Callable[..., Any], Sequence[Arguments], WeightFile | None]:
    """Copy a net and the arguments of some calls, tensors shared among them included.

    Functions are not copied, and neither are the objects that a closure or a hook holds. The copy
    of a net with so many bytes of weights has them in a `WeightFile` at `file`, if that is given.
    With `shares_weights` it has the weights of the net itself: of one whose calls write into none.
    InputError where something cannot be copied, or changes of a weight cannot be seen.
    """
    net, name = unwrapped(net), name_of(net)
    module = as_module(net)
    weights = weights_of(module)
    if lazy := [name for name, weight in weights.items() if is_lazy(weight)]:
        raise InputError(f"weight {lazy[0]} has no values yet; call {name} once first")
    remember_weights(module, weights)
    attributes = [value for part in module.modules() for value in vars(part).values()]
    memo = uncopied(module)
    memo |= {id(weight): weight for weight in weights.values()} if shares_weights else {}
    weight_file = None
    if file is not None and sum(weight.nbytes for weight in weights.values()) >= large_bytes:
        weight_file, of_weights = WeightFile.of_copies(file, weights.values())
        memo |= of_weights
    net_copy = _copy(net, name, [*weights.values(), *attributes], memo)
    parts = dict(module.named_modules())
    for path, part in as_module(net_copy).named_modules():
        if path in parts and "training" in vars(parts[path]):  # copies of some classes lose it
            part.training = parts[path].training
    if shares_weights:
        return net_copy, (), None
    for own, weight in weights_of(as_module(net_copy)).items():  # a parameter is copied without
        if own in weights and vars(weights[own]):
            vars(weight).update(_copy(vars(weights[own]), name, (), memo))
    names_at = _places(as_module(net_copy))
    if shared := names_at.keys() & _places(module).keys():
        raise InputError(
            f"copies of {name} share {names_at[shared.pop()]} with it; passnet works on a copy, so "
            "give a net whose copies have weights of their own"
        )
    calls_copy = _copy(list(calls), f"the arguments of {name}", tree_leaves(calls), memo)
    return net_copy, calls_copy, weight_file


def _places(net: torch.nn.Module) -> dict[int, str]:
    """Return the names of a net's weights by their addresses in memory."""
    weights = {name: weight for name, weight in state_tensors(net).items() if is_dense(weight)}
    by_address = {weight.untyped_storage().data_ptr(): name for name, weight in weights.items()}
    return {address: name for address, name in by_address.items() if address}


def _copy(value: Any, name: str, tensors: Iterable[Any], memo: dict[Any, Any]) -> Any:
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
    by_engine = {built.engine: None} | ({} if instead is None else {instead.engine: instead})
    for _, backend in built.by_size:
        if backend is not None and backend.engine not in by_engine:
            by_engine[backend.engine] = served(replace(backend, instead=None), net)
    attributes = attributes_of(built.net)
    own_backend = replace(built, weights=weights, instead=instead, attributes=attributes, net=None)
    by_engine[built.engine] = replace(own_backend, by_size=())
    by_size = tuple(
        (sizes, backend and by_engine[backend.engine]) for sizes, backend in built.by_size
    )
    return replace(own_backend, by_size=by_size)


def fast_net(
    net: Callable[..., Any],
    built_backends: Sequence[BuiltBackend],
    warns: bool,
    output_type: type | None = None,
) -> FastNet:
    """Return the user's net with backends that were built from its copy.

    With the class of its outputs it is a decoder: backends are of its steps, or of its encoder.
    """
    module: Any = as_module(unwrapped(net))
    if output_type is None:
        return FastNet(module, [served(built, module) for built in built_backends], warns)
    from passnet.optimizer.decoding.dispatch import DecoderDispatch
    from passnet.optimizer.decoding.encoder import EncoderDispatch
    from passnet.optimizer.decoding.step import DecoderStep

    step, encoder = DecoderStep(module), None
    own = [served(built, step) for built in built_backends if type(built.net) is DecoderStep]
    if of_encoder := [built for built in built_backends if type(built.net) is not DecoderStep]:
        part = module.get_encoder()
        of_part = [served(built, part) for built in of_encoder]
        encoder = FastNet(part, of_part, warns, dispatch=EncoderDispatch)
    dispatch = partial(DecoderDispatch, output_type=output_type, encoder=encoder)
    return FastNet(module, own, warns, dispatch=dispatch)
