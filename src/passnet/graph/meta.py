"""`weight_meta.py` and `input_meta.py` to and from `TensorSpec`s, without executing them."""

from __future__ import annotations

import ast
import math
from typing import Any, Literal

from passnet.errors import GraphError
from passnet.graph.parse import parse_tree
from passnet.graph.spec import TensorSpec

CLASS_PREFIX = "Program_weight_tensor_meta_"
MAX_ELEMENTS = 2**40
"""Largest number of elements an argument may claim; a real graph's largest has below 2**31."""

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
        specs.append(_spec(item, where, role))
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
        values[line.targets[0].id] = _literal(line.value, where)
    place = f"{where}:{item.lineno}: {values.get('name', item.name)}"
    missing = [key for key in _REQUIRED if values.get(key) is None]
    if missing:
        raise GraphError(f"{place}: field {missing[0]} is missing")
    unknown = values.keys() - _FIELDS
    if unknown:
        raise GraphError(f"{place}: unknown field {sorted(unknown)[0]}")
    data = values.get("data")
    return TensorSpec(
        name=_typed(values["name"], str, "name", place),
        shape=_shape(values["shape"], place),
        dtype=_dtype(values["dtype"], place),
        device=_typed(values.get("device", "cpu"), str, "device", place),
        mean=_finite(_optional(values.get("mean"), "mean", place)),
        std=_finite(_optional(values.get("std"), "std", place)),
        min_val=_optional(values.get("min_val"), "min_val", place),
        max_val=_optional(values.get("max_val"), "max_val", place),
        data=None if data is None else _data(data, values["shape"], place),
        original_name=values.get("original_name"),
        keys=tuple(values),
        role=role,
    )


def _literal(node: Any, where: str) -> Any:
    kind = type(node)
    if kind is ast.Constant:  # the three common forms, without the cost of literal_eval
        return node.value
    if kind is ast.UnaryOp and type(node.op) is ast.USub:
        value = _literal(node.operand, where)
        if type(value) in _NUMBER:
            return -value
    if kind is ast.List:
        return [_literal(item, where) for item in node.elts]
    if kind is ast.Call and ast.unparse(node) in ("float('nan')", "float('inf')"):
        return math.nan if "nan" in ast.unparse(node) else math.inf
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError) as cause:
        raise GraphError(f"{where}:{node.lineno}: expected a literal") from cause


def _typed(value: Any, kind: type, key: str, place: str) -> Any:
    if not isinstance(value, kind):
        raise GraphError(f"{place}: {key} is {value!r}, expected {kind.__name__}")
    return value


def _optional(value: Any, key: str, place: str) -> float | int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, _NUMBER)):
        raise GraphError(f"{place}: {key} is {value!r}, expected a number or None")
    return value


def _finite(value: float | int | None) -> float | int | None:
    """`value`, or None for the NaN that `std` of a single element is: it was not measurable."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _shape(value: Any, place: str) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)) or not all(type(n) is int and n >= 0 for n in value):
        raise GraphError(f"{place}: shape is {value!r}, expected a list of sizes")
    if math.prod(value) > MAX_ELEMENTS:
        raise GraphError(f"{place}: shape {value!r} has more than {MAX_ELEMENTS} elements")
    return tuple(value)


def _dtype(value: Any, place: str) -> str:
    name = value.removeprefix("torch.") if isinstance(value, str) else None
    if name not in DTYPE_BYTES:
        raise GraphError(f"{place}: dtype is {value!r}, known are {', '.join(DTYPE_BYTES)}")
    return name


def _data(value: Any, shape: Any, place: str) -> tuple[float | int | bool, ...]:
    items = value if isinstance(value, (list, tuple)) else [value]
    if not {type(item) for item in items} <= {int, float, bool}:
        raise GraphError(f"{place}: data must be a flat list of numbers")
    if len(items) != math.prod(shape):
        raise GraphError(
            f"{place}: data has {len(items)} values, shape {shape} needs {math.prod(shape)}"
        )
    return tuple(items)


def render_meta(specs: tuple[TensorSpec, ...]) -> str:
    """The text of a meta file that lists the specs; parsing it gives them back."""
    return "\n\n".join(_render_spec(item) for item in specs)


def _render_spec(spec: TensorSpec) -> str:
    lines = [f"class {CLASS_PREFIX}{spec.original_name or spec.name}:"]
    for key in spec.keys:
        value = getattr(spec, key)
        if key == "dtype":
            value = "torch." + value
        elif key in ("shape", "data") and value is not None:
            value = list(value)
        text = "float('inf')" if value == math.inf else repr(value)
        lines.append(f"    {key} = {text}")
    return "\n".join(lines) + "\n"
