"""Uses of names that are no finding in their context: lookups of own modules, and patterns."""

import ast
import functools
from collections.abc import Sequence
from pathlib import PurePosixPath

from passnet.judge.inspection import rules as meaning
from passnet.judge.inspection.bindings import is_plain_class
from passnet.judge.inspection.matched import find_matched
from passnet.judge.inspection.names import assigned, location_of, own_modules, resolve, texts
from passnet.judge.inspection.sources import Code, is_traced, module_of
from passnet.passes.folder import PACKAGE

_SAME = meaning.words(
    "builtins. str pathlib. Path PurePath os. fspath path.abspath path.realpath path.normpath"
)
"""Functions that return the path that they are given, in another form."""
_IDENTITIES = meaning.words("builtins. hash id repr str")
"""Functions that tell objects apart, and use none."""
_SAME_METHODS = ("resolve", "absolute", "as_posix", "expanduser")
_LOOKUPS = meaning.words("sys.modules. get setdefault pop")
_ADDERS = meaning.words("sys.path. insert append")
_BY_FILE = meaning.words("importlib.util.spec_from_file_location")
_BY_NAME = meaning.words("importlib.import_module")
_ABOVE = PurePosixPath("..")
"""The folder that holds the pass folder."""
MAX_STEPS = 20
"""Most names of a path to follow through each other."""


def excuse(code: Code) -> None:
    """Excuse uses in a folder whose names are all bound.

    Excused are the folder itself on Python's path, a lookup of one of its own modules, torch in
    functions that only patterns use and in graphs built for a pattern, and the comparison of
    something with a function of torch.
    """
    find_matched(code)
    is_remembered = _remembers_what_it_is_compared_with(code)
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
                if called <= _IDENTITIES and all(
                    path.startswith("torch.") for path in resolve(code, scope, *args)
                ):
                    code.excused |= set(args)
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


def _is_own_key(code: Code, scope: str, key: ast.expr) -> bool:
    match key:
        case ast.Constant(str(text)):
            root = text.split(".")[0]
            return root in code.roots or root == "torch" or root not in meaning.KNOWN_ROOTS
        case ast.Name("__name__" | "__package__"):
            return not code.renames
        case ast.Name():
            values = assigned(code, scope, key.id)
            if len(values) == 1:
                return _is_own_key(code, *values[0])
            names = texts(resolve(code, scope, key)) or ()
            return bool(names) and all(
                _is_own_key(code, scope, ast.Constant(name)) for name in names
            )
        case ast.JoinedStr([ast.FormattedValue(ast.Name("__name__" | "__package__")), *_]):
            return not code.renames
        case ast.BinOp(package, ast.Add(), ast.Constant(str())):
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
    """Return the path within the folder that an expression builds from `__file__`, or None.

    It is `..` for what holds the folder.
    """
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
        case ast.BinOp(left, ast.Div(), part):
            return _joined(within(left), [_file_name(code, scope, part)])
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
                return _joined(within(first), [_file_name(code, scope, part) for part in rest])
    return None


def _file_name(code: Code, scope: str, node: ast.expr) -> object:
    """Return the name of a file, `.` if it is a module of the folder, None if it is unclear."""
    match node:
        case ast.Constant(name):
            return name
        case ast.BinOp(ast.Name() as name, ast.Add(), ast.Constant(".py")) | ast.JoinedStr(
            [ast.FormattedValue(ast.Name() as name), ast.Constant(".py")]
        ):
            names = texts(resolve(code, scope, name))
            return "." if names and all(name.isidentifier() for name in names) else None
    return None


def _parent(path: PurePosixPath | None, levels: int) -> PurePosixPath | None:
    if path is None or path == _ABOVE or not 0 < levels <= len(path.parts) + 1:
        return None
    return _ABOVE if levels > len(path.parts) else PurePosixPath(*path.parts[:-levels])


def _joined(path: PurePosixPath | None, parts: Sequence[object]) -> PurePosixPath | None:
    whole = path
    for part in parts:
        inner = PurePosixPath(str(part))
        if part is None or whole in (None, _ABOVE) or inner.is_absolute():
            return None
        for step in inner.parts:
            whole = _parent(whole, 1) if step == ".." and whole is not None else whole
            whole = whole / step if whole is not None and step != ".." else whole
    return whole
