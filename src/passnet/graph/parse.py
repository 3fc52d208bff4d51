"""Text of a `model.py` to a `Program`, through the syntax tree; nothing of the text is executed."""

from __future__ import annotations

import ast
import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from passnet.errors import GraphError
from passnet.graph.operators import BINARY, COMPARE, IN_PLACE, UNARY
from passnet.graph.spec import (
    Alias,
    Arg,
    Device,
    Op,
    Param,
    Program,
    Ref,
    Release,
    Sequence,
    Slice,
    Statement,
    TorchName,
)

MAX_TEXT_BYTES = 64 * 2**20
"""Longest text that is parsed; the largest known real graph file has 4 MB."""

CONSTANT_NAMES = frozenset(
    [
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "half",
        "float",
        "double",
        "int8",
        "int16",
        "int32",
        "int64",
        "short",
        "int",
        "long",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bool",
        "complex32",
        "complex64",
        "complex128",
        "cfloat",
        "cdouble",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "strided",
        "sparse_coo",
        "contiguous_format",
        "channels_last",
        "channels_last_3d",
        "preserve_format",
    ]
)
"""Names of torch that are constants (dtypes, layouts, memory formats) when not called."""

FLOAT_NAMES = {"inf": math.inf, "nan": math.nan}

_HEADER = (ast.Import, ast.ImportFrom)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Collector off: a syntax tree is a million small objects and no garbage (a fifth faster)."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def parse_tree(text: str, where: str) -> ast.Module:
    """The syntax tree of Python text.

    Raises:
        GraphError: not Python, nested too deeply, or longer than `MAX_TEXT_BYTES`.
    """
    if len(text) > MAX_TEXT_BYTES:
        raise GraphError(
            f"{where}: {len(text)} characters, more than {MAX_TEXT_BYTES} are not read"
        )
    try:
        return ast.parse(text)
    except SyntaxError as cause:
        raise GraphError(f"{where}:{cause.lineno}: not Python: {cause.msg}") from cause
    except (RecursionError, MemoryError, ValueError) as cause:
        raise GraphError(f"{where}: cannot be parsed: {type(cause).__name__}: {cause}") from cause


def parse_program(text: str, where: str = "model.py") -> Program:
    """The program that the text of a `model.py` describes.

    The text holds imports and one class with one method `forward`, whose body is straight-line
    code: assignments of single calls, operators, indices, attributes or names, in-place operators,
    index assignments, `x = None` hints, and a return of a tuple.

    Args:
        text: the file's content.
        where: name of the file for error messages.

    Raises:
        GraphError: for anything else, with the line and the construct.
    """
    with gc_paused():
        tree = parse_tree(text, where)
        return _Parser(where).program(_forward(tree, where))


def _forward(tree: ast.Module, where: str) -> ast.FunctionDef:
    classes: list[ast.ClassDef] = []
    for item in tree.body:
        if isinstance(item, ast.ClassDef):
            classes.append(item)
        elif not isinstance(item, _HEADER):
            raise GraphError(
                f"{where}:{item.lineno}: only imports and one class may stand here, "
                f"found {_construct(item)}"
            )
    if len(classes) != 1:
        raise GraphError(f"{where}: expected one class with a forward method, found {len(classes)}")
    cls = classes[0]
    if cls.decorator_list:
        raise GraphError(f"{where}:{cls.lineno}: the class has a decorator")
    methods = [item for item in cls.body if not _is_docstring(item)]
    if len(methods) != 1 or not isinstance(methods[0], ast.FunctionDef):
        raise GraphError(f"{where}:{cls.lineno}: class {cls.name} must hold one method, forward")
    method = methods[0]
    if method.name != "forward" or method.decorator_list:
        raise GraphError(f"{where}:{method.lineno}: expected a plain method named forward")
    return method


def _is_docstring(item: ast.stmt) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)


def _construct(node: ast.AST) -> str:
    """The construct as the user wrote it, shortened."""
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        text = ""
    first = text.split("\n", 1)[0]
    return f"{type(node).__name__} `{first[:80]}{'…' if len(first) > 80 else ''}`"


def _dotted(node: ast.expr) -> str:
    """The text of an annotation; the usual `torch.Tensor` without the cost of unparsing."""
    path: list[str] = []
    part = node
    while isinstance(part, ast.Attribute):
        path.append(part.attr)
        part = part.value
    if isinstance(part, ast.Name):
        return ".".join([part.id, *reversed(path)])
    return ast.unparse(node)


class _Parser:
    """Holds the file's name and the names bound so far while one `forward` is read."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._bound: set[str] = set()
        self._expressions: dict[type, Callable[[str | None, ast.expr, int], Op]] = {
            ast.Call: self._call,
            ast.BinOp: self._binary,
            ast.Compare: self._compare,
            ast.UnaryOp: self._unary,
            ast.Subscript: self._subscript,
            ast.Attribute: self._attribute,
        }

    def _error(self, node: ast.AST, why: str) -> GraphError:
        line = getattr(node, "lineno", "?")
        return GraphError(f"{self._where}:{line}: {why}: {_construct(node)}")

    def program(self, method: ast.FunctionDef) -> Program:
        params = self._params(method)
        self._bound.update(item.name for item in params)
        if not method.body or not isinstance(method.body[-1], ast.Return):
            raise GraphError(f"{self._where}:{method.lineno}: forward must end with a return")
        body: list[Statement] = []
        for item in method.body[:-1]:
            if not _is_docstring(item):
                body.append(self._statement(item))
        return Program(params, tuple(body), self._outputs(method.body[-1]))

    def _params(self, method: ast.FunctionDef) -> tuple[Param, ...]:
        spec = method.args
        if spec.vararg or spec.kwarg or spec.kwonlyargs or spec.posonlyargs or spec.defaults:
            raise self._error(method, "forward takes plain positional arguments only")
        if not spec.args or spec.args[0].arg != "self":
            raise self._error(method, "the first argument of forward must be self")
        params = []
        seen = {"self"}
        for item in spec.args[1:]:
            if item.arg in seen or item.arg == "torch":
                raise self._error(item, "argument name used twice or reserved")
            seen.add(item.arg)
            annotation = None if item.annotation is None else _dotted(item.annotation)
            params.append(Param(item.arg, annotation))
        return tuple(params)

    def _outputs(self, item: ast.Return) -> tuple[Arg, ...]:
        if not isinstance(item.value, ast.Tuple):
            raise self._error(item, "forward must return a tuple")
        return tuple(self._arg(element) for element in item.value.elts)

    def _statement(self, item: ast.stmt) -> Statement:
        if isinstance(item, ast.Assign):
            return self._assign(item)
        if isinstance(item, ast.AugAssign):
            if not isinstance(item.target, ast.Name) or item.target.id not in self._bound:
                raise self._error(item, "an in-place operator needs a plain name on its left")
            name = item.target.id
            target = "operator." + IN_PLACE[type(item.op)]
            return Op(name, target, (Ref(name), self._arg(item.value)), (), item.lineno)
        if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
            return self._call(None, item.value, item.lineno)
        raise self._error(item, "not a straight-line statement")

    def _assign(self, item: ast.Assign) -> Statement:
        value = item.value
        if (
            isinstance(value, ast.Constant)
            and value.value is None
            and all(isinstance(target, ast.Name) for target in item.targets)
        ):
            names = tuple(target.id for target in item.targets if isinstance(target, ast.Name))
            self._bound.difference_update(names)
            return Release(names, item.lineno)
        if len(item.targets) != 1:
            raise self._error(item, "several targets are only allowed for `= None`")
        target = item.targets[0]
        if isinstance(target, ast.Subscript):
            if not isinstance(target.value, ast.Name):
                raise self._error(item, "an index assignment needs a plain name on its left")
            args = (self._ref(target.value), self._arg(target.slice), self._arg(value))
            return Op(None, "operator.setitem", args, (), item.lineno)
        if not isinstance(target, ast.Name):
            raise self._error(item, "the left side must be a name or an index")
        name = target.id
        if name in ("self", "torch"):
            raise self._error(item, "a reserved name is assigned")
        if isinstance(value, ast.Name):
            statement: Statement = Alias(name, self._ref(value).name, item.lineno)
        else:
            read = self._expressions.get(type(value))
            if read is None:
                raise self._error(item, "the right side must be one call, operator, index or name")
            statement = read(name, value, item.lineno)
        self._bound.add(name)
        return statement

    def _ref(self, node: ast.Name) -> Ref:
        if node.id not in self._bound:
            raise self._error(node, "the name is not defined before this line")
        return Ref(node.id)

    # Expressions: one op each. The node types are those of the table in __init__.

    def _call(self, output: str | None, node, line: int) -> Op:
        kwargs = []
        for item in node.keywords:
            if item.arg is None:
                raise self._error(node, "`**` arguments are not allowed")
            kwargs.append((item.arg, self._arg(item.value)))
        args = tuple(self._arg(item) for item in node.args)
        target, receiver = self._callee(node.func)
        if receiver is not None:
            args = (receiver, *args)
        if target == "getattr" and not (len(args) == 2 and isinstance(args[1], str)):
            raise self._error(node, "getattr takes a value and a name")
        return Op(output, target, args, tuple(kwargs), line)

    def _callee(self, func: ast.expr) -> tuple[str, Ref | None]:
        if isinstance(func, ast.Name) and func.id == "getattr":
            return "getattr", None
        path: list[str] = []
        node = func
        while isinstance(node, ast.Attribute):
            path.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and path:
            if node.id in self._bound:
                if len(path) == 1:
                    return "Tensor." + path[0], Ref(node.id)
            elif node.id in ("torch", "operator"):
                return ".".join([node.id, *reversed(path)]), None
        raise self._error(func, "only torch functions, operators and methods of values are called")

    def _operator(self, output: str | None, node: ast.expr, name: str, args, line: int) -> Op:
        if not any(isinstance(arg, Ref) for arg in args):
            raise self._error(node, "an operator needs at least one value among its operands")
        return Op(output, "operator." + name, args, (), line)

    def _binary(self, output: str | None, node, line: int) -> Op:
        args = (self._arg(node.left), self._arg(node.right))
        return self._operator(output, node, BINARY[type(node.op)], args, line)

    def _compare(self, output: str | None, node, line: int) -> Op:
        name = COMPARE.get(type(node.ops[0]))
        if len(node.ops) != 1 or name is None:
            raise self._error(node, "only single comparisons are allowed")
        args = (self._arg(node.left), self._arg(node.comparators[0]))
        return self._operator(output, node, name, args, line)

    def _unary(self, output: str | None, node, line: int) -> Op:
        return self._operator(output, node, UNARY[type(node.op)], (self._arg(node.operand),), line)

    def _subscript(self, output: str | None, node, line: int) -> Op:
        if not isinstance(node.value, ast.Name):
            raise self._error(node, "only a plain name is indexed")
        args = (self._ref(node.value), self._arg(node.slice))
        return Op(output, "operator.getitem", args, (), line)

    def _attribute(self, output: str | None, node, line: int) -> Op:
        if not isinstance(node.value, ast.Name) or node.value.id not in self._bound:
            raise self._error(node, "only an attribute of a value is read")
        return Op(output, "getattr", (Ref(node.value.id), node.attr), (), line)

    # Arguments.

    def _arg(self, node: ast.expr) -> Arg:
        kind = type(node)
        if kind is ast.Name:
            return self._named(node)
        if kind is ast.Constant:
            return self._constant(node)
        if kind is ast.Tuple:
            return Sequence("tuple", tuple([self._arg(item) for item in node.elts]))  # type: ignore[attr-defined]
        if kind is ast.List:
            return Sequence("list", tuple([self._arg(item) for item in node.elts]))  # type: ignore[attr-defined]
        if kind is ast.UnaryOp:
            return self._negative(node)
        if kind is ast.Attribute:
            return self._torch_name(node)
        if kind is ast.Call:
            return self._literal_call(node)
        if kind is ast.Slice:
            parts = (node.lower, node.upper, node.step)  # type: ignore[attr-defined]
            return Slice(*[None if part is None else self._arg(part) for part in parts])
        raise self._error(node, "not allowed as an argument")

    def _named(self, node) -> Arg:
        if node.id in self._bound:
            return Ref(node.id)
        if node.id in FLOAT_NAMES:
            return FLOAT_NAMES[node.id]
        if node.id == "Ellipsis":
            return ...
        raise self._error(node, "the name is not defined before this line")

    def _constant(self, node) -> Arg:
        value = node.value
        if value is None or value is Ellipsis or isinstance(value, (bool, int, float, str)):
            return value
        raise self._error(node, "this kind of constant is not allowed")

    def _negative(self, node) -> Arg:
        value = self._arg(node.operand)
        if isinstance(node.op, ast.USub) and type(value) in (int, float):
            return -value  # type: ignore[operator]
        raise self._error(node, "not allowed as an argument")

    def _torch_name(self, node) -> Arg:
        if isinstance(node.value, ast.Name) and node.value.id == "torch":
            if node.attr in CONSTANT_NAMES:
                return TorchName(node.attr)
            if node.attr in FLOAT_NAMES:
                return FLOAT_NAMES[node.attr]
        raise self._error(node, "not a constant of torch that is known here")

    def _literal_call(self, node) -> Arg:
        name = ast.unparse(node.func)
        args = [self._arg(item) for item in node.args]
        if name == "slice" and not node.keywords and 1 <= len(args) <= 3:
            return Slice(None, args[0]) if len(args) == 1 else Slice(*args)
        if name == "torch.Size" and not node.keywords and isinstance(args[0], Sequence):
            return Sequence("size", args[0].items)
        if name == "float" and len(args) == 1 and isinstance(args[0], str):
            try:
                number = float(args[0])
            except ValueError as cause:
                raise self._error(node, "not a number") from cause
            return math.nan if math.isnan(number) else number
        if name in ("device", "torch.device"):
            return self._device(node, args)
        raise self._error(
            node, "a call is not allowed as an argument (only slice, device and torch.Size)"
        )

    def _device(self, node, args: list[Arg]) -> Device:
        given: dict[str, Arg] = dict(zip(("type", "index"), args, strict=False))
        given.update((item.arg, self._arg(item.value)) for item in node.keywords)
        kind, index = given.pop("type", None), given.pop("index", None)
        if isinstance(kind, str) and index is None and ":" in kind:
            kind, _, number = kind.partition(":")
            index = int(number) if number.isdecimal() else number
        if given or not isinstance(kind, str) or not (index is None or type(index) is int):
            raise self._error(node, "not a device literal")
        return Device(kind, index)
