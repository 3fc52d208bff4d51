"""The code of a pass folder as text: its modules, read but not run, and the scope of each node."""

import ast
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

from passnet.core.terminal.visible_text import source_lines
from passnet.errors import PassFolderError
from passnet.judge.inspection import rules as meaning
from passnet.judge.inspection.rules import Rules
from passnet.passes.folder import PACKAGE, read_source

MAX_MODULES = 100
MAX_DEPTH = 200
"""Deepest nesting of expressions and blocks."""
TRACED = ("pattern", "replacement_args", "guard")
SELF_TEST = "__name__ == '__main__'"
ANNOTATION = "<annotation>"
_WITHIN = ("body", "elt", "key", "value", "generators")
"""The fields of a node that belong to the scope it opens."""


@dataclass(frozen=True, slots=True)
class Module:
    """A file of the folder, with its lines that run only as the program, and its star imports."""

    package: str
    file: str
    is_pass: bool
    lines: list[str]
    self_tests: list[range] = field(default_factory=list)
    stars: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Code:
    """All code of a pass folder, and the meaning of its names.

    `nodes`: those of its text, each with its scope, which is `module`, or
    `module/class@line:column/function@line:column` and so on. `definitions`: nodes that open a
    scope. `file`: the file in progress.

    `passes`: modules that are on the list, and their files. `bare`: names that Python may find in
    the folder itself, once that is on its path -> the modules that they may be. `values`: the
    assigned values of each `scope/name`. `matched`: names, `serving`: nodes, and
    `only_matched`: definitions that serve patterns alone. `excused`: nodes that would be findings
    elsewhere, `called`: what is called, or has a name from then on.

    `names`: `scope/name` -> its paths; `scope()` -> the results of the function; `.name` -> the
    values assigned to such attributes. `elsewhere`: global and nonlocal names -> their
    `scope/name`. `grew`: some name gained a path. `settled`: a name without a path is unknown.
    `known`: a cache of the paths of expressions, while no name changes.

    Uses of names in the text, whatever they stand for: `handed_on`: names that are used for more
    than calls, loops or lookups, all strings, and `.name` for every attribute in use. `renames`:
    something may give a module another `__name__`. `reaches`: attributes may be set, or methods
    taken from their class, in ways that a name does not show.
    """

    rules: Rules
    roots: dict[str, Path]
    modules: dict[str, Module] = field(default_factory=dict)
    nodes: list[tuple[str, ast.AST]] = field(default_factory=list)
    definitions: dict[str, ast.AST] = field(default_factory=dict)
    file: str = ""
    passes: dict[str, Path] = field(default_factory=dict)
    bare: dict[str, list[str]] = field(default_factory=dict)
    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    matched: set[str] = field(default_factory=set)
    serving: set[ast.AST] = field(default_factory=set)
    only_matched: set[str] = field(default_factory=set)
    excused: set[ast.AST] = field(default_factory=set)
    called: set[ast.AST] = field(default_factory=set)
    known: dict[tuple[str, ast.AST], Set[str]] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    grew: bool = False
    settled: bool = False
    handed_on: set[str] = field(default_factory=set)
    renames: bool = False
    reaches: bool = False


def find_bare_names(roots: dict[str, Path]) -> dict[str, list[str]]:
    """Return the importable names of a folder on Python's path -> the possible modules."""
    bare: dict[str, list[str]] = {}
    for root, folder in roots.items():
        for path in sorted(folder.rglob("*.py")):
            parts = [root, *path.relative_to(folder).with_suffix("").parts]
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            if len(parts) > 1:
                bare.setdefault(parts[-1], []).append(".".join(parts))
    return bare


def load_module(code: Code, name: str) -> None:
    """Read a module of the folder and those it imports; skip a name that is no file of it."""
    root, *inner = name.split(".")
    base = code.roots.get(root, Path()).joinpath(*inner)
    files = [file for file in (base / "__init__.py", Path(f"{base}.py")) if file.is_file()]
    if name in code.passes and not files:  # a dot in the file's name is no dot of the module
        files = [code.passes[name]]
    if root not in code.roots or not inner or not files or name in code.modules:
        return
    path = files[0]
    if len(code.modules) == MAX_MODULES:
        raise PassFolderError(f"{path}: more than {MAX_MODULES} modules; put some of them together")
    text, tree = read_source(path)
    file = path.relative_to(code.roots[root]).as_posix()
    code.file = file if root == PACKAGE else f"{root}/{file}"
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    lines = source_lines(text.decode("utf-8", "replace"))
    code.modules[name] = module = Module(package, code.file, name in code.passes, lines)
    num_nodes = len(code.nodes)
    _note_node(code, name, tree, tree, 0)
    loaders = b"importlib" in text
    for _, node in code.nodes[num_nodes:]:
        loaded = [path for _, _, path in imports_of(code, module, node)]
        if loaders and isinstance(node, ast.Constant) and isinstance(node.value, str):
            loaded += modules_named(code, module, node.value)
        for path in loaded:
            for prefix in reversed(meaning.prefixes_of(path)):
                load_module(code, prefix)


def modules_named(code: Code, module: Module, text: str) -> list[str]:
    """Return the modules of the folder that a string may name, as a module or a file."""
    name = text.rpartition("/")[2].removesuffix(".py")
    if text.startswith(".") and name == text:
        return [module.package + text]
    root, _, submodule = name.partition(".")
    return (
        [name]
        if root in code.roots
        else [".".join([home, submodule]).rstrip(".") for home in code.bare.get(root, ())]
    )


def imports_of(code: Code, module: Module, node: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Yield for each name that a statement imports: the name, its path, the loaded module."""
    for name, source, loaded in _imports_as_written(module, node):
        root = loaded.split(".")[0]
        homes = [] if root in code.roots else code.bare.get(root, [])
        if not homes or root in meaning.KNOWN_ROOTS:
            yield name, source, loaded
        for home in homes:
            yield name, home + source[len(root) :], home + loaded[len(root) :]


def _imports_as_written(module: Module, node: ast.AST) -> Iterator[tuple[str, str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name.split(".")[0]
            yield alias.asname or root, alias.name if alias.asname else root, alias.name
    elif isinstance(node, ast.ImportFrom):
        package = module.package.rsplit(".", node.level - 1)[0] if node.level else None
        base = ".".join(filter(None, [package, node.module]))
        for alias in node.names:
            path = base if alias.name == "*" else f"{base}.{alias.name}"
            yield alias.asname or alias.name, path, path


def _note_node(code: Code, scope: str, holder: ast.AST, node: ast.AST, depth: int) -> None:
    """Note a node of the text, its uses of names, and its children."""
    if depth > MAX_DEPTH:
        raise PassFolderError(
            f"{code.file}:{getattr(node, 'lineno', 1)}: nested too deeply to be inspected, "
            f"more than {MAX_DEPTH} within each other; write it in more lines"
        )
    match holder, node:
        case ast.Expr(), ast.Constant():
            return  # a docstring
        case ast.Attribute(), ast.Attribute() | ast.Name():
            pass  # a dotted name is one node
        case ast.Assign(_, ast.Constant()), ast.Subscript(_, ast.Constant(key)) if (
            key in meaning.SWITCHES
        ):
            pass
        case (ast.Compare(ops=ops), ast.Name() | ast.Attribute()) if all(
            isinstance(op, ast.Is | ast.IsNot) for op in ops
        ):
            pass  # it is only compared
        case _:
            code.nodes.append((scope, node))
            match node:
                case ast.Call(used) | ast.Assign([ast.Name()], used):
                    code.called.add(used)
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                code.values.setdefault(f"{scope}/{target.id}", []).append(node.value)
    _note_use(code, holder, node)
    inner = scope_within(scope, node)
    if inner != scope:
        code.definitions[inner] = node
    if isinstance(node, ast.If) and "/" not in scope and ast.unparse(node.test) == SELF_TEST:
        lines = range(node.body[0].lineno, (node.body[-1].end_lineno or 0) + 1)
        module_of(code, scope).self_tests.append(lines)
    for name, value in ast.iter_fields(node):
        below = inner if name in _WITHIN else scope
        if name in ("annotation", "returns"):
            below = f"{scope}/{ANNOTATION}"
        elif name == "iter":
            below = scope_of_iterable(code, scope, node)
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and child._fields:
                _note_node(code, below, node, child, depth + 1)


def _note_use(code: Code, holder: ast.AST, node: ast.AST) -> None:
    match node, holder:
        case ast.Name(ctx=ast.Load()), (
            ast.Call(func=used)
            | ast.Attribute(used, "items" | "keys" | "values" | "get")
            | ast.For(iter=used)
            | ast.comprehension(iter=used)
            | ast.Subscript(used, ctx=ast.Load())
            | ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[used])
        ) if used is node:
            pass
        case ((ast.Name(name, ast.Load()) | ast.Constant(str(name))), _):
            code.handed_on.add(name)
        case ast.Name(name), ast.NamedExpr() | ast.Assign([_, _, *_]):
            code.handed_on.add(name)
        case ast.alias(name, str(alias)), _ if name != alias:
            code.handed_on.add(name)
        case ast.Attribute(attr=name), _:
            code.handed_on.add(f".{name}")
    is_read = isinstance(getattr(node, "ctx", None), ast.Load)
    for field_name, text in ast.iter_fields(node):
        if isinstance(text, str | list) and "__name__" in text and not is_read:
            code.renames = True
        if isinstance(text, str) and text in meaning.REACHERS:
            code.reaches |= field_name != "attr" or text.startswith("__")


def scope_within(scope: str, node: ast.AST) -> str:
    """Return the scope of a node's children: its own if it opens one."""
    match node:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return f"{scope}/{name}@{node.lineno}:{node.col_offset}"
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return f"{scope}/@{node.lineno}:{node.col_offset}"
        case ast.Assign([ast.Name(name)], ast.Lambda() | ast.Name() | ast.Attribute() | ast.Call()):
            return f"{scope}/{name}@{node.lineno}" if name in TRACED else scope
    return scope


def scope_of_iterable(code: Code, scope: str, loop: ast.AST) -> str:
    """Return the scope of a loop's iterable: a comprehension's first lies outside of it."""
    generators = getattr(code.definitions.get(scope), "generators", [])
    return scope.rpartition("/")[0] if loop in generators[:1] else scope


def module_of(code: Code, scope: str) -> Module:
    """Return the module of a scope."""
    return code.modules[scope.partition("/")[0]]


def is_traced(code: Code, path: str, names: tuple[str, ...] = TRACED) -> bool:
    """Return whether a path or scope is in a traced function, or in code of patterns alone."""
    module, _, inner = path.partition("/")
    is_pass = module in code.modules and code.modules[module].is_pass
    if is_pass and re.split("[/.@]", inner)[0] in names:
        return True
    return f"{module}/{inner.partition('/')[0]}" in code.only_matched


def is_class(code: Code, scope: str) -> bool:
    """Return whether a scope is that of a class."""
    return isinstance(code.definitions.get(scope), ast.ClassDef)
