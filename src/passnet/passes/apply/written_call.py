"""The arguments of a call as text: nested literals, and places of values that are given later."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch
import torch.fx

from passnet.errors import PassError
from passnet.passes.apply.rewrite import UNREAD

Places: TypeAlias = Mapping[torch.fx.Node, tuple[str, int]]
"""The list in which the value of a node is given, and its position."""

_NAMED: dict[str, type] = {
    "dtype": torch.dtype,
    "memory_format": torch.memory_format,
    "layout": torch.layout,
}


def written(value: Any, places: Places) -> Any:
    """Return arguments as JSON has them.

    >>> filled(written((1.5, [torch.float32, None], slice(2)), {}), {})
    (1.5, [torch.float32, None], slice(None, 2, None))

    Raises:
        PassError: of a literal that has no text.
    """

    def each(values: Sequence[Any]) -> list[Any]:
        return [written(element, places) for element in values]

    match value:
        case torch.fx.Node():
            return ["value", *places[value]]
        case None | bool() | int() | float() | str():
            return ["is", value]
        case complex():
            return ["complex", value.real, value.imag]
        case tuple() | list():
            return ["tuple" if isinstance(value, tuple) else "list", *each(value)]
        case slice():
            return ["slice", *each((value.start, value.stop, value.step))]
        case range():
            return ["range", value.start, value.stop, value.step]
        case dict():
            return ["dict", each([*value]), each([*value.values()])]
        case torch.device():
            return ["device", str(value)]
        case torch._ops.OpOverload():
            return ["op", *value.name().split("::"), value._overloadname]
    if value is UNREAD:
        return ["is", None]
    if value is ...:
        return ["ellipsis"]
    for name, kind in _NAMED.items():
        if isinstance(value, kind):
            return [name, str(value).removeprefix("torch.")]
    raise PassError(f"a {type(value).__name__} as an argument has no text")


def filled(text: Any, values: Mapping[str, Sequence[Any]]) -> Any:
    """Return arguments that `written` gave, with values in their places."""
    kind, *content = text
    match kind:
        case "value":
            return values[content[0]][content[1]]
        case "is":
            return content[0]
        case "complex":
            return complex(*content)
        case "tuple":
            return tuple(filled(element, values) for element in content)
        case "list":
            return [filled(element, values) for element in content]
        case "slice":
            return slice(*(filled(element, values) for element in content))
        case "range":
            return range(*content)
        case "dict":
            keys, entries = ([filled(element, values) for element in part] for part in content)
            return dict(zip(keys, entries, strict=True))
        case "device":
            return torch.device(content[0])
        case "ellipsis":
            return ...
        case "op":
            space, name, overload = content
            return getattr(getattr(getattr(torch.ops, space), name.split(".")[0]), overload)
    return getattr(torch, content[0])
