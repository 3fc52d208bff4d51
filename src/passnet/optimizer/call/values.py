"""The values that calls take and return: tensors, and constants nested among them."""

import dataclasses
import enum
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import (
    TreeSpec,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_unflatten,
)

from passnet.errors import InputError

_PLAIN = (
    *(bool, int, float, complex, str, bytes, type(None), type(...), slice),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size),
)
"""Types whose values are the same if they print the same."""

_USUAL_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

_OWN_STATE = ("__reduce__", "__reduce_ex__", "__getstate__", "__new__")
"""Methods that an object has of `object` where its attributes are all there is of it."""


class _Place(enum.Enum):
    """A place for a tensor in an `OutputStructure`."""

    TENSOR = "tensor"


@dataclass(frozen=True, slots=True)
class OutputStructure:
    """The nesting of outputs, with constants and places of tensors as leaves.

    Args:
        spec: the nesting in containers and registered classes.
        leaves: for each leaf a place of a tensor, a constant, or the structure of an object.
        made: the class of an object; the rest is then of a dict of its attributes.
    """

    spec: TreeSpec
    leaves: tuple[Any, ...]
    made: type | None = None

    @property
    def has_tensors_alone(self) -> bool:
        """True without constants and objects."""
        return all(leaf is _Place.TENSOR for leaf in self.leaves)


def is_plain(value: Any) -> bool:
    """Return whether a value is identified by how it prints."""
    return type(value) in _PLAIN or (type(value) is tuple and all(map(is_plain, value)))


def is_dense(value: Any) -> bool:
    """Return whether a value is a tensor of no other class, strided and not nested."""
    is_tensor = type(value) in (torch.Tensor, torch.nn.Parameter)
    return is_tensor and value.layout is torch.strided and not value.is_nested


def argument_names(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, ...]:
    """Return the name of each leaf of arguments in a sentence.

    >>> argument_names((1, [2, 3]), {"mask": 4})
    ('input 1', 'input 2[0]', 'input 2[1]', 'input mask')
    """
    paths: list[Any] = [path for path, _ in tree_flatten_with_path((args, kwargs))[0]]
    steps = [(path[1].key if path[0].idx else path[1].idx + 1, path[2:]) for path in paths]
    return tuple(f"input {step}{keystr(inner)}" for step, inner in steps)


def flattened(outputs: Any) -> tuple[list[torch.Tensor], OutputStructure]:
    """Return the tensors among outputs, in order, and the structure around them.

    Raises:
        InputError: the outputs hold what is neither tensor nor constant nor made of such.

    Examples:
        >>> tensors, structure = flattened({"a": torch.ones(1), "b": (None, 2)})
        >>> nested(structure, [torch.zeros(1)])
        {'a': tensor([0.]), 'b': (None, 2)}
    """
    tensors: list[torch.Tensor] = []
    return tensors, _structure(outputs, tensors, [])


def objects_of(outputs: Any) -> list[Any]:
    """Return the lists, dicts and objects among outputs, in order, each as often as it is there.

    >>> row = [1]
    >>> len(objects_of((row, {"a": row})))
    3
    """
    objects, waiting = list[Any](), [outputs]
    expanded = set[int]()
    while waiting:
        value = waiting.pop()
        if isinstance(value, (torch.Tensor, enum.Enum, type)) or is_plain(value):
            continue
        if not isinstance(value, tuple) or getattr(value, "__dict__", None):
            objects.append(value)
        if id(value) not in expanded:
            expanded.add(id(value))
            waiting += reversed(_children(value)[0])
    return objects


def _children(value: Any) -> tuple[list[Any], TreeSpec | None]:
    """Return what a container or object holds, and how a container is made of it."""
    children, spec = tree_flatten(value, is_leaf=lambda inner: inner is not value)
    if spec.is_leaf():
        return [*(_attributes(value) or {}).values()], None
    return children, spec


def lost_part(outputs: Any) -> str | None:
    """Return what outputs that are made anew would lack, in words, None for nothing."""
    objects = objects_of(outputs)
    counts = Counter(map(id, objects))
    for value in objects:
        kind = type(value).__name__
        if counts[id(value)] > 1:
            return f"one {kind} in two places"
        children, spec = _children(value)
        own = getattr(value, "__dict__", None)
        if spec is None or not own:
            continue
        try:
            anew = vars(tree_unflatten(children, spec))
        except Exception:  # noqa: BLE001 (boundary: foreign code may raise anything)
            return f"{with_article(kind)}, which cannot be made from its items"
        if lost := [name for name in own if name not in anew or _is_other(own[name], anew[name])]:
            return f"{with_article(kind)} with an attribute, {lost[0]}, that its items do not give"
    return None


def _is_other(value: Any, remade: Any) -> bool:
    return type(value) is not type(remade) or (is_plain(value) and repr(value) != repr(remade))


def nested(structure: OutputStructure, tensors: Sequence[torch.Tensor]) -> Any:
    """Return outputs with these tensors, nested as the net returns them."""
    return _nested(structure, iter(tensors))


def check_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse arguments that a check of calls cannot tell from others, by an InputError."""
    if any(type(leaf) is torch.Size for leaf in tree_leaves((args, kwargs), is_leaf=_is_size)):
        raise InputError("an argument is a torch.Size; give it as a tuple")  # pytree's mistake
    for name, leaf in zip(argument_names(args, kwargs), tree_leaves((args, kwargs)), strict=True):
        if not (is_dense(leaf) or is_plain(leaf)):
            kind = f"of type {type(leaf).__name__}"
            if isinstance(leaf, torch.Tensor) and leaf.layout is not torch.strided:
                kind = f"a tensor with layout {leaf.layout}"
            raise InputError(
                f"{name} is {kind}; give what the net reads of it as plain dense tensors, "
                "numbers, strings and None, in tuples, lists and dicts"
            )


def with_article(name: str) -> str:
    """Return a name behind its article: "an Out"."""
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def has_usual_floats(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds floats of a dtype that ops compute in."""
    return tensor.dtype in _USUAL_FLOATS and bool(tensor.numel())


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of a tensor as whole numbers of the bytes of an element."""
    return tensor.view(_BITS[tensor.itemsize])


def comparable(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor as floats, bools or whole numbers of a dtype that ops compare.

    >>> comparable(torch.tensor([1 + 2j])).tolist()
    [[1.0, 2.0]]
    """
    values = tensor.detach()
    if values.is_quantized:
        return values.dequantize()
    if values.is_complex():
        values = values.resolve_conj()
        is_half = values.dtype is torch.complex32
        return torch.view_as_real(values.to(torch.complex64) if is_half else values)
    if values.is_floating_point():
        return values if values.dtype in _USUAL_FLOATS else values.float()
    return bits_of(values) if values.dtype in _UNSIGNED else values


def other_values(tensor: torch.Tensor, with_whole: bool = True) -> torch.Tensor:
    """Return a tensor with other values: of whole numbers within the range of its own.

    >>> other_values(torch.tensor([3, 1, 1])).tolist(), other_values(torch.tensor(7)).tolist()
    ([1, 3, 3], 6)
    """
    if tensor.is_quantized:
        return tensor.clone()
    changed = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    values = tensor.detach().cpu()
    is_unusual = values.is_floating_point() and not has_usual_floats(values)
    if is_unusual or values.dtype in _UNSIGNED:
        bits = bits_of(values.contiguous())
        values = bits.flatten().flip(0).reshape(bits.shape).view(values.dtype)
    elif not with_whole and not values.is_floating_point() or not values.numel():
        pass
    elif values.dtype is torch.bool:
        values = ~values
    elif values.is_floating_point() or values.is_complex():
        values = values * -0.5 + 0.25
    else:
        low, high = int(values.min()), int(values.max())
        values = low + high - values.long() if low < high else values.long() - int(low > 0)
    return changed.copy_(values).to(tensor.device)


def difference(former: OutputStructure, now: OutputStructure) -> str | None:
    """Return how outputs of two calls differ in structure, such as "3 and then 4", or None."""
    if former.spec != now.spec or former.made is not now.made:
        return "outputs that are nested in other ways"
    for before, after in zip(former.leaves, now.leaves, strict=True):
        if isinstance(before, OutputStructure) and isinstance(after, OutputStructure):
            if inner := difference(before, after):
                return inner
        elif before is not after and not (
            type(before) is type(after) and is_plain(before) and repr(before) == repr(after)
        ):
            return f"{_in_words(before)} and then {_in_words(after)}"
    return None


def _in_words(leaf: Any) -> str:
    if isinstance(leaf, OutputStructure):
        return with_article(leaf.made.__name__ if leaf.made else "container")
    return "a tensor" if leaf is _Place.TENSOR else repr(leaf)[:80]


def _is_size(value: Any) -> bool:
    return type(value) is torch.Size


def _structure(value: Any, tensors: list[torch.Tensor], objects: list[Any]) -> OutputStructure:
    # pytree takes a torch.Size for a tuple
    leaves, spec = tree_flatten(value, is_leaf=_is_size)
    described: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            tensors.append(leaf)
            described.append(_Place.TENSOR)
        elif is_plain(leaf) or isinstance(leaf, (enum.Enum, type)):
            described.append(leaf)
        elif (attributes := _attributes(leaf)) is None or any(leaf is outer for outer in objects):
            kind = type(leaf).__name__
            raise InputError(
                f"the net returns {with_article(kind)}, which passnet cannot make anew; return "
                "tensors, numbers, strings and None, in tuples, lists, dicts and dataclasses, or "
                f"register {kind} with torch.utils._pytree.register_pytree_node"
            )
        else:
            objects.append(leaf)
            inner = _structure(attributes, tensors, objects)
            described.append(dataclasses.replace(inner, made=type(leaf)))
    return OutputStructure(spec, tuple(described))


def _attributes(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object that consists of them alone, else None."""
    kind = type(value)
    fields = {}
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        fields = {name: getattr(value, name) for name in names if hasattr(value, name)}
    elif (
        isinstance(value, torch.nn.Module)
        or not hasattr(value, "__dict__")
        or any(getattr(kind, name, None) is not getattr(object, name, None) for name in _OWN_STATE)
        or any(hasattr(kind, name) for name in ("__setstate__", "__del__"))
        or any(vars(base).get("__slots__") for base in kind.__mro__)
    ):
        return None
    return fields | getattr(value, "__dict__", {})


def _nested(structure: OutputStructure, tensors: Iterator[torch.Tensor]) -> Any:
    leaves = []
    for leaf in structure.leaves:
        if leaf is _Place.TENSOR:
            leaves.append(next(tensors))
        elif isinstance(leaf, OutputStructure):
            leaves.append(_nested(leaf, tensors))
        else:
            leaves.append(leaf)
    value = tree_unflatten(leaves, structure.spec)
    if structure.made is None:
        return value
    instance = object.__new__(structure.made)
    for name, attribute in value.items():
        object.__setattr__(instance, name, attribute)
    return instance
