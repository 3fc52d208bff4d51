"""The names that statements of a pass folder bind: assignments, loops, definitions, calls."""

import ast
from collections.abc import Set

from passnet.errors import PassFolderError
from passnet.judge.inspection import rules as meaning
from passnet.judge.inspection.names import (
    SELF,
    UNKNOWN,
    assigned,
    constant_path,
    follow,
    resolve,
)
from passnet.judge.inspection.sources import (
    Code,
    imports_of,
    is_class,
    module_of,
    scope_of_iterable,
    scope_within,
)
from passnet.passes.folder import CALLABLES, PACKAGE

MAX_PATHS = 64
MAX_ROUNDS = 50
"""Most rounds of following names through each other until nothing changes."""


def bind_names(code: Code) -> None:
    """Resolve all names of a folder from the names that they come from.

    Raises PassFolderError for a name that stands for too much, or in too many steps.
    """
    unnamed = ast.Name | ast.Attribute | ast.Constant
    nodes = [(scope, node) for scope, node in code.nodes if not isinstance(node, unnamed)]
    for _ in range(MAX_ROUNDS):
        code.grew = False
        for scope, node in nodes:
            code.file = module_of(code, scope).file
            _bind(code, scope, node)
        if not code.grew:
            unbound = [paths for paths in code.names.values() if not paths]
            if code.settled and not unbound:
                return
            if code.settled:  # such as parameters of an uncalled function
                for paths in unbound:
                    paths.add(UNKNOWN)
            code.settled = True
            code.known.clear()
    raise PassFolderError(f"{code.roots[PACKAGE]}: names stand for each other in too many steps")


def _bind(code: Code, scope: str, node: ast.AST) -> None:
    module, _, inner = scope.partition("/")
    match node:
        case ast.Import() | ast.ImportFrom():
            for name, source, _ in imports_of(code, code.modules[module], node):
                if name == "*":
                    code.modules[module].stars.add(source)
                    for path, paths in list(code.names.items()):
                        owner, _, own_name = path.rpartition("/")
                        if owner == source:
                            _add(code, f"{module}/{own_name}", paths)
                else:
                    _add(code, f"{scope}/{name}", follow(code, source))
        case ast.ClassDef(name):
            _add(code, f"{scope}/{name}", {UNKNOWN if inner else scope_within(scope, node)})
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            _bind_function(code, scope, node)
        case ast.Global(names) | ast.Nonlocal(names):
            outer = module if isinstance(node, ast.Global) else scope.rpartition("/")[0]
            code.known.clear()
            code.elsewhere |= {f"{scope}/{name}": f"{outer}/{name}" for name in names}
        case ast.Assign(targets, value):
            if isinstance(value, ast.Call) and (inner := scope_within(scope, node)) != scope:
                _add(code, inner.rpartition("@")[0], {inner})  # a pattern that a call builds
            for target in targets:
                _assign(code, scope, target, scope, value)
        case ast.AnnAssign(target=target, value=value):
            _assign(code, scope, target, scope, value)
        case ast.AugAssign(target, op, value):
            _assign(code, scope, target, scope, ast.BinOp(target, op, value))
        case ast.NamedExpr(target, value):
            holder = scope
            while hasattr(code.definitions.get(holder), "generators"):
                holder = holder.rpartition("/")[0]
            _assign(code, holder, target, scope, value)
        case ast.For(target, iterable) | ast.comprehension(target, iterable):
            outer = scope_of_iterable(code, scope, node)
            _assign(code, scope, target, outer, ast.Starred(iterable))
        case ast.AsyncFor(target) | ast.withitem(_, target) if target:
            _assign(code, scope, target, scope, None)
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            _add(code, f"{scope}/{name}", {UNKNOWN})
        case ast.Return(ast.expr() as value) | (ast.Yield() | ast.YieldFrom() as value):
            if f"{scope}()" in code.names:
                _add(code, f"{scope}()", resolve(code, scope, value))
        case ast.Call():
            _bind_call(code, scope, node)


def _bind_function(
    code: Code, scope: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
) -> None:
    path, listed = scope_within(scope, node), node.args
    if not isinstance(node, ast.Lambda):
        _add(code, f"{scope}/{node.name}", {UNKNOWN if "/" in scope else path})
        decorators = resolve(code, scope, *node.decorator_list)
        keeps_results = all(decorator.startswith("functools.") for decorator in decorators)
        if keeps_results and bool(decorators) == bool(node.decorator_list):
            _add(code, f"{path}()", {UNKNOWN} if isinstance(node, ast.AsyncFunctionDef) else set())
    positional = [*listed.posonlyargs, *listed.args]
    is_method, is_known = is_class(code, scope), _has_known_calls(code, path)
    defaults = dict(zip(listed.kwonlyargs, listed.kw_defaults, strict=True))
    defaults |= zip(positional[::-1], listed.defaults[::-1], strict=False)
    for parameter in ast.iter_child_nodes(listed):
        if isinstance(parameter, ast.arg):
            is_self = is_known and is_method and parameter in positional[:1]
            is_open = not is_known or is_method or parameter in (listed.vararg, listed.kwarg)
            passed = {SELF} if is_self else {UNKNOWN} if is_open else set()
            default = filter(None, [defaults.get(parameter)])
            _add(code, f"{path}/{parameter.arg}", passed | resolve(code, scope, *default))


def _has_known_calls(code: Code, path: str) -> bool:
    holder = path.rpartition("/")[0]
    match code.definitions[path], code.definitions.get(holder):
        case ast.FunctionDef(name, decorator_list=[]), ast.ClassDef(owner):
            uses = {name, owner, f".{owner}"}
            return is_plain_class(code, holder) and code.handed_on.isdisjoint(uses)
        case ast.FunctionDef(name, decorator_list=[]), _ if name not in CALLABLES:
            uses = {name, f".{name}"}
            functions = code.names.get(f"{holder}/{name}", set()) & code.definitions.keys()
            is_only_called = functions <= {path} and code.handed_on.isdisjoint(uses)
            return is_only_called and not name.startswith("__")
    return False


def is_plain_class(code: Code, path: str, within: frozenset[str] = frozenset()) -> bool:
    """Return whether objects of a class have only its own attributes, and are no tensors."""
    match code.definitions.get(path):
        case ast.ClassDef(_, bases, keywords, _, decorators) if path not in within:
            parts = [*bases, *decorators, *(keyword.value for keyword in keywords)]
            made_of = resolve(code, path.rpartition("/")[0], *parts)
            return all(is_plain_class(code, base, within | {path}) for base in made_of)
    return path in meaning.BASES or path in within


def is_own(code: Code, scope: str, node: ast.expr, steps: int = 0) -> bool:
    """Return whether an expression is a plain class of the folder, or an object of one."""
    if isinstance(node, ast.Call):
        return is_own(code, scope, node.func, steps + 1) and isinstance(node.func, ast.Name)
    if not isinstance(node, ast.Name) or steps > MAX_PATHS:
        return False
    holder = scope
    while holder and f"{holder}/{node.id}" not in code.names:
        holder = holder.rpartition("/")[0]
    match code.definitions.get(holder):
        case ast.FunctionDef(args=ast.arguments([], [ast.arg(first), *_]), decorator_list=[]) if (
            first == node.id
        ):
            return is_plain_class(code, holder.rpartition("/")[0])
    if values := assigned(code, scope, node.id):
        return all(
            isinstance(value, ast.Call) and is_own(code, where, value, steps + 1)
            for where, value in values
        )
    paths = resolve(code, scope, node)
    return bool(paths) and all(
        is_class(code, path) and is_plain_class(code, path) for path in paths
    )


def _bind_call(code: Code, scope: str, call: ast.Call) -> None:
    for path in resolve(code, scope, call.func):
        match code.definitions.get(path):
            case ast.FunctionDef(name, listed, decorator_list=[]) if name not in CALLABLES:
                positional = [*listed.posonlyargs, *listed.args]
            case _:
                continue
        passed = {keyword.arg: keyword.value for keyword in call.keywords}
        is_spread = None in passed or any(isinstance(node, ast.Starred) for node in call.args)
        passed |= {to.arg: node for to, node in zip(positional, call.args, strict=False)}
        for parameter in [*positional, *listed.kwonlyargs]:
            if is_spread or parameter.arg in passed:
                node = None if is_spread else passed[parameter.arg]
                _add(code, f"{path}/{parameter.arg}", resolve(code, scope, node))


def _assign(code: Code, scope: str, target: ast.expr, outer: str, value: ast.expr | None) -> None:
    match target, value:
        case ast.Name(name), ast.List() | ast.Set() | ast.Dict():
            stays_local = code.handed_on.isdisjoint({name, f".{name}"})
            path = constant_path(value) if stays_local else "builtins.list()"
            _add(code, f"{scope}/{name}", {path})
        case ast.Name(name), _:
            _add(code, f"{scope}/{name}", resolve(code, outer, value))
        case ast.Attribute(owner, attr), _:
            paths = resolve(code, outer, value)
            _add(code, f".{attr}", paths)
            for module in resolve(code, scope, owner) & code.modules.keys():
                _add(code, f"{module}/{attr}", paths)
        case ast.Starred(part), _:
            _assign(code, scope, part, outer, None)
        case ((ast.Tuple(parts) | ast.List(parts)), _):
            if any(isinstance(part, ast.Starred) for part in parts):
                value = None
            for index, part in enumerate(parts):
                element = ast.Subscript(value, ast.Constant(index)) if value else None
                _assign(code, scope, part, outer, element)


def _add(code: Code, path: str, paths: Set[str]) -> None:
    path = code.elsewhere.get(path, path)
    scope, _, name = path.rpartition("/")
    if is_class(code, scope):
        _add(code, f".{name}", {UNKNOWN})
    if path not in code.names or not paths <= code.names[path]:
        code.known.clear()
    bound = code.names.setdefault(path, set())
    code.grew |= not paths <= bound
    bound |= paths
    if len(bound) > MAX_PATHS:
        where = path.partition("/")[0] if scope else code.file
        raise PassFolderError(
            f"{where}: {name} stands for more than {MAX_PATHS} things; use several names"
        )
