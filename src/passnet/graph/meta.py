"""`weight_meta.py` and `input_meta.py` to and from `TensorSpec`s, without executing them."""

from __future__ import annotations

import ast
import math
from typing import Any, Literal

from passnet.errors import GraphError
from passnet.graph.arguments import MAX_DEPTH, MAX_INTEGER_BITS
from passnet.graph.spec import TensorSpec
from passnet.graph.syntax import parse_tree

CLASS_PREFIX = "Program_weight_tensor_meta_"
MAX_ELEMENTS = 2**40
"""Most elements that an argument, and all of a graph's, may claim; a real graph has below 2**32."""

MAX_DIMS = 32
"""Most dimensions of an argument; those of the public graphs have up to 5, numpy knows 64."""

DTYPE_BYTES: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "complex64": 8,
    "complex128": 16,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
"""Bytes per element of every dtype that an argument may have."""

_FIELDS = frozenset(TensorSpec.__slots__) - {"keys", "role"}
_REQUIRED = ("name", "shape", "dtype")
_NUMBER = (int, float)
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""What `float('…')` may say: the numbers without a literal of their own."""


def parse_meta(
    text: str, where: str, role: Literal["weight", "input"] = "weight"
) -> tuple[TensorSpec, ...]:
    """The specs that a meta file lists, in its order.

    The file holds one class per argument whose body assigns literals.

    Raises:
        GraphError: anything else in the file, a missing field, a shape or dtype that cannot be.
    """
    specs = []
    for item in parse_tree(text, where).body:
        if isinstance(item, (ast.Import, ast.ImportFrom)):
            continue
        if not isinstance(item, ast.ClassDef):
            raise GraphError(f"{where}:{item.lineno}: only classes may stand here")
        try:
            specs.append(_spec(item, where, role))
        except RecursionError as cause:
            raise GraphError(f"{where}:{item.lineno}: nested too deeply") from cause
    return tuple(specs)


def _spec(item: ast.ClassDef, where: str, role: Literal["weight", "input"]) -> TensorSpec:
    values: dict[str, Any] = {}
    for line in item.body:
        if isinstance(line, ast.Pass):
            continue
        if not (
            isinstance(line, ast.Assign)
            and len(line.targets) == 1
            and isinstance(line.targets[0], ast.Name)
        ):
            raise GraphError(f"{where}:{line.lineno}: expected `field = literal`")
        key = line.targets[0].id
        if key in values:
            raise GraphError(f"{where}:{line.lineno}: field {key} stands there twice")
        values[key] = _literal(line.value, where)
    place = f"{where}:{item.lineno}: {_shown(values.get('name', item.name))}"
    missing = [key for key in _REQUIRED if values.get(key) is None]
    if missing:
        raise GraphError(f"{place}: field {missing[0]} is missing")
    unknown = values.keys() - _FIELDS
    if unknown:
        raise GraphError(f"{place}: unknown field {sorted(unknown)[0]}")
    data = values.get("data")
    spec = TensorSpec(
        name=_typed(values["name"], str, "name", place),
        shape=_shape(values["shape"], place),
        dtype=_dtype(values["dtype"], place),
        device=_typed(values.get("device", "cpu"), str, "device", place),
        mean=_finite(_optional(values.get("mean"), "mean", place)),
        std=_finite(_optional(values.get("std"), "std", place)),
        min_val=_optional(values.get("min_val"), "min_val", place),
        max_val=_optional(values.get("max_val"), "max_val", place),
        data=None if data is None else _data(data, place),
        original_name=_original_name(values.get("original_name"), place),
        keys=tuple(values),
        role=role,
    )
    check_spec(spec, place)
    return spec


def _literal(node: Any, where: str, depth: int = 0) -> Any:
    # Counted here, as Python's own limit of recursion is whatever other code has set it to.
    if depth > MAX_DEPTH:
        raise GraphError(f"{where}:{node.lineno}: nested more than {MAX_DEPTH} deep")
    kind = type(node)
    if kind is ast.Constant:
        if type(node.value) is int and node.value.bit_length() > MAX_INTEGER_BITS:
            raise GraphError(
                f"{where}:{node.lineno}: a whole number of more than {MAX_INTEGER_BITS} bits"
            )
        if node.value is None or type(node.value) in (bool, int, float, str):
            return node.value
    if kind is ast.UnaryOp and type(node.op) is ast.USub:
        value = _literal(node.operand, where, depth + 1)
        if type(value) in _NUMBER:
            return math.nan if value != value else -value
    if kind is ast.List or kind is ast.Tuple:
        return [_literal(item, where, depth + 1) for item in node.elts]
    if kind is ast.Call and type(node.func) is ast.Name and node.func.id == "float":
        match node.args:
            case [ast.Constant(str(text))] if text in _SPECIAL and not node.keywords:
                return _SPECIAL[text]
    raise GraphError(f"{where}:{node.lineno}: expected a literal")


def _shown(value: Any) -> str:
    """A value in the text of an error, shortened; strings of names as they are."""
    text = value if isinstance(value, str) and value.isidentifier() else repr(value)
    return f"{text[:80]}{'…' if len(text) > 80 else ''}"


def _typed(value: Any, kind: type, key: str, place: str) -> Any:
    if not isinstance(value, kind):
        raise GraphError(f"{place}: {key} is {_shown(value)}, expected {kind.__name__}")
    return value


def _original_name(value: Any, place: str) -> str | None:
    return None if value is None else _typed(value, str, "original_name", place)


def _optional(value: Any, key: str, place: str) -> float | int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, _NUMBER)):
        raise GraphError(f"{place}: {key} is {_shown(value)}, expected a number or None")
    return value


def _finite(value: float | int | None) -> float | int | None:
    """`value`, or None for the NaN that `std` of a single element is: it was not measurable."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _shape(value: Any, place: str) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)) or not all(type(n) is int and n >= 0 for n in value):
        raise GraphError(f"{place}: shape is {_shown(value)}, expected a list of sizes")
    return tuple(value)


def _dtype(value: Any, place: str) -> str:
    name = value.removeprefix("torch.") if isinstance(value, str) else None
    if name not in DTYPE_BYTES:
        raise GraphError(f"{place}: dtype is {_shown(value)}, known are {', '.join(DTYPE_BYTES)}")
    return name


def _data(value: Any, place: str) -> tuple[float | int | bool, ...]:
    items = value if isinstance(value, (list, tuple)) else [value]
    if not {type(item) for item in items} <= {int, float, bool}:
        raise GraphError(f"{place}: data must be a flat list of numbers")
    return tuple(items)


def check_spec(spec: TensorSpec, place: str) -> None:
    """Raise a GraphError if a spec, of whatever file, claims what no argument can be."""
    if not spec.name.isidentifier():
        raise GraphError(f"{place}: name is {_shown(spec.name)}, expected that of an argument")
    shape = spec.shape
    if len(shape) > MAX_DIMS:
        raise GraphError(f"{place}: {len(shape)} dimensions, more than {MAX_DIMS}")
    if any(size < 0 for size in shape):
        raise GraphError(f"{place}: shape is {_shown(list(shape))}, expected a list of sizes")
    if math.prod(max(1, size) for size in shape) > MAX_ELEMENTS:
        raise GraphError(f"{place}: shape {list(shape)} has more than {MAX_ELEMENTS} elements")
    _dtype(spec.dtype, place)
    if spec.data is not None and len(spec.data) != spec.num_elements:
        raise GraphError(
            f"{place}: data has {len(spec.data)} values, shape {list(shape)} needs "
            f"{spec.num_elements}"
        )
    numbers = (spec.mean, spec.std, spec.min_val, spec.max_val, *(spec.data or ()))
    if any(type(n) is int and n.bit_length() > MAX_INTEGER_BITS for n in numbers):
        raise GraphError(f"{place}: a whole number of more than {MAX_INTEGER_BITS} bits")
    if len({*spec.keys}) != len(spec.keys) or not {*_REQUIRED} <= {*spec.keys} <= _FIELDS:
        raise GraphError(f"{place}: keys are {_shown(spec.keys)}, expected fields of a spec")


def check_arguments(names: list[str], specs: tuple[TensorSpec, ...], place: str) -> None:
    """Raise a GraphError unless there is one spec for each argument, in order, within the limits.

    Args:
        names: the arguments of `forward`.
        specs: what is recorded of them, checked by `check_spec` each.
        place: file or folder for the error.
    """
    if names != [item.name for item in specs]:
        raise GraphError(f"{place}: the arguments of forward and their specs differ")
    if sum(item.num_elements for item in specs) > MAX_ELEMENTS:
        raise GraphError(f"{place}: the arguments have more than {MAX_ELEMENTS} elements together")


def render_meta(specs: tuple[TensorSpec, ...]) -> str:
    """The text of a meta file that lists the specs; parsing it gives them back."""
    return "\n\n".join(_render_spec(item) for item in specs)


def _render_spec(spec: TensorSpec) -> str:
    name = spec.original_name or spec.name
    lines = [f"class {CLASS_PREFIX}{name if name.isidentifier() else spec.name}:"]
    for key in spec.keys:
        value = getattr(spec, key)
        lines.append(f"    {key} = {_text('torch.' + value if key == 'dtype' else value)}")
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_text(item) for item in value)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)
