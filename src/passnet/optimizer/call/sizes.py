"""Sizes that vary from call to call: their ranges, and arguments of other sizes."""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Protocol, TypeAlias

import torch
from torch.utils._pytree import (
    MappingKey,
    SequenceKey,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_unflatten,
)

from passnet.errors import InputError, no_such
from passnet.optimizer.call.values import argument_names, is_dense, is_plain
from passnet.optimizer.record import SizeRange

CallSizes: TypeAlias = tuple[int, ...]
"""One size for each range."""

AXES: Mapping[str, int] = {"batch": 0, "length": 1}
"""The axes that names of ranges mean in every tensor that has the example's size there."""

NUM_OF_ONE, NUM_OF_MORE = 5, 3
"""Sizes of a range for which times are taken: of the only one, and of each of several."""

MOST_MEASURED = 9
"""The most combinations of sizes for which times are taken."""


class CallPlan(Protocol):
    """The sizes and arguments of a net whose arguments depend on each other."""

    @property
    def bounds(self) -> tuple[tuple[int, int] | None, ...]:
        """The whole numbers that eager torch takes in each tensor, None for any."""

    @property
    def measured(self) -> list[CallSizes]:
        """The sizes for which times are taken."""

    @property
    def compared(self) -> list[CallSizes]:
        """The sizes for comparisons, besides the example's."""

    def example(self, sizes: CallSizes) -> list[torch.Tensor]:
        """Return arguments of some sizes."""

    def draws(self, sizes: CallSizes, seed: int) -> Iterator[Any]:
        """Yield further sets of arguments of some sizes (`compare.fresh_values.ArgumentSet`)."""


def named_ranges(
    dynamic: Mapping[Any, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], net: Any
) -> tuple[SizeRange, ...]:
    """Return the ranges that a user asks for, as `OptimizeSettings.dynamic` says.

    Raises:
        InputError: a name, an axis or a range means nothing for these arguments.
    """
    tensors = list(_named_tensors(args, kwargs, net))
    places_of: dict[tuple[str, int, int, int], list[tuple[int, int]]] = {}
    for name, value in dynamic.items():
        if isinstance(value, Mapping):
            numbers = [n for n, (names, _) in enumerate(tensors) if name in names]
            if not numbers:
                tensor_names = dict.fromkeys(str(names[0]) for names, _ in tensors)
                raise InputError(f"dynamic: {no_such('tensor', name, tensor_names)}")
            for number, (axis, ends) in product(numbers, value.items()):
                size = _size(tensors[number][1], axis, f"{name}: ")
                low, high = _ends(ends, f"{name}, axis {axis}", size)
                places_of.setdefault(("", low, high, size), []).append((number, axis))
        elif name in AXES:
            axis = AXES[name]
            own = [(n, x.shape[axis]) for n, (_, x) in enumerate(tensors) if x.dim() > axis]
            if not own:
                raise InputError(f"dynamic: no tensor has an axis {axis}, which {name} means")
            size = own[0][1]
            low, high = _ends(value, name, size)
            places_of[name, low, high, size] = [(n, axis) for n, length in own if length == size]
        else:
            raise InputError(
                f'dynamic: {name!r} is neither batch nor length; write {{"batch": (1, 64)}}, or '
                '{"input_ids": {1: (1, 512)}} for axis 1 of an argument'
            )
    for number, axis in (pair for pairs in places_of.values() for pair in pairs):
        if not tensors[number][1].is_contiguous():
            name = tensors[number][0][0]
            raise InputError(f"dynamic: {name} is not contiguous, so axis {axis} cannot vary")
    return tuple(
        SizeRange(name or _name_of(pairs, tensors), low, high, size, tuple(pairs))
        for (name, low, high, size), pairs in places_of.items()
        if low < high
    )


def ranges_of_calls(
    calls: Sequence[tuple[Sequence[Any], Mapping[str, Any]]],
) -> tuple[SizeRange, ...]:
    """Return ranges of the sizes that differ between calls, or none if more differs.

    Axes with the same sizes in all calls share a range.
    """
    flat = [tree_flatten((tuple(args), dict(kwargs))) for args, kwargs in calls]
    (first, spec), later_calls = flat[0], flat[1:]
    if any(later_spec != spec for _, later_spec in later_calls):
        return ()
    places_of: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    names = argument_names(*tree_unflatten(first, spec))
    named = []
    for position, leaves in enumerate(zip(*(leaves for leaves, _ in flat), strict=True)):
        if not all(is_dense(leaf) for leaf in leaves):
            same = all(is_plain(leaf) and type(leaf) is type(leaves[0]) for leaf in leaves)
            if not same or len({*map(repr, leaves)}) > 1:
                return ()
            continue
        if len({(x.dtype, x.device, x.dim()) for x in leaves}) > 1:
            return ()
        for axis, sizes in enumerate(zip(*(x.shape for x in leaves), strict=True)):
            if len({*sizes}) > 1:
                if min(sizes) < 1 or not all(x.is_contiguous() for x in leaves):
                    return ()
                places_of.setdefault(sizes, []).append((len(named), axis))
        named.append(names[position].removeprefix("input "))
    return tuple(
        SizeRange(f"{named[p[0][0]]}, axis {p[0][1]}", min(sizes), max(sizes), sizes[0], tuple(p))
        for sizes, p in places_of.items()
    )


def sizes_of(ranges: Sequence[SizeRange], tensors: Sequence[torch.Tensor]) -> CallSizes:
    """Return the sizes of a call."""
    return tuple(tensors[r.places[0][0]].shape[r.places[0][1]] for r in ranges)


def resized(
    tensors: Sequence[torch.Tensor], ranges: Sequence[SizeRange], sizes: CallSizes
) -> list[torch.Tensor]:
    """Return tensors of other sizes, whose values are the example's, repeated or cut off."""
    copies = list(tensors)
    for size_range, size in zip(ranges, sizes, strict=True):
        for number, axis in size_range.places:
            index = torch.arange(size, device=copies[number].device) % copies[number].shape[axis]
            copies[number] = copies[number].index_select(axis, index)
    same: dict[int, torch.Tensor] = {}
    return [same.setdefault(id(was), now) for was, now in zip(tensors, copies, strict=True)]


def traced_sizes(ranges: Sequence[SizeRange]) -> CallSizes:
    """Return sizes greater than 1, which compilers take for a constant."""
    return tuple(r.example if r.example > 1 else max(r.low, 2) for r in ranges)


def compared_sizes(ranges: Sequence[SizeRange]) -> list[CallSizes]:
    """Return sizes other than the example's for comparisons, the cheapest first.

    Each range has its ends, while the others have their least size, and an odd size between.
    """
    example, least = tuple(r.example for r in ranges), tuple(r.low for r in ranges)
    most = [(*least[:n], r.high, *least[n + 1 :]) for n, r in enumerate(ranges)]
    middle = tuple(_odd_between(r) for r in ranges)
    choices = dict.fromkeys([least, middle, *most, tuple(r.high for r in ranges)])
    return sorted(choices.keys() - {example}, key=math.prod)


def measured_sizes(ranges: Sequence[SizeRange]) -> list[CallSizes]:
    """Return the sizes for which times are taken, the cheapest first."""
    count = NUM_OF_ONE if len(ranges) == 1 else NUM_OF_MORE
    choices = [*product(*(r.between(count) for r in ranges))]
    choices.sort(key=math.prod)
    if len(choices) > MOST_MEASURED:  # of three ranges: those that grow together, and one by one
        least = tuple(r.low for r in ranges)
        alone = [(*least[:n], r.high, *least[n + 1 :]) for n, r in enumerate(ranges)]
        together = [*zip(*(r.between(count) for r in ranges), strict=False)]
        choices = sorted({*alone, *together}, key=math.prod)
    return choices


def nearest(sizes: CallSizes, measured: Sequence[CallSizes]) -> int:
    """Return the number of the measured sizes nearest to some, by the ratios between them."""

    def distance(number: int) -> float:
        pairs = zip(sizes, measured[number], strict=True)
        return sum(abs(math.log(max(size, 1) / max(known_size, 1))) for size, known_size in pairs)

    return min(range(len(measured)), key=distance)


def _odd_between(size_range: SizeRange) -> int:
    middle = round(math.sqrt(size_range.low * size_range.high)) | 1
    return min(max(middle, size_range.low), size_range.high)


def _named_tensors(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], net: Any
) -> Iterator[tuple[tuple[Any, ...], torch.Tensor]]:
    """Yield all tensors of a call with the names that a user may give them."""
    forward: Callable[..., Any] = net.forward if isinstance(net, torch.nn.Module) else net
    try:
        parameters = [*inspect.signature(forward).parameters]
    except (TypeError, ValueError):
        parameters = []
    for path, leaf in tree_flatten_with_path((args, dict(kwargs)))[0]:
        if not isinstance(leaf, torch.Tensor):
            continue
        step = path[1]
        if isinstance(step, MappingKey):
            top: Any = step.key
            names: tuple[Any, ...] = (f"{top}{keystr(path[2:])}", top)
        else:
            assert isinstance(step, SequenceKey)
            top = parameters[step.idx] if step.idx < len(parameters) else step.idx
            names = (f"{top}{keystr(path[2:])}", top, step.idx)
        yield names, leaf


def _size(tensor: torch.Tensor, axis: Any, says: str) -> int:
    if not isinstance(axis, int) or not 0 <= axis < tensor.dim():
        raise InputError(f"dynamic: {says}no axis {axis!r} in a tensor of {tensor.dim()} axes")
    return tensor.shape[axis]


def _ends(value: Any, says: str, size: int) -> tuple[int, int]:
    is_pair = isinstance(value, (tuple, list)) and len(value) == 2
    if not is_pair or not all(type(end) is int for end in value) or not 1 <= value[0] <= value[1]:
        raise InputError(f"dynamic: {says} is {value!r}; give the least and the greatest size")
    if not value[0] <= size <= value[1]:
        raise InputError(f"dynamic: {says} has size {size} in the example, outside of {value!r}")
    return value[0], value[1]


def _name_of(pairs: Sequence[tuple[int, int]], tensors: Sequence[Any]) -> str:
    number, axis = pairs[0]
    return f"{tensors[number][0][0]}, axis {axis}"
