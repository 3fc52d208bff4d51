"""What the statements of a pass folder bind to names: assignments, loops, definitions, calls."""

from __future__ import annotations

import ast

from passnet.errors import PassFolderError
from passnet.judge.inspection import rules as meaning
from passnet.judge.inspection.names import (
    MAX_ELEMENTS,
    SELF,
    UNKNOWN,
    Function,
    element_of,
    elements,
    operation,
    resolve,
    resolve_all,
)
from passnet.judge.inspection.rules import Rules
from passnet.judge.inspection.sources import Code, Literal, Module, Scope, imports_of

MAX_PATHS = 64

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bind_names(code: Code, module: Module, _: Rules) -> None:
    """Note what the names of a module stand for, as far as is known of those they come from."""
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            module.scope.names.setdefault(f"{node.name}()", set())
    for node in module.tree.body:
        _bind(code, module.scope, node)


def num_paths(code: Code) -> int:
    """How much is known; it grows until all is."""
    names = [paths for scope in _scopes(code) for paths in scope.names.values()]
    return sum(map(len, [*names, *code.attributes.values(), *code.bases.values(), code.handed_on]))


def close_names(code: Code) -> bool:
    """Make a name unknown that nothing was bound to, as the parameters of a function that nobody
    calls; return whether there was one.
    """
    names = [paths for scope in _scopes(code) for paths in scope.names.values()]
    unbound = [paths for paths in [*names, *code.attributes.values()] if not paths]
    for paths in unbound:
        paths.add(UNKNOWN)
    return bool(unbound)


def _scopes(code: Code) -> list[Scope]:
    return [*code.scopes.values(), *(module.scope for module in code.modules.values())]


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
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            _bind_comprehension(code, scope, node)
            return
        case ast.Global() | ast.Nonlocal():
            top = code.modules[scope.module].scope
            outer = top if isinstance(node, ast.Global) else scope.parent or top
            scope.elsewhere.update(dict.fromkeys(node.names, outer))
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                _assign(code, scope, target, scope, value)
            _bind(code, scope, value)
            return
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            _assign(code, scope, target, scope, value)
            _bind(code, scope, value)
            return
        case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
            _add(scope, name, operation(code, scope, op, [target, value]))
            _bind(code, scope, value)
            return
        case ast.NamedExpr(target=target, value=value):
            owner = scope
            while owner.kind in _COMPREHENSIONS and owner.parent:
                owner = owner.parent
            _assign(code, owner, target, scope, value)
            _bind(code, scope, value)
            return
        case ast.For(target=target, iter=iterable):
            _bind_loop(code, scope, target, scope, iterable)
            for child in [iterable, *node.body, *node.orelse]:
                _bind(code, scope, child)
            return
        case ast.Return(value=ast.expr() as value) if scope.result:
            _add(code.modules[scope.module].scope, scope.result, resolve(code, scope, value))
        case ast.Yield() | ast.YieldFrom() if scope.result:
            _add(code.modules[scope.module].scope, scope.result, {UNKNOWN})
        case ast.Call():
            _bind_call(code, scope, node)
        case ast.Attribute(ctx=ast.Store() | ast.Del()):
            _bind_attribute(code, scope, node, {UNKNOWN})
        case ast.Name(id=name, ctx=ast.Store()):
            _add(scope, name, {UNKNOWN})
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            _add(scope, name, {UNKNOWN})
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            _add(scope, name, {UNKNOWN})
    for child in ast.iter_child_nodes(node):
        _bind(code, scope, child)


def _bind_definition(code: Code, scope: Scope, node: Function | ast.ClassDef) -> None:
    name = "" if isinstance(node, ast.Lambda) else node.name
    inner = code.scopes.setdefault(node, Scope(type(node), scope.module, scope))
    outside, inside = parts_of(node)
    path = f"{scope.module}.{name}"
    if name:
        _add(scope, name, {path} if scope.kind is ast.Module else {UNKNOWN})
    if isinstance(node, ast.ClassDef):
        inner.path = path
        code.bases.setdefault(path, set()).update(made_of(code, scope, node))
    else:
        _bind_parameters(code, scope, node, inner)
        if isinstance(node, ast.FunctionDef) and scope.kind is ast.Module:
            decorators = resolve_all(code, scope, node.decorator_list)
            if all(path.startswith("functools.") for path in decorators):
                inner.result = f"{name}()"
    for child in outside:
        _bind(code, scope, child)
    for child in inside:
        _bind(code, inner, child)
    if isinstance(node, ast.ClassDef):
        for attr in inner.names:
            code.attributes.setdefault(attr, set()).add(UNKNOWN)


def parts_of(node: Function | ast.ClassDef) -> tuple[list[ast.AST], list[ast.AST]]:
    """What of a definition is evaluated where it stands, and what in its own scope."""
    inside: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
    own = {id(child) for child in inside}
    return [child for child in ast.iter_child_nodes(node) if id(child) not in own], inside


def made_of(code: Code, scope: Scope, node: ast.ClassDef) -> set[str]:
    """The bases, decorators and metaclass of a class; `f()` for what a call of `f` gives."""
    given = [*node.bases, *node.decorator_list, *(item.value for item in node.keywords)]
    found: set[str] = set()
    for item in given:
        if isinstance(item, ast.Call):
            found |= {f"{path}()" for path in resolve(code, scope, item.func)}
        else:
            found |= resolve(code, scope, item)
    return found


def is_plain_class(code: Code, paths: set[str], seen: frozenset[str] = frozenset()) -> bool:
    """Whether a class that is made of these has no attributes but its own, and makes no tensors."""
    return all(
        path in meaning.BASES
        or path in seen
        or (path in code.bases and is_plain_class(code, code.bases[path], seen | {path}))
        for path in paths
    )


def _bind_parameters(code: Code, scope: Scope, node: Function, inner: Scope) -> None:
    """A parameter stands for its default, and for what all calls give if they are known."""
    listed = [*node.args.posonlyargs, *node.args.args]
    given = dict(zip(reversed(listed), reversed(node.args.defaults), strict=False))
    only = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    given |= {item: value for item, value in only if value}
    by_others = set() if _has_known_calls(code, scope, node, inner) else {UNKNOWN}
    for item in [*listed, *node.args.kwonlyargs]:
        paths = resolve(code, scope, given[item]) if item in given else set()
        is_self = item in listed[:1] and _has_known_self(code, scope, node)
        _add(inner, item.arg, paths | ({SELF} if is_self else by_others))
    for item in filter(None, (node.args.vararg, node.args.kwarg)):
        _add(inner, item.arg, {UNKNOWN})


def _has_known_calls(code: Code, scope: Scope, node: Function, inner: Scope) -> bool:
    """Whether a function is only ever called, by its name, and only by code of the folder."""
    if not isinstance(node, ast.FunctionDef) or node.decorator_list or scope.kind is not ast.Module:
        return False
    name = node.name
    if name in meaning.CALLED_BY_US or name.startswith("__"):
        return False
    code.functions.setdefault(f"{scope.module}.{name}", (node.args, inner))
    return code.handed_on.isdisjoint({name, f".{name}"})


def _has_known_self(code: Code, scope: Scope, node: Function) -> bool:
    """Whether a function is a method that nothing but objects of its class can be given."""
    if not isinstance(node, ast.FunctionDef) or node.decorator_list or not scope.path:
        return False
    name = scope.path.rpartition(".")[2]
    plain = is_plain_class(code, code.bases[scope.path])
    return plain and code.handed_on.isdisjoint({node.name, name, f".{name}"})


def _bind_call(code: Code, scope: Scope, node: ast.Call) -> None:
    """Enter what a call gives to the parameters of functions of the folder."""
    for path in resolve(code, scope, node.func):
        if path not in code.functions:
            continue
        parameters, inner = code.functions[path]
        listed = [*parameters.posonlyargs, *parameters.args]
        named = {item.arg: item.value for item in node.keywords}
        spread = None in named or any(isinstance(item, ast.Starred) for item in node.args)
        named |= {item.arg: value for item, value in zip(listed, node.args, strict=False)}
        for item in [*listed, *parameters.kwonlyargs]:
            if spread:
                _add(inner, item.arg, {UNKNOWN})
            elif item.arg in named:
                _add(inner, item.arg, resolve(code, scope, named[item.arg]))


def _bind_comprehension(
    code: Code, scope: Scope, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
) -> None:
    inner = code.scopes.setdefault(node, Scope(type(node), scope.module, scope))
    for part in node.generators:
        outer = scope if part is node.generators[0] else inner
        _bind_loop(code, inner, part.target, outer, part.iter)
        _bind(code, outer, part.iter)
        for condition in part.ifs:
            _bind(code, inner, condition)
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.comprehension):
            _bind(code, inner, child)


def _bind_loop(
    code: Code, scope: Scope, target: ast.expr, outer: Scope, iterable: ast.expr
) -> None:
    """Enter what a loop gives to its target; `outer` is where what it goes through is evaluated."""
    listed = elements(code, outer, iterable)
    if listed is not None:
        for item in listed:
            _assign(code, scope, target, outer, item)
    elif isinstance(target, ast.Name):
        _add(scope, target.id, {element_of(path) for path in resolve(code, outer, iterable)})
    else:
        _bind(code, scope, target)


def _assign(code: Code, scope: Scope, target: ast.expr, outer: Scope, value: ast.expr) -> None:
    """Enter what is assigned to a target; `outer` is where the value is evaluated."""
    match target, value:
        case ast.Name(id=name), (ast.Tuple() | ast.List() | ast.Set() | ast.Dict()) if _is_literal(
            value
        ):
            path = f"literal:{id(value)}()"
            code.literals.setdefault(path, Literal(value)).names.add(name)
            _add(scope, name, {path})
        case ast.Name(id=name), _:
            _add(scope, name, resolve(code, outer, value))
        case ast.Attribute(), _:
            _bind_attribute(code, scope, target, resolve(code, outer, value))
            _bind(code, scope, target.value)
        case ((ast.Tuple() | ast.List()), (ast.Tuple() | ast.List())) if len(target.elts) == len(
            value.elts
        ) and not any(isinstance(item, ast.Starred) for item in [*target.elts, *value.elts]):
            for part, given in zip(target.elts, value.elts, strict=True):
                _assign(code, scope, part, outer, given)
        case _:
            _bind(code, scope, target)


def _is_literal(node: ast.Tuple | ast.List | ast.Set | ast.Dict) -> bool:
    """Whether a container holds nothing but constants, and tuples of them, and is short."""
    if isinstance(node, ast.Dict):
        items = [*node.keys, *node.values]
    else:
        items = node.elts
    return 0 < len(items) <= 2 * MAX_ELEMENTS and all(
        isinstance(item, ast.Constant) or (isinstance(item, ast.Tuple) and _is_literal(item))
        for item in items
    )


def _bind_attribute(code: Code, scope: Scope, target: ast.Attribute, paths: set[str]) -> None:
    _widen(code.attributes.setdefault(target.attr, set()), paths, f".{target.attr}", scope)
    for path in resolve(code, scope, target.value):
        if path in code.modules:
            _add(code.modules[path].scope, target.attr, paths)


def _add(scope: Scope, name: str, paths: set[str]) -> None:
    _widen(scope.elsewhere.get(name, scope).names.setdefault(name, set()), paths, name, scope)


def _widen(meant: set[str], paths: set[str], name: str, scope: Scope) -> None:
    meant |= paths
    if len(meant) > MAX_PATHS:
        raise PassFolderError(
            f"{scope.module}: {name} stands for more than {MAX_PATHS} things; use several names"
        )
