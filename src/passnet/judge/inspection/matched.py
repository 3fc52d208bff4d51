"""Code that only patterns use: statements of modules whose names nothing else reads."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from passnet.judge.inspection.names import UNKNOWN, attributes_by_name, resolve
from passnet.judge.inspection.sources import Code, imports_of, is_class, scope_within
from passnet.passes.folder import CALLABLES

_USED_UNNAMED = {*CALLABLES, "guard", "guards"} - {"pattern"}
"""Names of a pass that a harness reads."""


def find_matched(code: Code) -> None:
    """Find the definitions and statements of a folder that serve patterns alone, or nothing.

    A statement does if all names that it binds, or whose objects it changes, are used only by such
    statements. `pattern` of a pass does, unless other code imports it.
    """
    statements = {
        statement: module
        for module, node in code.nodes
        if isinstance(node, ast.Module)
        for statement in node.body
    }
    of = {node: statement for statement in statements for node in ast.walk(statement)}
    aliases = dict(_aliases(code))
    bound = {
        statement: {_origin(aliases, f"{module}/{name}") for name in _bound(statement) or ()}
        for statement, module in statements.items()
    }
    users: dict[str, set[ast.AST]] = defaultdict(set)
    for scope, node in code.nodes:
        for name in _used(code, aliases, scope, node):
            users[_origin(aliases, name)].add(of.get(node, node))
    roots = {
        statement
        for statement, module in statements.items()
        if code.modules[module].is_pass and _bound(statement) == {"pattern"}
    }
    matched = {name for names in bound.values() for name in names}
    for statement, module in statements.items():
        if statement not in roots and not _is_plain(code, module, statement):
            matched -= bound[statement]
    for name in [*matched, *aliases]:
        scope, _, own_name = name.rpartition("/")
        is_foreign = any(path.isidentifier() for path in code.names.get(name, ()))
        is_read = own_name in _USED_UNNAMED or own_name.startswith("__")
        if is_foreign or is_read or is_class(code, scope):
            matched.discard(_origin(aliases, name))
    patterns = {_origin(aliases, f"{name}/pattern") for name in code.passes}
    reached = _reached(patterns, bound, users)
    homes = {name.rpartition("/")[0] for name in reached} - code.passes.keys()
    unused = {
        name
        for statement, names in bound.items()
        if isinstance(statement, ast.FunctionDef)
        for name in names
        if not users[name] and statements[statement] in homes
    }
    is_settled, serving = False, set[ast.stmt]()
    while not is_settled:
        serving = roots | {one for one, names in bound.items() if names and names <= matched}
        used_elsewhere = {name for name in matched if not users[name] <= serving}
        used_elsewhere |= matched - _reached(patterns, bound, users) - unused
        matched -= used_elsewhere
        is_settled = not used_elsewhere
    code.matched = matched
    defaults = {
        node
        for _, function in code.nodes
        if isinstance(function, ast.FunctionDef | ast.Lambda)
        for node in ast.walk(function.args)
    }
    for scope, node in code.nodes:
        if of.get(node) in serving:
            code.serving |= {node} if node not in defaults else set()
            inner = scope_within(scope, node)
            if scope in code.modules and inner != scope:
                code.only_matched.add(inner)


def _reached(
    patterns: set[str], bound: dict[ast.stmt, set[str]], users: dict[str, set[ast.AST]]
) -> set[str]:
    """Return the names that patterns use, by way of others too."""
    reached, num_reached = set(patterns), -1
    while len(reached) > num_reached:
        num_reached = len(reached)
        serving = {statement for statement, names in bound.items() if names & reached}
        reached |= {name for name, by in users.items() if by & serving}
    return reached


def _bound(statement: ast.stmt) -> set[str] | None:
    """Return the names that a statement of a module binds or changes; None if it does more."""
    match statement:
        case ast.FunctionDef(name) | ast.ClassDef(name):
            return {name}
        case ast.Assign(targets=targets):
            names = [_root(part) for target in targets for part in _parts(target)]
            return {name for name in names if name} if all(names) else None
        case ast.AnnAssign(target=ast.Name(name)) | ast.AugAssign(target=ast.Name(name)):
            return {name}
        case ast.Expr(ast.Call(ast.Attribute(owner))) if name := _root(owner):
            return {name}
        case ast.If() | ast.Try() | ast.With():
            names = set[str]()
            for inner in ast.iter_child_nodes(statement):
                inners = inner.body if isinstance(inner, ast.ExceptHandler) else [inner]
                for part in inners:
                    if isinstance(part, ast.stmt) and not isinstance(part, ast.Pass | ast.Import):
                        found = _bound(part)
                        if found is None:
                            return None
                        names |= found
            return names
    return None


def _parts(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple | ast.List) else [target]


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _is_plain(code: Code, module: str, statement: ast.stmt) -> bool:
    """Return whether a statement hands nothing to decorators and unknown functions."""
    match statement:
        case ast.FunctionDef(decorator_list=decorators) | ast.ClassDef(decorator_list=decorators):
            used = resolve(code, module, *decorators)
            return all(path.startswith("functools.") for path in used)
        case ast.Expr() | ast.Assign() if any(
            UNKNOWN in resolve(code, module, node.func)
            for node in ast.walk(statement)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ):
            return False
    return True


def _aliases(code: Code) -> Iterator[tuple[str, str]]:
    """Yield imported names of the folder's own modules, and their origins."""
    for scope, node in code.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name, source, _ in imports_of(code, code.modules[scope.partition("/")[0]], node):
                home, _, own_name = source.rpartition(".")
                if name == "*" and source in code.modules:
                    for path in code.names:
                        owner, _, own_name = path.rpartition("/")
                        if owner == source:
                            yield f"{scope}/{own_name}", path
                elif home in code.modules and source not in code.modules:
                    yield f"{scope}/{name}", f"{home}/{own_name}"


def _origin(aliases: dict[str, str], name: str) -> str:
    seen = {name}
    while (name := aliases.get(name, name)) not in seen:
        seen.add(name)
    return name


def _used(code: Code, aliases: dict[str, str], scope: str, node: ast.AST) -> Iterator[str]:
    """Yield the names of modules that a node uses, as `module/name`."""
    attributes = []
    match node:
        case ast.Global(names):
            yield from (f"{scope.partition('/')[0]}/{name}" for name in names)
        case ast.Call(func) if "builtins.getattr" in resolve(code, scope, func):
            attributes = attributes_by_name(code, scope, node)[0]
    while isinstance(node, ast.Attribute):
        attributes.append(node)
        node = node.value
    for attribute in attributes:
        for module in resolve(code, scope, attribute.value) & code.modules.keys():
            yield f"{module}/{attribute.attr}"
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        holder = scope
        while holder and f"{holder}/{node.id}" not in code.names:
            holder = holder.rpartition("/")[0]
        path = code.elsewhere.get(f"{holder}/{node.id}", f"{holder}/{node.id}")
        if path in aliases or path.rpartition("/")[0] in code.modules:
            yield path
