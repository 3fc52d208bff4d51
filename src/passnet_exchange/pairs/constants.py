"""The integers that a file's own statements assign: found, replaced, and reduced until it fits."""

import ast
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass

SMALLEST = 2
"""Integers below twice this are not halved."""


@dataclass(frozen=True, slots=True)
class Constant:
    """An integer at the top level of a file: its name, its place in the value, and its number.

    A number of a tuple or list has the name of its variable and its index: `shape[1]`.
    """

    name: str
    line: int
    column: int
    value: int


def find_constants(tree: ast.Module) -> list[Constant]:
    """Return the integers that statements outside functions assign, larger than one.

    Examples:
        >>> tree = ast.parse("N = 2048 * 2\\nshape = [64, 32]\\nh = w = 8\\nb, c = 2, N\\n")
        >>> [(each.name, each.value) for each in find_constants(tree)]
        [('N', 4096), ('shape[0]', 64), ('shape[1]', 32), ('h = w', 8), ('b', 2)]
    """
    constants = []
    for statement in tree.body:
        if not isinstance(statement, ast.Assign):
            continue
        name = " = ".join(map(ast.unparse, statement.targets))
        targets = statement.targets[0]
        value = statement.value
        if isinstance(value, ast.BinOp) and isinstance(value.left, ast.Tuple | ast.List):
            value = value.left  # as in [1024] * 16
        if not isinstance(value, ast.Tuple | ast.List):
            named = [(name, value)]
        elif isinstance(targets, ast.Tuple) and len(targets.elts) == len(value.elts):
            named = [(ast.unparse(t), v) for t, v in zip(targets.elts, value.elts, strict=True)]
        else:
            named = [(f"{name}[{index}]", part) for index, part in enumerate(value.elts)]
        for label, node in named:
            number = _integer(node)
            if number is not None and number > 1:
                constants.append(Constant(label, node.lineno, node.col_offset, number))
    return constants


def replaced(tree: ast.Module, values: Mapping[Constant, int]) -> ast.Module:
    """Return a file's tree with other numbers for some of its constants.

    Examples:
        >>> tree = ast.parse("n = 2 * 8")
        >>> ast.unparse(replaced(tree, {constant: 4 for constant in find_constants(tree)}))
        'n = 4'
    """
    numbers = {(each.line, each.column): value for each, value in values.items()}

    class Replacer(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> ast.AST:
            place = (getattr(node, "lineno", None), getattr(node, "col_offset", None))
            if place in numbers and isinstance(node, ast.expr) and _integer(node) is not None:
                return ast.copy_location(ast.Constant(numbers[place]), node)
            return super().generic_visit(node)

    copied = copy.deepcopy(tree)
    for statement in copied.body:
        if isinstance(statement, ast.Assign):
            statement.value = Replacer().visit(statement.value)
    return ast.fix_missing_locations(copied)


def reduced(
    constants: list[Constant], size_of: Callable[[Mapping[Constant, int]], int | None], most: int
) -> dict[Constant, int] | None:
    """Return the values of constants at which a file's size is at most `most`.

    The largest one is halved, again and again; with all of its value, where its half alone breaks
    the file (`size_of` is None). One whose half breaks it still, or makes nothing smaller, keeps
    its value from then on. Returns None if that is not enough.

    Examples:
        >>> a, b = Constant("a", 1, 0, 64), Constant("b", 2, 0, 16)
        >>> reduced([a, b], lambda values: values.get(a, 64) * values.get(b, 16), 200) == {a: 8}
        True
        >>> from dataclasses import replace
        >>> same = lambda values: None if len({*values.values()}) > 1 else 8 * values.get(a, 64)
        >>> reduced([a, replace(b, value=64)], same, 200).values()
        dict_values([16, 16])
    """
    values = {constant: constant.value for constant in constants}
    size, fixed = size_of({}), set[Constant]()
    while size is not None and size > most:
        free = [c for c, value in values.items() if c not in fixed and value >= 2 * SMALLEST]
        if not free:
            return None
        largest = max(free, key=lambda constant: values[constant])
        half = values[largest] // 2
        equal = [constant for constant in free if values[constant] == values[largest]]
        tried = {**values, largest: half}
        if (smaller := size_of(tried)) is None and len(equal) > 1:
            tried = {**values, **dict.fromkeys(equal, half)}
            smaller = size_of(tried)
        if smaller is None or smaller >= size:
            fixed.add(largest)
        else:
            values, size = tried, smaller
    changed = {constant: value for constant, value in values.items() if value != constant.value}
    return None if size is None else changed


def _integer(node: ast.AST) -> int | None:
    """Return the integer that an expression of literals makes; None for any other."""
    match node:
        case ast.Constant(int(value)) if not isinstance(value, bool):
            return value
        case ast.BinOp(left, ast.Mult() | ast.Add() | ast.Sub() | ast.FloorDiv() as op, right):
            first, second = _integer(left), _integer(right)
            if first is None or second is None or (isinstance(op, ast.FloorDiv) and not second):
                return None
            match op:
                case ast.Mult():
                    return first * second
                case ast.Add():
                    return first + second
                case ast.Sub():
                    return first - second
            return first // second
    return None
