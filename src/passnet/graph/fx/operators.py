"""Python's operators and the functions of `operator` behind them."""

import ast

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and_", ast.BitOr: "or_",
    ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip

COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip

UNARY: dict[type[ast.unaryop], str] = {
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not_",
}  # fmt: skip

IN_PLACE: dict[type[ast.operator], str] = {
    kind: "i" + name.rstrip("_") for kind, name in BINARY.items()
}

_BINARY_TEXT = ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"]
_COMPARE_TEXT = ["==", "!=", "<", "<=", ">", ">="]

INFIX_TEXT: dict[str, str] = dict(zip(BINARY.values(), _BINARY_TEXT, strict=True)) | dict(
    zip(COMPARE.values(), _COMPARE_TEXT, strict=True)
)
"""Symbol of each binary operator, by its name in `operator`."""

PREFIX_TEXT: dict[str, str] = {"neg": "-", "pos": "+", "invert": "~", "not_": "not "}
ARITY: dict[str, int] = {
    **dict.fromkeys([*BINARY.values(), *COMPARE.values(), *IN_PLACE.values(), "getitem"], 2),
    **dict.fromkeys([*UNARY.values(), "index"], 1),
    "setitem": 3,
}
IN_PLACE_TEXT: dict[str, str] = {
    name: text + "=" for name, text in zip(IN_PLACE.values(), _BINARY_TEXT, strict=True)
}


def name_set(names: str) -> frozenset[str]:
    """Return the names in a text; tables of many names are written so."""
    return frozenset(names.split())
