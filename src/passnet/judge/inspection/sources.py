"""The code of a pass folder as text: its modules, read but not run, and how they use names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from passnet.errors import PassFolderError
from passnet.judge.findings import Finding
from passnet.judge.inspection import rules as meaning
from passnet.passes.folder import MAX_FILE_BYTES, PACKAGE

MAX_MODULES = 100


@dataclass(eq=False, slots=True)
class Scope:
    """The names of a module, class, function or comprehension, and the paths they stand for.

    `path` is that of a class. `result` is the name for what a function gives.
    """

    kind: type[ast.AST]
    module: str
    parent: Scope | None = None
    path: str = ""
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


@dataclass(frozen=True, slots=True)
class Literal:
    """A tuple, list, set or dict that is written out in constants, and the names it was given."""

    node: ast.Tuple | ast.List | ast.Set | ast.Dict
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Code:
    """The state of one inspection.

    Of the folder as a whole, by name alone. `handed_on`: names that are used for more than to be
    called, looped over or looked up in, all strings, and `.name` for every attribute that is
    used. `renames`: something may give a module another `__name__`. `reaches`: attributes may be
    set, or methods taken from their class, in ways that a name does not show.

    By what is bound. `functions`: those whose callers are all known, by path. `bases`: what a
    class is made of, by path. `attributes`: what is assigned to an attribute of that name.
    """

    roots: dict[str, Path]
    modules: dict[str, Module] = field(default_factory=dict)
    scopes: dict[ast.AST, Scope] = field(default_factory=dict)
    found: dict[tuple[str, str, int], Finding] = field(default_factory=dict)
    handed_on: set[str] = field(default_factory=set)
    renames: bool = False
    reaches: bool = False
    functions: dict[str, tuple[ast.arguments, Scope]] = field(default_factory=dict)
    bases: dict[str, set[str]] = field(default_factory=dict)
    attributes: dict[str, set[str]] = field(default_factory=dict)
    literals: dict[str, Literal] = field(default_factory=dict)


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
    _note_uses(code, tree)
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


def owner_of(code: Code, path: str) -> Module | None:
    """The module of the folder in which a path begins."""
    while path and path not in code.modules:
        path = path.rpartition(".")[0]
    return code.modules.get(path)


def _note_uses(code: Code, tree: ast.Module) -> None:
    """Note what the text of a module does with names, whatever they stand for in it."""
    harmless: set[ast.AST] = set()  # names that are not handed on, strings that only document
    for node in ast.walk(tree):  # those that hold others first
        match node:
            case (
                ast.Call(func=ast.Name() as inner)
                | ast.Call(
                    func=ast.Attribute(
                        value=ast.Name() as inner, attr="items" | "keys" | "values" | "get"
                    )
                )
                | ast.For(iter=ast.Name() as inner)
                | ast.comprehension(iter=ast.Name() as inner)
                | ast.Subscript(value=ast.Name() as inner, ctx=ast.Load())
                | ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Name() as inner])
                | ast.Expr(value=ast.Constant() as inner)
            ):
                harmless.add(inner)
            case ast.Name(id=name, ctx=ast.Load()) if node not in harmless:
                code.handed_on.add(name)
            case ast.Attribute(attr=name, ctx=context):
                code.handed_on.add(f".{name}")
                if not isinstance(context, ast.Load):
                    code.attributes.setdefault(name, set())
            case ast.alias(name=name, asname=str(other)) if name != other:
                code.handed_on.add(name)
            case ast.Constant(value=str(name)) if node not in harmless:
                code.handed_on.add(name)
        if node in harmless and isinstance(node, ast.Constant):
            continue
        loaded = isinstance(getattr(node, "ctx", None), ast.Load)
        for place, text in ast.iter_fields(node):
            if isinstance(text, str | list) and "__name__" in text and not loaded:
                code.renames = True
            if isinstance(text, str) and text in meaning.REACHERS:
                code.reaches |= place != "attr" or text.startswith("__")
