"""Names in the code of a pass folder: the dotted paths of each expression.

A path is `torch.nn.functional.softmax`, or `module/name@line:column` for a definition of the
folder, or `?.softmax` for an attribute of an object of unknown origin, or `numpy()` for a result of
a module, or one of these:

- `'float32'()`: that string; likewise for short containers that are written out in constants
- `?self`: the object of a method, in a class that is only used to make such objects

A name that is assigned in several places stands for all of its values.
"""

import ast
import builtins
from collections.abc import Set
from functools import partial, reduce
from itertools import islice, product

from passnet.judge.inspection import rules as meaning
from passnet.judge.inspection.sources import Code, is_class, module_of, modules_named, scope_within

MAX_ELEMENTS = 16
"""Most elements of a container that are followed one by one."""

UNKNOWN = "?"
SELF = "?self"
_CONTAINERS = (ast.List, ast.ListComp, ast.Set, ast.SetComp, ast.Dict, ast.DictComp, ast.JoinedStr)


def resolve(code: Code, scope: str, *nodes: ast.AST | None) -> set[str]:
    """Return the paths that some expressions may stand for, `?` if unknown, as of None.

    The set is empty only while names are being bound. A starred expression stands for the elements
    of a loop over it.
    """
    return {path for node in nodes for path in _resolve(code, scope, node)}


def _resolve(code: Code, scope: str, node: ast.AST | None) -> Set[str]:
    if node is None or isinstance(node, ast.Name | ast.Constant):
        return _meanings(code, scope, node)
    key = (scope, node)
    if key not in code.known:
        paths = _meanings(code, scope, node)
        code.known[key] = paths
    return code.known[key]


def _meanings(code: Code, scope: str, node: ast.AST | None) -> Set[str]:
    match node:
        case ast.Name(name):
            return _look_up(code, scope, name)
        case ast.Attribute(owner, attr):
            return _attributes(code, _resolve(code, scope, owner), attr)
        case ast.Call(func):
            called = _resolve(code, scope, func)
            results = {result for path in called for result in _results(code, scope, path, node)}
            is_by_name = not meaning.GET_BY_NAME.isdisjoint(called)
            by_name = attributes_by_name(code, scope, node)[0] if is_by_name else []
            return results | resolve(code, scope, *by_name)
        case ast.IfExp(_, body, orelse):
            return resolve(code, scope, body, orelse)
        case ast.BoolOp(_, values):
            return resolve(code, scope, *values)
        case ast.NamedExpr(_, value):
            return _resolve(code, scope, value)
        case ast.Subscript(owner, ast.Name("__name__")) if _resolve(code, scope, owner) == {
            "sys.modules"
        }:
            return {scope.partition("/")[0]}
        case ast.Subscript(owner, key) if _resolve(code, scope, owner) == {"sys.modules"}:
            return modules_by_key(code, scope, key) or {UNKNOWN}
        case ast.Starred() | ast.Subscript():
            elements = _elements(code, scope, node)
            return elements if len(elements) <= MAX_ELEMENTS else {UNKNOWN}
        case ast.Constant() | ast.Tuple():
            return {constant_path(node)}
        case ast.Lambda() if "/" not in scope:
            return {scope_within(scope, node)}
    return {"builtins.list()" if isinstance(node, _CONTAINERS) else UNKNOWN}


def constant_path(node: ast.expr) -> str:
    """Return the path of a literal constant or container: its text, if that is short."""
    try:
        constant = ast.literal_eval(node)
        text = repr(constant)
    except (ValueError, TypeError):
        return "builtins.list()"
    is_name = isinstance(constant, str) and constant.isidentifier()
    is_container = isinstance(constant, tuple | list | set | dict) and "()" not in text
    if is_name or (is_container and len(constant) <= 2 * MAX_ELEMENTS):
        return f"{text}()"
    return f"builtins.{type(constant).__name__}()"


def texts(paths: Set[str]) -> set[str] | None:
    """Return the strings that some paths are; None if one is something else."""
    if not all(path.startswith("'") for path in paths):
        return None
    return {path[len("'") : -len("'()")] for path in paths}


def modules_by_key(code: Code, scope: str, key: ast.expr) -> set[str]:
    """Return the modules of torch, or of the folder, that a key of `sys.modules` names."""
    is_text = isinstance(key, ast.Constant)
    names = {str(key.value)} if is_text else texts(_resolve(code, scope, key))
    module, found = module_of(code, scope), set[str]()
    for name in names or ():
        own = set(modules_named(code, module, name)) & code.modules.keys()
        found |= own or ({name} if name.split(".")[0] == "torch" else set())
    return found


def _written(path: str) -> ast.expr | None:
    is_text = path.startswith(("(", "[", "{")) and path.endswith("()")
    return ast.parse(path.removesuffix("()"), mode="eval").body if is_text else None


def _elements(code: Code, scope: str, node: ast.Starred | ast.Subscript) -> set[str]:
    match node.value, node:
        case ast.Dict(keys, values), _:
            return resolve(code, scope, *(values if isinstance(node, ast.Subscript) else keys))
        case ((ast.Tuple(parts) | ast.List(parts)), ast.Subscript(_, ast.Constant(int(index)))) if (
            not any(isinstance(part, ast.Starred) for part in parts)
        ):
            return resolve(code, scope, *parts[index : index + 1])
        case ((ast.Tuple(parts) | ast.List(parts) | ast.Set(parts)), _):
            return resolve(code, scope, *parts)
    elements: set[str] = set()
    paths = _resolve(code, scope, node.value)
    is_clear = len(paths) == 1 or not isinstance(node.value, ast.Name | ast.Attribute)
    for path in paths:
        if is_clear and (container := _written(path)):
            part = (
                ast.Subscript(container, node.slice)
                if isinstance(node, ast.Subscript)
                else ast.Starred(container)
            )
            elements |= _elements(code, scope, part)
        else:
            elements.add(UNKNOWN)
    return elements


def attributes_by_name(code: Code, scope: str, call: ast.Call) -> tuple[list[ast.Attribute], bool]:
    """Return the attributes that `getattr` or its like may mean, and whether these are all."""
    paths = resolve(code, scope, *call.args[1:2])
    texts = [path[len("'") : -len("'()")] for path in sorted(paths) if path.startswith("'")]
    attributes = [ast.Attribute(call.args[0], text, ast.Load()) for text in texts]
    return attributes, 0 < len(texts) == len(paths)


def formatted(code: Code, scope: str, node: ast.expr) -> list[str] | None:
    """Return the strings that an f-string of names may be; None if text does not tell."""
    if not isinstance(node, ast.JoinedStr):
        return None
    choices = [
        texts(_resolve(code, scope, part.value)) if isinstance(part, ast.FormattedValue) else {text}
        for part in node.values
        for text in [getattr(part, "value", "")]
    ]
    if any(choice is None for choice in choices):
        return None
    return ["".join(parts) for parts in islice(product(*filter(None, choices)), MAX_ELEMENTS)]


def _results(code: Code, scope: str, path: str, call: ast.Call) -> Set[str]:
    if f"{path}()" in code.names:
        return code.names[f"{path}()"]
    owner, _, name = path.rpartition(".")
    match _written(owner):
        case ast.Dict(keys, values) if name in ("items", "keys", "values"):
            pairs = [
                ast.Tuple([key, value]) for key, value in zip(keys, values, strict=True) if key
            ]
            views = {"items": pairs, "keys": [pair.elts[0] for pair in pairs], "values": values}
            return {constant_path(ast.Tuple([*views[name]]))}
    if path in meaning.LOADERS and (modules := own_modules(code, scope, call)):
        return modules
    own = meaning.OWN_OBJECTS.intersection(meaning.prefixes_of(path.replace("()", "")))
    return {f"{min(own)}()" if own else UNKNOWN}


def own_modules(code: Code, scope: str, call: ast.Call) -> set[str]:
    """Return the modules of the folder that a call loads by name or file."""
    called = _resolve(code, scope, call.func)
    if "importlib.util.module_from_spec" in called:
        return resolve(code, scope, *call.args[:1]) & code.modules.keys()
    is_by_file = "importlib.util.spec_from_file_location" in called
    arguments = [location_of(call)] if is_by_file else call.args[:1]
    parts = [inner for part in arguments if part for inner in _written_out(code, scope, part)]
    values = [node.value for part in parts for node in ast.walk(part) if hasattr(node, "value")]
    module = module_of(code, scope)
    named = [
        path
        for text in values
        if isinstance(text, str)
        for path in modules_named(code, module, text)
    ]
    return set(named) & code.modules.keys()


def location_of(call: ast.Call) -> ast.expr | None:
    """Return the file argument of a call of `spec_from_file_location`; None if it has none."""
    words = [keyword.value for keyword in call.keywords if keyword.arg == "location"]
    return next(iter([*call.args[1:2], *words]), None)


def _written_out(code: Code, scope: str, node: ast.expr, steps: int = 0) -> list[ast.expr]:
    parts = [node]
    for name in ast.walk(node):
        values = assigned(code, scope, name.id) if isinstance(name, ast.Name) else []
        if len(values) == 1 and steps < MAX_ELEMENTS:
            parts += _written_out(code, *values[0], steps + 1)
        elif isinstance(name, ast.Name):
            parts += [ast.Constant(text) for text in texts(_resolve(code, scope, name)) or ()]
    return parts


def assigned(code: Code, scope: str, name: str) -> list[tuple[str, ast.expr]]:
    """Return the values assigned to a name, if assignments are its only source."""
    holder = scope
    while holder:
        if (path := f"{holder}/{name}") in code.names:
            return [(holder, value) for value in code.values.get(path, [])]
        holder = holder.rpartition("/")[0]
    return []


def follow(code: Code, path: str) -> set[str]:
    """Return the paths of a dotted path: a name of a module of the folder may be an alias there."""
    root, *attrs = path.split(".")
    return reduce(partial(_attributes, code), attrs, {root})


def _attributes(code: Code, owners: Set[str], attr: str) -> set[str]:
    """Return the paths of an attribute; of an object only the last attribute counts."""
    paths: set[str] = set()
    for owner in owners:
        path, head = f"{owner}.{attr}", owner.rpartition(".")[0]
        if owner == SELF:
            assigned = code.names.get(f".{attr}", {UNKNOWN})
            is_all = UNKNOWN not in assigned and not code.reaches
            paths |= assigned - {UNKNOWN} | (set() if is_all else {f"{UNKNOWN}.{attr}"})
        elif owner in code.modules and path not in code.modules:
            paths |= _look_up(code, owner, attr)
        elif attr in meaning.EMBEDDED and path not in code.modules and not {"?", "/"} & set(owner):
            paths.add(attr)
        else:
            paths.add(f"{head}.{attr}" if head == UNKNOWN or head.endswith("()") else path)
    return paths


def _look_up(code: Code, scope: str, name: str) -> Set[str]:
    holder = scope
    while holder:
        is_seen = holder == scope or not is_class(code, holder)
        if is_seen and f"{holder}/{name}" in code.names:
            return code.names[f"{holder}/{name}"]
        holder = holder.rpartition("/")[0]
    is_builtin = hasattr(builtins, name) or name == "__builtins__"
    paths = {f"builtins.{name}"} if is_builtin else set()
    if not is_builtin or name in meaning.BUILTINS_OF_TORCH:
        paths |= _attributes(code, module_of(code, scope).stars - code.modules.keys(), name)
    return paths or ({UNKNOWN} if code.settled else set())
