"""Arguments of a call in a `model.py`: references to values, and literals of every kind."""

import ast
import math
import re

from passnet.graph.fx.operators import name_set
from passnet.graph.spec import Arg, Device, Ref, Sequence, Slice, TorchName
from passnet.graph.text.syntax import dotted_name, error_at

CONSTANT_NAMES = name_set("""
    float16 float32 float64 bfloat16 half float double int8 int16 int32 int64 short int long
    uint8 uint16 uint32 uint64 bool complex32 complex64 complex128 cfloat cdouble float8_e4m3fn
    float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz strided sparse_coo contiguous_format
    channels_last channels_last_3d preserve_format
""")
"""Names of torch that are constants (dtypes, layouts, memory formats) when not called."""

FLOAT_NAMES = {"inf": math.inf, "nan": math.nan}

MAX_INTEGER_BITS = 64
MAX_DEPTH = 32
"""Deepest nesting of arguments; the public graphs nest 3 deep."""

_DEVICE_NUMBER = re.compile("[0-9]{1,3}")


class ArgumentReader:
    """A reader of arguments; `bound` holds the names known so far and is not copied."""

    def __init__(self, where: str, bound: set[str]) -> None:
        self._where = where
        self._bound = bound
        self._depth = 0

    def read(self, node: ast.expr) -> Arg:
        """Return the value, literal or reference of an expression."""
        kind = type(node)
        if kind is ast.Name:
            return self._named(node)
        if kind is ast.Constant:
            return self._constant(node)
        if kind is ast.Tuple or kind is ast.List:
            inner = self._inner(node, node.elts)  # type: ignore[attr-defined]
            return Sequence("tuple" if kind is ast.Tuple else "list", inner)
        if kind is ast.UnaryOp:
            return self._negative(node)
        if kind is ast.Attribute:
            return self._torch_name(node)
        if kind is ast.Call:
            return self._literal_call(node)
        if kind is ast.Slice:
            parts = (node.lower, node.upper, node.step)  # type: ignore[attr-defined]
            return Slice(*[None if part is None else self.read(part) for part in parts])
        raise error_at(self._where, node, "not allowed as an argument")

    def _inner(self, node, args: list[ast.expr]) -> tuple[Arg, ...]:
        """Return the arguments inside another one."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise error_at(self._where, node, f"nested more than {MAX_DEPTH} deep")
        values = tuple([self.read(arg) for arg in args])
        self._depth -= 1
        return values

    def _named(self, node) -> Arg:
        if node.id in self._bound:
            return Ref(node.id)
        if node.id in FLOAT_NAMES:
            return FLOAT_NAMES[node.id]
        if node.id == "Ellipsis":
            return ...
        raise error_at(self._where, node, "the name is not defined before this line")

    def _constant(self, node) -> Arg:
        value = node.value
        if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
            raise error_at(self._where, node, f"an integer of more than {MAX_INTEGER_BITS} bits")
        if value is None or value is Ellipsis or isinstance(value, (bool, int, float, str)):
            return value
        raise error_at(self._where, node, "this kind of constant is not allowed")

    def _negative(self, node) -> Arg:
        value = self.read(node.operand)
        if isinstance(node.op, ast.USub) and type(value) in (int, float):
            return math.nan if value != value else -value  # type: ignore[operator]
        raise error_at(self._where, node, "not allowed as an argument")

    def _torch_name(self, node) -> Arg:
        if isinstance(node.value, ast.Name) and node.value.id == "torch":
            if node.attr in CONSTANT_NAMES:
                return TorchName(node.attr)
            if node.attr in FLOAT_NAMES:
                return FLOAT_NAMES[node.attr]
        raise error_at(self._where, node, "not a constant of torch that is known here")

    def _literal_call(self, node) -> Arg:
        name = dotted_name(node.func)
        args = self._inner(node, node.args)
        if name == "slice" and not node.keywords and 1 <= len(args) <= 3:
            return Slice(None, args[0]) if len(args) == 1 else Slice(*args)
        only = args[0] if len(args) == 1 and not node.keywords else None
        if name == "torch.Size" and isinstance(only, Sequence):
            return Sequence("size", only.items)
        if name == "float" and isinstance(only, str):
            try:
                number = float(only)
            except ValueError as cause:
                raise error_at(self._where, node, "not a number") from cause
            return math.nan if math.isnan(number) else number
        if name in ("device", "torch.device"):
            return self._device(node, args)
        raise error_at(self._where, node, "only slice, device and torch.Size may be called here")

    def _device(self, node, args: tuple[Arg, ...]) -> Device:
        names = [*("type", "index")[: len(args)], *(pair.arg for pair in node.keywords)]
        values = [*args, *self._inner(node, [pair.value for pair in node.keywords])]
        if len(args) > 2 or len(set(names)) != len(names) or not {*names} <= {"type", "index"}:
            raise error_at(self._where, node, "not a device literal")
        fields = dict(zip(names, values, strict=True))
        kind, index = fields.get("type"), fields.get("index")
        if isinstance(kind, str) and index is None and ":" in kind:
            kind, _, number = kind.partition(":")
            index = int(number) if _DEVICE_NUMBER.fullmatch(number) else number
        is_kind = isinstance(kind, str) and kind.isidentifier()
        if not is_kind or not (index is None or type(index) is int):
            raise error_at(self._where, node, "not a device literal")
        return Device(kind, index)
