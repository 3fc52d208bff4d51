"""Addresses in memory as an index for each axis, in words of the loops language."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy

from passnet.errors import InputError
from passnet_loops.language.language import Index, IndexCall

Bounds = tuple[int, int]
"""The smallest and the largest value."""


def axis_indices(
    address: Any, shape: Sequence[int], stride: Sequence[int], bounds: Mapping[Any, Bounds]
) -> list[Any]:
    """Return an index for each axis, so that the sum of indices times strides is the address.

    `bounds` are those of the symbols in the address. An index beyond the end of its axis is split
    into a remainder and a quotient for the next larger axis, where the strides allow it.

    Raises:
        InputError: The address is not that of an element of the tensor.
    """
    axes = [axis for axis, size in enumerate(shape) if size != 1 and stride[axis] != 0]
    axes.sort(key=lambda axis: (-stride[axis], shape[axis]))
    parts: dict[int, Any] = dict.fromkeys(axes, sympy.Integer(0))
    address = sympy.expand(address)
    constant, terms = 0, []
    parts_of_sum: tuple[Any, ...] = sympy.Add.make_args(address)
    for term in parts_of_sum:
        coefficient, atom = term.as_coeff_Mul()
        if not term.free_symbols:
            constant += int(term)
        else:
            terms.append((int(coefficient), atom))
    for coefficient, atom in terms:
        fitting = [axis for axis in axes if coefficient % stride[axis] == 0]
        if not fitting:
            raise InputError("an address that is no element of its tensor")
        low, high = span(atom, bounds)
        inside = [a for a in fitting if abs(coefficient) // stride[a] * (high - low) < shape[a]]
        axis = inside[0] if inside else fitting[0]
        parts[axis] += coefficient // stride[axis] * atom
    for axis in axes:
        low, high = span(parts[axis], bounds)
        steps, remainder = divmod(constant, stride[axis])
        if not (low + steps >= 0 and high + steps < shape[axis]) and 2 * remainder > stride[axis]:
            steps += 1
        parts[axis] += steps
        constant -= steps * stride[axis]
    if constant:
        raise InputError("an address that is no element of its tensor")
    for rank in range(len(axes) - 1, 0, -1):
        axis, above = axes[rank], axes[rank - 1]
        low, high = span(parts[axis], bounds)
        if low >= 0 and high >= shape[axis] and stride[above] == stride[axis] * shape[axis]:
            whole = parts[axis]
            parts[axis] = ("%", whole, shape[axis])
            parts[above] = whole_sum(parts[above], ("//", whole, shape[axis]))
    return [parts.get(axis, sympy.Integer(0)) for axis in range(len(shape))]


def whole_sum(left: Any, right: Any) -> Any:
    """Return the sum of two indices."""
    return right if left == 0 else ("+", left, right)


def span(value: Any, bounds: Mapping[Any, Bounds]) -> Bounds:
    """Return the smallest and largest value of an index; the bounds may be loose.

    Raises:
        InputError: It has an unknown part.
    """
    if isinstance(value, tuple):
        name, left, right = value
        low, high = span(left, bounds)
        if name == "%":
            return (0, right - 1)
        if name == "//":
            return (low // right, high // right)
        second = span(right, bounds)
        return (low + second[0], high + second[1])
    if value.is_Integer:
        return (int(value), int(value))
    if value.is_Symbol:
        if value not in bounds:
            raise InputError(f"an index with {value}, which is not known")
        return bounds[value]
    name = type(value).__name__
    if value.is_Add:
        spans = [span(part, bounds) for part in value.args]
        return (sum(low for low, _ in spans), sum(high for _, high in spans))
    if value.is_Mul:
        low, high = 1, 1
        for part in value.args:
            ends = [a * b for a in (low, high) for b in span(part, bounds)]
            low, high = min(ends), max(ends)
        return (low, high)
    if name in ("FloorDiv", "CleanDiv"):
        low, high = span(value.args[0], bounds)
        return (low // int(value.args[1]), high // int(value.args[1]))
    if name == "ModularIndexing":
        return (0, int(value.args[2]) - 1)
    if name == "Identity":
        return span(value.args[0], bounds)
    if name in ("Mod", "PythonMod"):
        return (0, int(value.args[1]) - 1)
    raise InputError(f"an index with {name}, which is not known")


def index_words(value: Any, names: Mapping[Any, str], number: Callable[[int], Index]) -> Index:
    """Return an index in words of the language, with the `names` of its symbols.

    Raises:
        InputError: A part cannot be expressed.
    """

    def words(part: Any) -> Index:
        return index_words(part, names, number)

    if isinstance(value, int):
        return number(value)
    if isinstance(value, tuple):
        return IndexCall(value[0], words(value[1]), words(value[2]))
    if value.is_Integer:
        return number(int(value))
    if value.is_Symbol:
        return names[value]
    name = type(value).__name__
    if value.is_Add or value.is_Mul:
        parts = sorted(value.args, key=lambda part: (bool(not part.free_symbols), str(part)))
        chain = words(parts[0])
        for part in parts[1:]:
            chain = IndexCall("+" if value.is_Add else "*", chain, words(part))
        return chain
    if name in ("FloorDiv", "CleanDiv"):
        return IndexCall("//", words(value.args[0]), words(value.args[1]))
    if name == "ModularIndexing":
        base, divisor, modulus = value.args
        whole = words(base) if divisor == 1 else IndexCall("//", words(base), words(divisor))
        return IndexCall("%", whole, words(modulus))
    if name in ("Mod", "PythonMod"):
        return IndexCall("%", words(value.args[0]), words(value.args[1]))
    if name == "Identity":
        return words(value.args[0])
    raise InputError(f"an index with {name} cannot be said")
