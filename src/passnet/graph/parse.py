"""Text of a `model.py` to a `Program`, through the syntax tree; nothing of the text is executed."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable

from passnet.errors import GraphError
from passnet.graph.arguments import FLOAT_NAMES, ArgumentReader
from passnet.graph.operators import (
    ARITY,
    BINARY,
    COMPARE,
    IN_PLACE,
    IN_PLACE_TEXT,
    INFIX_TEXT,
    PREFIX_TEXT,
    UNARY,
)
from passnet.graph.spec import Alias, Arg, Op, Param, Program, Ref, Release, Statement
from passnet.graph.syntax import construct, dotted, error_at, gc_paused, parse_tree, written

RESERVED = frozenset(
    ["self", "torch", "operator", "device", "slice", "float", "getattr", "Ellipsis", *FLOAT_NAMES]
)
"""Names that mean something in the text of a program, so that no value may have them."""

_HEADER = (ast.Import, ast.ImportFrom)


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
        try:
            return _Parser(where).program(_forward(tree, where))
        except RecursionError as cause:
            raise GraphError(f"{where}: an expression is nested too deeply") from cause


def _forward(tree: ast.Module, where: str) -> ast.FunctionDef:
    classes: list[ast.ClassDef] = []
    for item in tree.body:
        if isinstance(item, ast.ClassDef):
            classes.append(item)
        elif not isinstance(item, _HEADER):
            raise GraphError(
                f"{where}:{item.lineno}: only imports and one class may stand here, "
                f"found {construct(item)}"
            )
    if not classes:
        raise GraphError(f"{where}: expected one class with a forward method, found none")
    if len(classes) > 1:
        raise GraphError(f"{where}:{classes[1].lineno}: a second class: {construct(classes[1])}")
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


def _is_plain_name(value: Arg) -> bool:
    """Whether a literal can be printed as the attribute of a value."""
    return (
        isinstance(value, str)
        and value.isascii()
        and value.isidentifier()
        and not keyword.iskeyword(value)
    )


class _Parser:
    """Holds the file's name and the names bound so far while one `forward` is read."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._bound: set[str] = set()
        self._arg = ArgumentReader(where, self._bound).read
        self._expressions: dict[type, Callable[[str | None, ast.expr, int], Op]] = {
            ast.Call: self._call,
            ast.BinOp: self._binary,
            ast.Compare: self._compare,
            ast.UnaryOp: self._unary,
            ast.Subscript: self._subscript,
            ast.Attribute: self._attribute,
        }

    def _error(self, node: ast.AST, why: str) -> GraphError:
        return error_at(self._where, node, why)

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
            if item.arg in seen or item.arg in RESERVED:
                raise self._error(item, "argument name used twice or reserved")
            seen.add(item.arg)
            params.append(Param(item.arg, self._annotation(item.annotation)))
        return tuple(params)

    def _annotation(self, node: ast.expr | None) -> str | None:
        return None if node is None else dotted(node) or written(node, self._where)

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
        for target in item.targets:
            if isinstance(target, ast.Name) and target.id in RESERVED:
                raise self._error(item, "a reserved name is assigned")
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
        kwargs: dict[str, Arg] = {}
        for item in node.keywords:
            if item.arg is None:
                raise self._error(node, "`**` arguments are not allowed")
            if item.arg in kwargs:
                raise self._error(node, f"keyword {item.arg} is given twice")
            kwargs[item.arg] = self._arg(item.value)
        args = tuple(self._arg(item) for item in node.args)
        target, receiver = self._callee(node.func)
        if receiver is not None:
            args = (receiver, *args)
        if target == "getattr" and (kwargs or len(args) != 2 or not _is_plain_name(args[1])):
            raise self._error(node, "getattr takes a value and a name")
        if target.startswith("operator."):
            self._check_operands(node, target.removeprefix("operator."), args, bool(kwargs))
        return Op(output, target, args, tuple(kwargs.items()), line)

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

    def _check_operands(self, node: ast.expr, name: str, args, has_keywords: bool) -> None:
        arity = ARITY.get(name)
        if arity is not None and (has_keywords or len(args) != arity):
            raise self._error(node, f"operator.{name} takes {arity} arguments by position")
        if name in IN_PLACE_TEXT and not isinstance(args[0], Ref):
            raise self._error(node, "an in-place operator needs a value on its left")
        is_written = name in INFIX_TEXT or name in PREFIX_TEXT
        if is_written and not any(isinstance(arg, Ref) for arg in args):
            raise self._error(node, "an operator needs at least one value among its operands")

    def _operator(self, output: str | None, node: ast.expr, name: str, args, line: int) -> Op:
        self._check_operands(node, name, args, False)
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
