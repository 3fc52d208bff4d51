"""A `Program` from the text of a `model.py`, by its syntax tree; no text is executed."""

import ast
import keyword
from collections.abc import Callable

from passnet.errors import GraphError
from passnet.graph.arguments import FLOAT_NAMES, ArgumentReader
from passnet.graph.fx import operators
from passnet.graph.spec import Alias, Arg, Op, Param, Program, Ref, Release, Statement
from passnet.graph.text import syntax

RESERVED = frozenset(
    ["self", "torch", "operator", "device", "slice", "float", "getattr", "Ellipsis", *FLOAT_NAMES]
)
"""Names with a meaning of their own in a program; no value may have them."""


def parse_program(text: str, where: str = "model.py") -> Program:
    """Parse the text of a `model.py`: imports, and a class with a straight-line method `forward`.

    Statements are assignments of single calls, operators, indices, attributes or names, in-place
    operators, index assignments and `x = None` hints, then a return of a tuple. Anything else is a
    GraphError with file (`where`), line and construct.
    """
    with syntax.gc_paused():
        tree = syntax.parse_tree(text, where)
        try:
            return _Parser(where).program(_forward(tree, where))
        except RecursionError as cause:
            raise GraphError(f"{where}: an expression is nested too deeply") from cause


def _forward(tree: ast.Module, where: str) -> ast.FunctionDef:
    classes: list[ast.ClassDef] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            classes.append(node)
        elif not isinstance(node, (ast.Import, ast.ImportFrom)):
            raise syntax.error_at(where, node, "only imports and one class may stand here")
    if not classes:
        raise GraphError(f"{where}: expected one class with a forward method, found none")
    if len(classes) > 1:
        raise syntax.error_at(where, classes[1], "a second class")
    cls = classes[0]
    if cls.decorator_list:
        raise GraphError(f"{where}:{cls.lineno}: the class has a decorator")
    methods = [node for node in cls.body if not _is_docstring(node)]
    if len(methods) != 1 or not isinstance(methods[0], ast.FunctionDef):
        raise GraphError(f"{where}:{cls.lineno}: class {cls.name} must hold one method, forward")
    method = methods[0]
    if method.name != "forward" or method.decorator_list:
        raise GraphError(f"{where}:{method.lineno}: expected a plain method named forward")
    return method


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_plain_name(arg: Arg) -> bool:
    """Return whether a literal can be printed as the attribute of a value."""
    is_name = isinstance(arg, str) and arg.isascii() and arg.isidentifier()
    return is_name and not keyword.iskeyword(arg)


class _Parser:
    """The state of parsing one `forward`: the file's name, and the names bound so far."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._bound: set[str] = set()
        self._arg = ArgumentReader(where, self._bound).read
        self._expressions: dict[type, Callable[[str | None, ast.expr, int], Op]] = {
            ast.Call: self._call,
            ast.BinOp: self._operator,
            ast.Compare: self._operator,
            ast.UnaryOp: self._operator,
            ast.Subscript: self._subscript,
            ast.Attribute: self._attribute,
        }

    def _error(self, node: ast.AST, why: str) -> GraphError:
        return syntax.error_at(self._where, node, why)

    def program(self, method: ast.FunctionDef) -> Program:
        params = self._params(method)
        self._bound.update(param.name for param in params)
        if not method.body or not isinstance(method.body[-1], ast.Return):
            raise GraphError(f"{self._where}:{method.lineno}: forward must end with a return")
        body = [self._statement(node) for node in method.body[:-1] if not _is_docstring(node)]
        returned = method.body[-1].value
        if not isinstance(returned, ast.Tuple):
            raise self._error(method.body[-1], "forward must return a tuple")
        return Program(params, tuple(body), tuple(self._arg(node) for node in returned.elts))

    def _params(self, method: ast.FunctionDef) -> tuple[Param, ...]:
        node = method.args
        if node.vararg or node.kwarg or node.kwonlyargs or node.posonlyargs or node.defaults:
            raise self._error(method, "forward takes plain positional arguments only")
        if not node.args or node.args[0].arg != "self":
            raise self._error(method, "the first argument of forward must be self")
        params: dict[str, Param] = {}
        for arg in node.args[1:]:
            if arg.arg in params or arg.arg in RESERVED:
                raise self._error(arg, "argument name used twice or reserved")
            kind = arg.annotation
            text = (
                None
                if kind is None
                else syntax.dotted_name(kind) or syntax.annotation_text(kind, self._where)
            )
            params[arg.arg] = Param(arg.arg, text)
        return tuple(params.values())

    def _statement(self, node: ast.stmt) -> Statement:
        if isinstance(node, ast.Assign):
            return self._assign(node)
        if isinstance(node, ast.AugAssign):
            if not isinstance(node.target, ast.Name) or node.target.id not in self._bound:
                raise self._error(node, "an in-place operator needs a plain name on its left")
            name = node.target.id
            target = "operator." + operators.IN_PLACE[type(node.op)]
            return Op(name, target, (Ref(name), self._arg(node.value)), (), node.lineno)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self._call(None, node.value, node.lineno)
        raise self._error(node, "not a straight-line statement")

    def _assign(self, node: ast.Assign) -> Statement:
        value = node.value
        names = tuple(target.id for target in node.targets if isinstance(target, ast.Name))
        if not RESERVED.isdisjoint(names):
            raise self._error(node, "a reserved name is assigned")
        is_none = isinstance(value, ast.Constant) and value.value is None
        if is_none and len(names) == len(node.targets):
            self._bound.difference_update(names)
            return Release(names, node.lineno)
        if len(node.targets) != 1:
            raise self._error(node, "several targets are only allowed for `= None`")
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            if not isinstance(target.value, ast.Name):
                raise self._error(node, "an index assignment needs a plain name on its left")
            args = (self._ref(target.value), self._arg(target.slice), self._arg(value))
            return Op(None, "operator.setitem", args, (), node.lineno)
        if not isinstance(target, ast.Name):
            raise self._error(node, "the left side must be a name or an index")
        if isinstance(value, ast.Name):
            statement: Statement = Alias(target.id, self._ref(value).name, node.lineno)
        else:
            read = self._expressions.get(type(value))
            if read is None:
                raise self._error(node, "the right side must be one call, operator, index or name")
            statement = read(target.id, value, node.lineno)
        self._bound.add(target.id)
        return statement

    def _ref(self, node: ast.Name) -> Ref:
        if node.id not in self._bound:
            raise self._error(node, "the name is not defined before this line")
        return Ref(node.id)

    # Expressions: one op each. The node types are those of the table in __init__.

    def _call(self, output: str | None, node, line: int) -> Op:
        kwargs: dict[str, Arg] = {}
        for pair in node.keywords:
            if pair.arg is None:
                raise self._error(node, "`**` arguments are not allowed")
            if pair.arg in kwargs:
                raise self._error(node, f"keyword {pair.arg} is given twice")
            kwargs[pair.arg] = self._arg(pair.value)
        args = tuple(self._arg(arg) for arg in node.args)
        target, receiver = self._callee(node.func)
        if receiver is not None:
            args = (receiver, *args)
        if target == "getattr" and (kwargs or len(args) != 2 or not _is_plain_name(args[1])):
            raise self._error(node, "getattr takes a value and a name")
        if target.startswith("operator."):
            self._check_operands(node, target.removeprefix("operator."), args, bool(kwargs))
        return Op(output, target, args, tuple(kwargs.items()), line)

    def _callee(self, func: ast.expr) -> tuple[str, Ref | None]:
        match func:
            case ast.Attribute(ast.Name(name), method) if name in self._bound:
                return "Tensor." + method, Ref(name)
        name = syntax.dotted_name(func) or ""
        if name == "getattr" or name.startswith(("torch.", "operator.")):
            return name, None
        raise self._error(func, "only torch functions, operators and methods of values are called")

    def _check_operands(self, node: ast.expr, name: str, args, has_keywords: bool) -> None:
        arity = operators.ARITY.get(name)
        if arity is not None and (has_keywords or len(args) != arity):
            raise self._error(node, f"operator.{name} takes {arity} arguments by position")
        if name in operators.IN_PLACE_TEXT and not isinstance(args[0], Ref):
            raise self._error(node, "an in-place operator needs a value on its left")
        is_written = name in operators.INFIX_TEXT or name in operators.PREFIX_TEXT
        if is_written and not any(isinstance(arg, Ref) for arg in args):
            raise self._error(node, "an operator needs at least one value among its operands")

    def _operator(self, output: str | None, node: ast.expr, line: int) -> Op:
        match node:
            case ast.BinOp(left, operator, right):
                name, operands = operators.BINARY[type(operator)], (left, right)
            case ast.UnaryOp(operator, operand):
                name, operands = operators.UNARY[type(operator)], (operand,)
            case ast.Compare(left, [operator], [right]) if type(operator) in operators.COMPARE:
                name, operands = operators.COMPARE[type(operator)], (left, right)
            case _:
                raise self._error(node, "only single comparisons are allowed")
        args = tuple(self._arg(operand) for operand in operands)
        self._check_operands(node, name, args, False)
        return Op(output, "operator." + name, args, (), line)

    def _subscript(self, output: str | None, node, line: int) -> Op:
        if not isinstance(node.value, ast.Name):
            raise self._error(node, "only a plain name is indexed")
        args = (self._ref(node.value), self._arg(node.slice))
        return Op(output, "operator.getitem", args, (), line)

    def _attribute(self, output: str | None, node, line: int) -> Op:
        if not isinstance(node.value, ast.Name) or node.value.id not in self._bound:
            raise self._error(node, "only an attribute of a value is read")
        return Op(output, "getattr", (Ref(node.value.id), node.attr), (), line)
