"""Names in the code of a pass folder: what dotted path each expression stands for.

Every expression is followed to a path where its text tells one: through imports, other modules of
the folder, simple assignments, defaults, and the results of plain functions. A path is
`torch.nn.functional.softmax`, or `?.softmax` for an attribute of an object of unknown origin, or
`numpy.zeros()` for what a call gives. Where a name is assigned in several places it stands for all.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from passnet.errors import PassFolderError
from passnet.judge import rules as meaning
from passnet.judge.finding import Finding
from passnet.judge.rules import Rules
from passnet.passes.folder import MAX_FILE_BYTES, PACKAGE

MAX_MODULES = 100
MAX_PATHS = 64
UNKNOWN = "?"

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LITERALS: dict[type[ast.AST], str] = {
    ast.JoinedStr: "str",
    ast.List: "list",
    ast.ListComp: "list",
    ast.Tuple: "tuple",
    ast.Set: "set",
    ast.SetComp: "set",
    ast.Dict: "dict",
    ast.DictComp: "dict",
    ast.Constant: "str",
}


@dataclass(eq=False, slots=True)
class Scope:
    """The names of a module, class, function or comprehension, and the paths they stand for."""

    kind: type[ast.AST]
    module: str
    parent: Scope | None = None
    names: dict[str, set[str]] = field(default_factory=dict)
    elsewhere: dict[str, Scope] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Module:
    """A file of the folder, and the scope of its module."""

    name: str
    place: str
    is_package: bool
    is_pass: bool
    tree: ast.Module
    lines: list[str]
    scope: Scope


@dataclass(slots=True)
class Code:
    """The state of one inspection."""

    roots: dict[str, Path]
    modules: dict[str, Module] = field(default_factory=dict)
    scopes: dict[ast.AST, Scope] = field(default_factory=dict)
    found: dict[tuple[str, str, int], Finding] = field(default_factory=dict)


def load_module(code: Code, name: str, is_pass: bool = False) -> None:
    """Read a module of the folder and those it imports; a name that is no file of it is passed."""
    path = _file(code, name)
    if path is None or name in code.modules:
        return
    if len(code.modules) == MAX_MODULES:
        raise PassFolderError(f"{path}: more than {MAX_MODULES} modules; put some of them together")
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise PassFolderError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        text = path.read_bytes()
        tree = ast.parse(text)  # bytes, so that a declared encoding counts as it does for Python
    except SyntaxError as cause:
        raise PassFolderError(f"{path}:{cause.lineno}: not Python: {cause.msg}") from cause
    except (OSError, RecursionError, MemoryError, ValueError) as cause:
        raise PassFolderError(f"{path}: cannot be read: {cause}") from cause
    is_package = path.name == "__init__.py"
    root, _, inner = name.partition(".")
    shown = inner.replace(".", "/") + ("/__init__.py" if is_package else ".py")
    place = shown if root == PACKAGE else f"{root}/{shown}"
    lines = text.decode("utf-8", "replace").splitlines()
    scope = Scope(ast.Module, name)
    module = Module(name, place, is_package, is_pass, tree, lines, scope)
    code.modules[name] = module
    for node in ast.walk(tree):
        for _, _, used in imports_of(code, name, node):
            parts = used.split(".")
            for count in range(2, len(parts) + 1):
                load_module(code, ".".join(parts[:count]))


def _file(code: Code, name: str) -> Path | None:
    """The file of a module, if it is in the folder."""
    root, *inner = name.split(".")
    if root not in code.roots or not inner:
        return None
    path = code.roots[root].joinpath(*inner)
    for file in (path / "__init__.py", path.with_name(path.name + ".py")):
        if file.is_file():
            return file
    return None


def imports_of(code: Code, module: str, node: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Of each name that a statement imports: itself, what it stands for, what is loaded."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name.split(".")[0]
            yield alias.asname or root, alias.name if alias.asname else root, alias.name
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = module.split(".")
            up = node.level - code.modules[module].is_package
            base = ".".join(parts[: max(len(parts) - up, 0)] + ([base] if base else []))
        for alias in node.names:
            path = base if alias.name == "*" else f"{base}.{alias.name}"
            yield alias.asname or alias.name, path, path


def bind_names(code: Code, module: Module, _: Rules) -> None:
    """Note what the names of a module stand for."""
    for node in module.tree.body:
        _bind(code, module.scope, node)


def _bind(code: Code, scope: Scope, node: ast.AST) -> None:
    """Enter what a statement or expression gives names to, in its own scope and those within."""
    match node:
        case ast.Import() | ast.ImportFrom():
            for name, path, _ in imports_of(code, scope.module, node):
                if name == "*":
                    scope.stars.append(path)
                else:
                    _add(scope, name, {path})
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
            _bind_definition(code, scope, node)
            return
        case ast.Global() | ast.Nonlocal():
            top = code.modules[scope.module].scope
            outer = top if isinstance(node, ast.Global) else scope.parent or top
            scope.elsewhere.update(dict.fromkeys(node.names, outer))
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                _assign(code, scope, target, value)
            _bind(code, scope, value)
            return
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            _assign(code, scope, target, value)
            _bind(code, scope, value)
            return
        case ast.NamedExpr(target=target, value=value):
            owner = scope
            while owner.kind in _COMPREHENSIONS and owner.parent:
                owner = owner.parent
            _add(owner, target.id, resolve(code, scope, value))
            _bind(code, scope, value)
            return
        case ast.Return(value=ast.expr() as value) if scope.result:
            _add(code.modules[scope.module].scope, scope.result, resolve(code, scope, value))
        case ast.Name(id=name, ctx=ast.Store()):
            _add(scope, name, {UNKNOWN})
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            _add(scope, name, {UNKNOWN})
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            _add(scope, name, {UNKNOWN})
    inner = scope
    if isinstance(node, _COMPREHENSIONS):
        inner = code.scopes.setdefault(node, Scope(type(node), scope.module, scope))
    for child in ast.iter_child_nodes(node):
        _bind(code, inner, child)


def _bind_definition(code: Code, scope: Scope, node: Function | ast.ClassDef) -> None:
    name = "" if isinstance(node, ast.Lambda) else node.name
    inner = code.scopes.setdefault(node, Scope(type(node), scope.module, scope))
    outside, inside = parts_of(node)
    if name:
        _add(scope, name, {f"{scope.module}.{name}"} if scope.kind is ast.Module else {UNKNOWN})
    if not isinstance(node, ast.ClassDef):
        listed = [*node.args.posonlyargs, *node.args.args]
        given = dict(zip(reversed(listed), reversed(node.args.defaults), strict=False))
        only = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        given |= {item: value for item, value in only if value}
        extra = [item for item in (node.args.vararg, node.args.kwarg) if item]
        for item in [*listed, *node.args.kwonlyargs, *extra]:
            paths = resolve(code, scope, given[item]) if item in given else set()
            _add(inner, item.arg, paths | {UNKNOWN})
        if isinstance(node, ast.FunctionDef) and scope.kind is ast.Module:
            decorators = resolve_all(code, scope, node.decorator_list)
            if all(path.startswith("functools.") for path in decorators):
                inner.result = f"{name}()"
    for child in outside:
        _bind(code, scope, child)
    for child in inside:
        _bind(code, inner, child)


def parts_of(node: Function | ast.ClassDef) -> tuple[list[ast.AST], list[ast.AST]]:
    """What of a definition is evaluated where it stands, and what in its own scope."""
    inside: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
    own = {id(child) for child in inside}
    return [child for child in ast.iter_child_nodes(node) if id(child) not in own], inside


def _assign(code: Code, scope: Scope, target: ast.expr, value: ast.expr) -> None:
    match target, value:
        case ast.Name(id=name), _:
            _add(scope, name, resolve(code, scope, value))
        case ((ast.Tuple() | ast.List()), (ast.Tuple() | ast.List())) if len(target.elts) == len(
            value.elts
        ) and not any(isinstance(item, ast.Starred) for item in [*target.elts, *value.elts]):
            for part, given in zip(target.elts, value.elts, strict=True):
                _assign(code, scope, part, given)
        case _:
            _bind(code, scope, target)


def _add(scope: Scope, name: str, paths: set[str]) -> None:
    meant = scope.elsewhere.get(name, scope).names.setdefault(name, set())
    meant |= paths
    if len(meant) > MAX_PATHS:
        raise PassFolderError(
            f"{scope.module}: {name} stands for more than {MAX_PATHS} things; use several names"
        )


def resolve_all(code: Code, scope: Scope, nodes: Iterable[ast.expr]) -> set[str]:
    """The paths that any of some expressions may stand for."""
    return {path for node in nodes for path in resolve(code, scope, node)}


def resolve(code: Code, scope: Scope, node: ast.expr) -> set[str]:
    """The paths an expression may stand for; at least one, which is `?` if nothing is known."""
    match node:
        case ast.Name(id=name):
            return _lookup(code, scope, name, set())
        case ast.Attribute(value=value, attr=attr):
            return _below(code, resolve(code, scope, value), attr)
        case ast.Call(func=func, args=args):
            called = resolve(code, scope, func)
            found = {item for path in called for item in _result(code, path)}
            if "builtins.getattr" in called and (attr := text_of(args[1:2])):
                found |= _below(code, resolve(code, scope, args[0]), attr)
            return found
        case ast.IfExp(body=body, orelse=orelse):
            return resolve_all(code, scope, [body, orelse])
        case ast.BoolOp(values=values):
            return resolve_all(code, scope, values)
        case ast.NamedExpr(value=value):
            return resolve(code, scope, value)
    literal = _LITERALS.get(type(node))
    return {f"builtins.{literal}()"} if literal else {UNKNOWN}


def text_of(nodes: list[ast.expr]) -> str | None:
    """The string that an argument is, if it is there and written out."""
    match nodes:
        case [ast.Constant(value=str(text))]:
            return text
    return None


def _below(code: Code, paths: set[str], attr: str) -> set[str]:
    return {item for path in paths for item in follow(code, f"{path}.{attr}", set())}


def _result(code: Code, path: str) -> set[str]:
    """What a call gives: the results of a function of the folder, or what is known of a module."""
    for owner in meaning.OWN_OBJECTS:
        if path.removeprefix(owner)[:1] in (".", "(") and path.startswith(owner):
            return {f"{owner}()"}
    if path.startswith("?") and path.endswith(".numpy"):
        return {"numpy()"}
    if path in meaning.CONTAINERS:
        return {f"{path}()"}
    return follow(code, f"{path}()", set()) if owner_of(code, path) else {UNKNOWN}


def owner_of(code: Code, path: str) -> Module | None:
    """The module of the folder in which a path begins."""
    while path and path not in code.modules:
        path = path.rpartition(".")[0]
    return code.modules.get(path)


def follow(code: Code, path: str, seen: set[str]) -> set[str]:
    """What a path stands for: a name of a module of the folder may be an alias there."""
    module = owner_of(code, path)
    if module is None:
        parts = path.split(".")
        starts = [i for i, part in enumerate(parts) if part in meaning.EMBEDDED]
        return {".".join(parts[starts[-1] :] if starts and parts[0] != UNKNOWN else parts)}
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
        whole = f"{item}.{more}" if more else item
        found |= {whole} if item == f"{module.name}.{name}" else follow(code, whole, seen)
    return found or {UNKNOWN}


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
