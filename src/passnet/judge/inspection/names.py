"""Names in the code of a pass folder: what dotted path each expression stands for.

A path is `torch.nn.functional.softmax`, or `?.softmax` for an attribute of an object of unknown
origin, or `numpy()` for what comes out of a module, or one of these:

- `numbers()`: a number of Python, or an array or scalar of numpy that holds numbers, as do its
  elements, its rows, and what operators and functions make of it and other numbers
- `str:float32()`: that string
- `literal:...()`: a container that is written out in constants
- `?self`: the object whose method it is, in a class that is only used to make such objects

Where a name is assigned in several places it stands for all of them.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from typing import TypeAlias

from passnet.judge.inspection import rules as meaning
from passnet.judge.inspection.sources import Code, Literal, Scope, owner_of

MAX_ELEMENTS = 16
"""Of a container that is gone through element by element."""

UNKNOWN = "?"
SELF = "?self"
NUMBERS = "numbers()"

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_DISPLAYS: dict[type[ast.AST], str] = {
    ast.JoinedStr: "str",
    ast.List: "list",
    ast.ListComp: "list",
    ast.Tuple: "tuple",
    ast.Set: "set",
    ast.SetComp: "set",
    ast.Dict: "dict",
    ast.DictComp: "dict",
}


def resolve_all(code: Code, scope: Scope, nodes: Iterable[ast.expr]) -> set[str]:
    """The paths that any of some expressions may stand for."""
    return {path for node in nodes for path in resolve(code, scope, node)}


def resolve(code: Code, scope: Scope, node: ast.expr) -> set[str]:
    """The paths an expression may stand for, `?` if nothing is known.

    It is empty only while names are being bound, for what nothing was bound to so far.
    """
    match node:
        case ast.Name(id=name):
            return _lookup(code, scope, name, set())
        case ast.Attribute(value=value, attr=attr):
            return _below(code, resolve(code, scope, value), attr)
        case ast.Call(func=func, args=args):
            called = resolve(code, scope, func)
            found = {item for path in called for item in _result(code, scope, path, node)}
            if "builtins.getattr" in called:
                for attr in texts_of(code, scope, args[1:2])[0]:
                    found |= _below(code, resolve(code, scope, args[0]), attr)
            return found
        case ast.IfExp(body=body, orelse=orelse):
            return resolve_all(code, scope, [body, orelse])
        case ast.BoolOp(values=values):
            return resolve_all(code, scope, values)
        case ast.NamedExpr(value=value):
            return resolve(code, scope, value)
        case ast.BinOp(left=left, op=op, right=right):
            return operation(code, scope, op, [left, right])
        case ast.UnaryOp(op=op, operand=operand):
            return operation(code, scope, op, [operand])
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return operation(code, scope, op, [left, right])
        case ast.Subscript(value=value):
            listed = elements(code, scope, value, of_dict="values")
            if listed is not None:
                return resolve_all(code, scope, listed)
            return {element_of(path) for path in resolve(code, scope, value)}
        case ast.Constant(value=str(text)) if text.isidentifier():
            return {f"str:{text}()"}
        case ast.Constant(value=int() | float() | complex()):
            return {NUMBERS}
        case ast.Constant(value=value):
            return {f"builtins.{type(value).__name__}()"}
    display = _DISPLAYS.get(type(node))
    return {f"builtins.{display}()"} if display else {UNKNOWN}


def operation(code: Code, scope: Scope, op: ast.AST, operands: list[ast.expr]) -> set[str]:
    """What an operator gives: numbers, if all its operands are; of `@` nothing is said."""
    paths = resolve_all(code, scope, operands)
    if isinstance(op, ast.MatMult) or not all(map(_is_number, paths)):
        return {UNKNOWN}
    return {NUMBERS} if paths else set()


def _is_number(path: str) -> bool:
    return path in (NUMBERS, f"{NUMBERS}.shape")


def element_of(path: str) -> str:
    """What is in an object, by index or in a loop."""
    if path == f"{NUMBERS}.shape":
        return NUMBERS
    return path if path == NUMBERS else UNKNOWN


def elements(
    code: Code, scope: Scope, node: ast.expr, of_dict: str = "keys"
) -> list[ast.expr] | None:
    """What is in a container that is written out, or named and never changed; None if unknown."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="items" | "keys" | "values" as part)):
            return elements(code, scope, value, part) if not node.args else None
        case ast.Name() | ast.Attribute():
            paths = resolve(code, scope, node)
            literal = code.literals.get(min(paths)) if len(paths) == 1 else None
            if literal is None or not _stays(code, literal):
                return None
            node = literal.node
    match node:
        case ast.Tuple(elts=listed) | ast.List(elts=listed) | ast.Set(elts=listed):
            pass
        case ast.Dict(keys=keys, values=values):
            named = [key for key in keys if key is not None]
            if len(named) < len(keys):
                return None
            pairs = zip(named, values, strict=True)
            either = {"keys": named, "values": values}
            listed = either.get(of_dict) or [ast.Tuple([*pair], ast.Load()) for pair in pairs]
        case _:
            return None
    spread = any(isinstance(item, ast.Starred) for item in listed)
    return None if spread or len(listed) > MAX_ELEMENTS else listed


def _stays(code: Code, literal: Literal) -> bool:
    """Whether nothing can change a container: it is a tuple, or its names are only looked up in."""
    names = literal.names | {f".{name}" for name in literal.names}
    return isinstance(literal.node, ast.Tuple) or names.isdisjoint(code.handed_on)


def texts_of(code: Code, scope: Scope, nodes: list[ast.expr]) -> tuple[set[str], bool]:
    """The strings that an argument may be, and whether it is none but those."""
    if (text := text_of(nodes)) is not None:
        return {text}, True
    paths = resolve_all(code, scope, nodes)
    found = {path[4:-2] for path in paths if path.startswith("str:")}
    return found, 0 < len(found) == len(paths)


def text_of(nodes: list[ast.expr]) -> str | None:
    """The string that an argument is, if it is there and written out."""
    match nodes:
        case [ast.Constant(value=str(text))]:
            return text
    return None


def _below(code: Code, paths: set[str], attr: str, seen: set[str] | None = None) -> set[str]:
    found: set[str] = set()
    for path in paths:
        if path == SELF:
            assigned = code.attributes.get(attr, {UNKNOWN})
            found |= assigned - {UNKNOWN}
            if UNKNOWN in assigned or code.reaches:
                found.add(f"?.{attr}")
        elif path == NUMBERS and attr in meaning.VIEWS:
            found.add(NUMBERS)
        elif path in (NUMBERS, "numpy()") and attr == "base":  # of x.numpy() it is x
            found.add(UNKNOWN)
        else:
            found |= follow(code, f"{path}.{attr}", seen or set())
    return found


def _result(code: Code, scope: Scope, path: str, node: ast.Call) -> set[str]:
    """What a call gives: the results of a function of the folder, or what is known of a module."""
    if _gives_numbers(code, scope, path, node):
        return {NUMBERS}
    for owner in meaning.OWN_OBJECTS:
        if path.startswith(owner) and path[len(owner) : len(owner) + 1] in ("", ".", "("):
            return {f"{owner}()"}
    if path in meaning.CONTAINERS:
        return {f"{path}()"}
    if path.startswith(NUMBERS):
        return {"numpy()"}
    return follow(code, f"{path}()", set()) if owner_of(code, path) else {UNKNOWN}


def _gives_numbers(code: Code, scope: Scope, path: str, node: ast.Call) -> bool:
    """Whether a call gives numbers: by what is called, or as it is given nothing else.

    Given something else, numpy may return what is in an array of objects, or a tensor.
    """
    owner, _, name = path.rpartition(".")
    if owner == UNKNOWN:
        return name == "numpy" and "numpy" not in code.attributes
    if path in meaning.NUMBER_MAKERS or (owner == NUMBERS and name in meaning.ARRANGING):
        return True
    if owner != NUMBERS and not (owner in ("numpy", "math") and (node.args or node.keywords)):
        return False
    types = [item.value for item in node.keywords if item.arg == "dtype"]
    values = [item.value for item in node.keywords if item.arg != "dtype"]
    if owner == NUMBERS and name in ("astype", "view"):
        types += node.args
    elif path in meaning.SHAPED_MAKERS:
        types += [
            item for item in node.args if item is not node.args[0] or isinstance(item, ast.Starred)
        ]
    elif not types or path not in meaning.ARRAY_MAKERS:
        values += node.args
    return all(_is_type(path) for path in resolve_all(code, scope, types)) and all(
        _is_number(path)
        for value in values
        for path in resolve_all(
            code, scope, value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
        )
    )


def _is_type(path: str) -> bool:
    """Whether a path is a type of numbers, or its name."""
    text = path.removeprefix("str:").removesuffix("()")
    either = {path, f"numpy.{text}", f"builtins.{text}"}
    return path == f"{NUMBERS}.dtype" or not either.isdisjoint(meaning.NUMBER_MAKERS)


def follow(code: Code, path: str, seen: set[str]) -> set[str]:
    """What a path stands for: a name of a module of the folder may be an alias there."""
    module = owner_of(code, path)
    if module is None:
        return {_shortened(path)}
    if path == module.name or path in seen:
        return {path}
    seen.add(path)
    name, _, more = path.removeprefix(module.name + ".").partition(".")
    if name.endswith("()"):
        meant = module.scope.names.get(name, {UNKNOWN})
    else:
        meant = _lookup(code, module.scope, name, seen)
    found: set[str] = set()
    for item in meant:
        if item == f"{module.name}.{name}":
            found.add(f"{item}.{more}" if more else item)
        else:
            found |= _below(code, {item}, more, seen) if more else follow(code, item, seen)
    return found


def _shortened(path: str) -> str:
    """A path without what tells nothing: of an object only the last attribute counts."""
    parts = path.split(".")
    modules = [i for i, part in enumerate(parts) if part in meaning.EMBEDDED]
    if modules and parts[0] != UNKNOWN:
        return ".".join(parts[modules[-1] :])
    objects = [i for i, part in enumerate(parts[:-1]) if part == UNKNOWN or part.endswith("()")]
    return ".".join([*parts[: objects[-1] + 1], parts[-1]]) if objects else path


def _lookup(code: Code, scope: Scope, name: str, seen: set[str]) -> set[str]:
    """The paths a name stands for where it is used."""
    at: Scope | None = scope
    while at:
        if name in at.names and (at is scope or at.kind is not ast.ClassDef):
            return {item for path in at.names[name] for item in follow(code, path, seen)}
        at = at.parent
    found: set[str] = set()
    if hasattr(builtins, name) or name == "__builtins__":
        found.add(f"builtins.{name}")
    for star in code.modules[scope.module].scope.stars:
        owner = code.modules.get(star)
        if owner is None and (not found or name in meaning.STRICT.methods):
            found.add(f"{star}.{name}")
        elif owner:
            found |= follow(code, f"{star}.{name}", seen) - {UNKNOWN}
    return found or {UNKNOWN}
