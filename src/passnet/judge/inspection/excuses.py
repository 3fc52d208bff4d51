"""Uses of names that are no finding in their context: lookups of own modules, and patterns."""

import ast
import functools
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from passnet.judge.inspection import rules as meaning
from passnet.judge.inspection.bindings import is_plain_class
from passnet.judge.inspection.names import assigned, location_of, own_modules, resolve
from passnet.judge.inspection.sources import Code, is_class, is_traced, module_of, scope_within
from passnet.passes.folder import CALLABLES, PACKAGE

_SAME = meaning.words(
    "builtins. str pathlib. Path PurePath os. fspath path.abspath path.realpath path.normpath"
)
"""Functions that return the path that they are given, in another form."""
_SAME_METHODS = ("resolve", "absolute", "as_posix", "expanduser")
_LOOKUPS = meaning.words("sys.modules. get setdefault pop")
_ADDERS = meaning.words("sys.path. insert append")
_BY_FILE = meaning.words("importlib.util.spec_from_file_location")
_BY_NAME = meaning.words("importlib.import_module")
_USED_UNNAMED = {*CALLABLES, "guard"} - {"pattern"}
"""Names of a pass that a harness reads."""
MAX_STEPS = 20
"""Most names of a path to follow through each other."""


def excuse(code: Code) -> None:
    """Excuse uses in a folder whose names are all bound.

    Excused are the folder itself on Python's path, a lookup of one of its own modules, torch in
    functions that only patterns use and in graphs built for a pattern, and the comparison of
    something with a function of torch.
    """
    _excuse_patterns(code)
    is_remembered = _remembers_what_it_is_compared_with(code)
    for scope, node in code.nodes:
        if isinstance(node, ast.Module):
            _excuse_graphs(code, scope, node)
    for scope, node in code.nodes:
        match node:
            case ast.Call(func, args):
                called = resolve(code, scope, func)
                is_excused = (
                    (called <= _ADDERS and args and folder_path(code, scope, args[-1]) is not None)
                    or (called <= _LOOKUPS and args and _is_own_key(code, scope, args[0]))
                    or (
                        called <= meaning.LOADERS
                        and own_modules(code, scope, node)
                        and (
                            called != _BY_FILE
                            or folder_path(code, scope, location_of(node)) is not None
                        )
                        and (called != _BY_NAME or _is_own_name(code, scope, node))
                    )
                )
                code.excused |= {func} if called and is_excused else set()
            case ast.Subscript(owner, key):
                if resolve(code, scope, owner) == {"sys.modules"} and _is_own_key(code, scope, key):
                    code.excused.add(owner)
            case ast.Assign([ast.Name()], ast.Name() | ast.Attribute() as value) if (
                scope in code.modules
            ):  # an alias of torch: its use counts
                paths = resolve(code, scope, value)
                if all(path.startswith("torch.") for path in paths):
                    code.excused.add(value)
            case ast.Compare(left, ops, comparators) if (
                all(isinstance(op, ast.Eq | ast.NotEq) for op in ops)
                and not is_remembered
                and not is_traced(code, scope)
            ):
                for operand in (left, *comparators):
                    if all(path.startswith("torch.") for path in resolve(code, scope, operand)):
                        code.excused.add(operand)
            case ast.Compare(key, [ast.In() | ast.NotIn()], [owner]):
                owners = resolve(code, scope, owner)
                if owners == {"sys.path"} or (
                    owners == {"sys.modules"} and _is_own_key(code, scope, key)
                ):
                    code.excused.add(owner)


def _remembers_what_it_is_compared_with(code: Code) -> bool:
    mentioned = code.handed_on.union(name.rpartition("/")[2] for name in code.names)
    return (
        code.reaches
        or any(name in mentioned or f".{name}" in mentioned for name in meaning.COMPARISONS)
        or any(
            isinstance(node, ast.ClassDef) and not is_plain_class(code, path)
            for path, node in code.definitions.items()
        )
    )


def _excuse_patterns(code: Code) -> None:
    users: dict[str, set[str]] = defaultdict(set)
    for scope, node in code.nodes:
        is_by_name = isinstance(node, ast.Call) and "builtins.getattr" in resolve(
            code, scope, node.func
        )
        if is_by_name or isinstance(getattr(node, "ctx", None), ast.Load):
            for path in resolve(code, scope, node):
                if path in code.definitions and path.count("/") == 1:
                    users[path].add(scope)
    used_unnamed = set[str]()
    for bound, paths in code.names.items():
        scope, _, name = bound.rpartition("/")
        if name in _USED_UNNAMED or name.startswith("__") or is_class(code, scope):
            used_unnamed |= paths
    named_lambdas = {
        scope_within(scope, node.value)
        for scope, node in code.nodes
        if isinstance(node, ast.Assign) and [*map(type, node.targets)] == [ast.Name]
    }
    for path in list(users):
        node = code.definitions[path]
        decorators = getattr(node, "decorator_list", [])
        is_plain = all(
            used.startswith("functools.")
            for used in resolve(code, path.partition("/")[0], *decorators)
        )
        is_named = not isinstance(node, ast.Lambda) or path in named_lambdas
        if is_named and is_plain and path not in used_unnamed:
            code.only_matched.add(path)
    is_settled = False
    while not is_settled:
        used_elsewhere = {
            path
            for path in code.only_matched
            if not all(is_traced(code, scope, ("pattern",)) for scope in users[path])
        }
        code.only_matched -= used_elsewhere
        is_settled = not used_elsewhere
    for path in code.only_matched:
        code.excused |= set(getattr(code.definitions[path], "bases", []))


_GRAPHS = meaning.words("torch.fx. Graph graph.Graph")
_NODE_MAKERS = meaning.words("placeholder call_function call_method output lint")


def _excuse_graphs(code: Code, module: str, tree: ast.Module) -> None:
    """Excuse torch in graphs for a pattern, if nothing takes a part of one out again."""
    built: set[str] = set()
    excused: set[ast.AST] = set()
    for statement in tree.body:
        match statement:
            case ast.Assign([ast.Name(name)], ast.Call(func)):
                if resolve(code, module, func) <= _GRAPHS:
                    built.add(name)
                    excused.add(func)
    names, used = set(built), set[ast.AST]()
    for statement in tree.body:
        call = _node_maker(statement, built)
        if call is None:
            continue
        used |= {call.func.value, *_listed(call)}
        names |= {target.id for target in getattr(statement, "targets", ())}
        excused |= set(call.args[:1]) if call.func.attr == "call_function" else set()
    for statement in tree.body:
        match statement:
            case ast.Assign([ast.Name("pattern")], ast.Call() as call):
                used |= set(_listed(call))
    taken_apart = set()
    for scope, node in code.nodes:
        while isinstance(node, ast.Attribute):
            node = node.value
        match node:
            case ast.Name(name, ast.Load()) if name in names and node not in used:
                taken_apart |= {name} if _holder(code, scope, name) == module else set()
    imported = {
        alias.name
        for _, node in code.nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    reached = {name.removeprefix(".") for name in code.handed_on if name.startswith(".")}
    if names.isdisjoint(taken_apart | imported | reached) and "*" not in imported:
        code.excused |= excused


def _holder(code: Code, scope: str, name: str) -> str:
    while scope and f"{scope}/{name}" not in code.names:
        scope = scope.rpartition("/")[0]
    return scope


def _node_maker(statement: ast.stmt, graphs: Collection[str]) -> Any:
    """Return the call of a statement, if it only adds a node to one of some graphs."""
    match statement:
        case ast.Assign(
            [ast.Name()], ast.Call(ast.Attribute(ast.Name(graph), attr)) as call
        ) | ast.Expr(ast.Call(ast.Attribute(ast.Name(graph), attr)) as call) if (
            graph in graphs and attr in _NODE_MAKERS
        ):
            return call
    return None


def _listed(node: ast.AST) -> Iterator[ast.Name]:
    match node:
        case ast.Name():
            yield node
        case ast.Call(_, args, keywords):
            for part in (*args, *(keyword.value for keyword in keywords)):
                yield from _listed(part) if not isinstance(part, ast.Call) else ()
        case ast.Tuple(parts) | ast.List(parts) | ast.Dict(values=parts):
            for part in parts:
                yield from _listed(part) if not isinstance(part, ast.Call) else ()


def _is_own_key(code: Code, scope: str, key: ast.expr) -> bool:
    match key:
        case ast.Constant(str(text)):
            root = text.split(".")[0]
            return root in code.roots or root not in meaning.KNOWN_ROOTS
        case ast.Name("__name__" | "__package__"):
            return not code.renames
        case ast.Name():
            values = assigned(code, scope, key.id)
            return len(values) == 1 and _is_own_key(code, *values[0])
        case ast.JoinedStr([ast.FormattedValue(ast.Name("__name__" | "__package__")), *_]):
            return not code.renames
        case ast.BinOp(package, ast.Add(), ast.Constant(str(text))) if text.startswith("."):
            return _is_own_package(code, package)
    return False


def _is_own_name(code: Code, scope: str, call: ast.Call) -> bool:
    match [*call.args, *(keyword.value for keyword in call.keywords)]:
        case [ast.Constant(str(text)), package] if text.startswith("."):
            return _is_own_package(code, package)
        case [name, *_]:
            return _is_own_key(code, scope, name)
    return False


def _is_own_package(code: Code, node: ast.expr) -> bool:
    match node:
        case ast.Name("__name__" | "__package__"):
            return not code.renames
        case ast.Subscript(
            ast.Call(
                ast.Attribute(owner, "split" | "rsplit" | "partition" | "rpartition"),
                [ast.Constant("."), *_],
            ),
            ast.Constant(0),
        ):
            return _is_own_package(code, owner)
    return False


def folder_path(
    code: Code, scope: str, node: ast.expr | None, steps: int = 0
) -> PurePosixPath | None:
    """Return the path within the folder that an expression builds from `__file__`, or None."""
    within = functools.partial(folder_path, code, scope, steps=steps)
    match node:
        case ast.Name("__file__"):
            file = PurePosixPath(module_of(code, scope).file)
            is_input = scope.split(".")[0] != PACKAGE
            return file.relative_to(file.parts[0]) if is_input else file
        case ast.Name(name) if steps < MAX_STEPS:
            values = assigned(code, scope, name)
            return folder_path(code, *values[0], steps + 1) if len(values) == 1 else None
        case ast.Attribute(owner, "parent"):
            return _parent(within(owner), 1)
        case ast.Subscript(ast.Attribute(owner, "parents"), ast.Constant(int(index))):
            return _parent(within(owner), index + 1)
        case ast.BinOp(left, ast.Div(), ast.Constant(str(part))):
            return _joined(within(left), [part])
        case ast.Call(ast.Attribute(owner, name)) if name in _SAME_METHODS:
            return within(owner)
        case ast.Call(ast.Attribute(owner, "with_name"), [ast.Constant(str(name))]):
            return _joined(_parent(within(owner), 1), [name])
        case ast.Call(ast.Attribute(owner, "joinpath"), [*rest]) if within(owner) is not None:
            parts = [part.value for part in rest if isinstance(part, ast.Constant)]
            return _joined(within(owner), parts) if len(parts) == len(rest) else None
        case ast.Call(func, [first, *rest]):
            called = resolve(code, scope, func)
            if called == {"os.path.dirname"}:
                return _parent(within(first), 1)
            if called == {"os.path.join"} or (called and called <= _SAME):
                parts = [part.value for part in rest if isinstance(part, ast.Constant)]
                return _joined(within(first), parts) if len(parts) == len(rest) else None
    return None


def _parent(path: PurePosixPath | None, levels: int) -> PurePosixPath | None:
    if path is None or not 0 < levels <= len(path.parts):
        return None
    return PurePosixPath(*path.parts[:-levels])


def _joined(path: PurePosixPath | None, parts: Sequence[object]) -> PurePosixPath | None:
    whole = path
    for part in parts:
        inner = PurePosixPath(str(part))
        if whole is None or inner.is_absolute():
            return None
        for step in inner.parts:
            whole = _parent(whole, 1) if step == ".." and whole is not None else whole
            whole = whole / step if whole is not None and step != ".." else whole
    return whole
