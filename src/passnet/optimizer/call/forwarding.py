"""Subclasses whose special methods, and methods of `torch.nn.Module`, are those of another net.

Python looks special methods up on the class, so `len(fast)` never reaches `__getattr__`.
"""

from collections.abc import Callable
from typing import Any

import torch

_KEPT = {
    *("__new__", "__init_subclass__", "__class_getitem__", "__class__", "__getattribute__"),
    *("__call__", "__str__", "__reduce__", "__getstate__", "__setstate__", "__del__"),
    *("forward", "compile"),
}
"""Methods that a subclass never forwards, besides those that its base class defines itself."""

_WITHOUT_DISGUISE = (torch.jit.ScriptModule, torch.fx.GraphModule)
"""Classes whose instances torch reads without calling them."""


class OfTheNet:
    """An attribute that is always the one of `original_net`, which may replace it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        return getattr(instance.__dict__.get("original_net", instance.__dict__), self._name)

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self._name] = value  # torch looks whether it is there


def forwarding_class(base: type, net: torch.nn.Module, changed: Callable[[Any], None]) -> type:
    """Return a subclass of `base` whose methods are those of `base.original_net`.

    Instances count as instances of the net's class. `changed` is called with an instance after a
    method that may change weights.
    """
    names: dict[str, Any] = {"__module__": base.__module__, "__qualname__": base.__qualname__}
    kind = type(net)
    for owner in kind.__mro__:
        for name, value in vars(owner).items() if owner not in base.__mro__ else ():
            is_special = name.startswith("__") and name.endswith("__")
            is_of_torch = hasattr(torch.nn.Module, name) and not name.startswith("_")
            is_kept = name in _KEPT or name in vars(base) or name.endswith("_hook")
            if callable(value) and (is_special or is_of_torch) and not is_kept:
                names[name] = _forwarded(name, None if is_special else changed)
    if not issubclass(kind, _WITHOUT_DISGUISE):
        names["__class__"] = property(lambda self: kind)
    return type(base.__name__, (base,), names)


def _forwarded(name: str, changed: Callable[[Any], None] | None) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        net = self.original_net
        value = getattr(net, name)(*args, **kwargs)
        if changed is not None:
            changed(self)
        return self if value is net else value

    method.__name__ = name
    return method
