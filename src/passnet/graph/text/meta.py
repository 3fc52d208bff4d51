"""`weight_meta.py` and `input_meta.py` as `TensorSpec`s, read and written without execution."""

import ast
import math
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, Literal, get_args

from passnet.core.records.dtypes import STORAGE, is_float
from passnet.errors import GraphError
from passnet.graph.arguments import MAX_DEPTH, MAX_INTEGER_BITS
from passnet.graph.spec import Program, TensorSpec, ValueDomain
from passnet.graph.text.syntax import parse_tree

CLASS_PREFIX = "Program_weight_tensor_meta_"
MAX_ELEMENTS = 2**40
"""Most elements of one argument, and of all arguments of a graph; real graphs have below 2**32."""

MAX_DIMS = 32
"""Most dimensions of an argument; the public graphs have up to 5, and numpy supports 64."""

_PART_CHARACTERS = 2**16

DTYPE_BYTES: dict[str, int] = {name: dtype.itemsize for name, dtype in STORAGE.items()}
_FIELDS = frozenset(field.name for field in fields(TensorSpec)) - {"keys", "role"}
_REQUIRED = ("name", "shape", "dtype")
_OPTIONAL_NUMBER = (int | float | None, "a number or None")
_PLAIN_FIELDS: dict[str, tuple[Any, str]] = {
    "name": (str, "str"),
    "device": (str, "str"),
    **dict.fromkeys(("original_name", "domain"), (str | None, "str")),
    **dict.fromkeys(("mean", "std", "min_val", "max_val"), _OPTIONAL_NUMBER),
}
"""Type of each field that is stored as written, and its name in errors."""

_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def input_mib(tensors: Iterable[TensorSpec]) -> float:
    """Return the memory of some inputs in MiB.

    Examples:
        >>> input_mib([TensorSpec("x", (1024, 1024), "bfloat16")])
        2.0
    """
    return sum(spec.num_elements * DTYPE_BYTES[spec.dtype] for spec in tensors) / 2**20


def parse_meta(
    text: str, where: str, role: Literal["weight", "input"] = "weight"
) -> tuple[TensorSpec, ...]:
    """Return the specs of a meta file, in order.

    The file holds one class per argument that assigns literals; anything else is a GraphError.
    """
    specs = []
    for node in _nodes(text, where):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        if not isinstance(node, ast.ClassDef):
            raise GraphError(f"{where}:{node.lineno}: only classes may stand here")
        try:
            specs.append(_spec(node, where, role))
        except RecursionError as cause:
            raise GraphError(f"{where}:{node.lineno}: nested too deeply") from cause
    return tuple(specs)


def _nodes(text: str, where: str) -> Iterator[ast.stmt]:
    """Yield the statements of a text; few classes are parsed at a time, as trees take memory."""
    start = 0
    while start < len(text):
        stop = text.find("\nclass ", start + _PART_CHARACTERS) + 1 or len(text)
        yield from parse_tree("\n" * text.count("\n", 0, start) + text[start:stop], where).body
        start = stop


def _spec(cls: ast.ClassDef, where: str, role: Literal["weight", "input"]) -> TensorSpec:
    values: dict[str, Any] = {}
    for line in cls.body:
        match line:
            case ast.Pass():
                continue
            case ast.Assign([ast.Name(key)], value):
                if key in values:
                    raise GraphError(f"{where}:{line.lineno}: field {key} stands there twice")
                values[key] = _literal(value, where)
            case _:
                raise GraphError(f"{where}:{line.lineno}: expected `field = literal`")
    where = f"{where}:{cls.lineno}: {_shown(values.get('name', cls.name))}"
    missing = [key for key in _REQUIRED if values.get(key) is None]
    if missing:
        raise GraphError(f"{where}: field {missing[0]} is missing")
    unknown = values.keys() - _FIELDS
    if unknown:
        raise GraphError(f"{where}: unknown field {sorted(unknown)[0]}")
    plain = {key: _plain_field(values, key, where) for key in _PLAIN_FIELDS}
    for key in ("mean", "std"):
        if plain[key] != plain[key]:  # NaN, the spread of a single element: not measurable
            plain[key] = None
    spec = TensorSpec(
        **plain,
        shape=_shape(values["shape"], where),
        dtype=_dtype(values["dtype"], where),
        data=_data(values.get("data"), where),
        keys=tuple(values),
        role=role,
    )
    check_spec(spec, where)
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
        if type(value) in (int, float):
            return math.nan if value != value else -value
    if kind is ast.List or kind is ast.Tuple:
        return [_literal(inner, where, depth + 1) for inner in node.elts]
    if kind is ast.Call and type(node.func) is ast.Name and node.func.id == "float":
        match node.args:
            case [ast.Constant(str(text))] if text in _SPECIAL and not node.keywords:
                return _SPECIAL[text]
    raise GraphError(f"{where}:{node.lineno}: expected a literal")


def _shown(value: Any) -> str:
    """Return a value's text for an error, shortened; a name stays as it is."""
    text = value if isinstance(value, str) and value.isidentifier() else repr(value)
    return f"{text[:80]}{'…' if len(text) > 80 else ''}"


def _plain_field(values: dict[str, Any], key: str, where: str) -> Any:
    kind, expected = _PLAIN_FIELDS[key]
    value = values.get(key, "cpu" if key == "device" else None)
    if isinstance(value, bool) or not isinstance(value, kind):
        raise GraphError(f"{where}: {key} is {_shown(value)}, expected {expected}")
    return value


def _shape(value: Any, where: str) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)) or not all(type(n) is int and n >= 0 for n in value):
        raise GraphError(f"{where}: shape is {_shown(value)}, expected a list of sizes")
    return tuple(value)


def _dtype(value: Any, where: str) -> str:
    name = value.removeprefix("torch.") if isinstance(value, str) else None
    if name not in DTYPE_BYTES:
        raise GraphError(f"{where}: dtype is {_shown(value)}, known are {', '.join(DTYPE_BYTES)}")
    return name


def _data(value: Any, where: str) -> tuple[float | int | bool, ...] | None:
    if value is None:
        return None
    numbers = value if isinstance(value, (list, tuple)) else [value]
    if not {type(number) for number in numbers} <= {int, float, bool}:
        raise GraphError(f"{where}: data must be a flat list of numbers")
    return tuple(numbers)


def check_spec(spec: TensorSpec, where: str) -> None:
    """Raise a GraphError if a spec makes a claim that no argument can meet."""
    if not spec.name.isidentifier():
        raise GraphError(f"{where}: name is {_shown(spec.name)}, expected that of an argument")
    shape = spec.shape
    if len(shape) > MAX_DIMS:
        raise GraphError(f"{where}: {len(shape)} dimensions, more than {MAX_DIMS}")
    if any(size < 0 for size in shape):
        raise GraphError(f"{where}: shape is {_shown(list(shape))}, expected a list of sizes")
    if math.prod(max(1, size) for size in shape) > MAX_ELEMENTS:
        raise GraphError(f"{where}: shape {list(shape)} has more than {MAX_ELEMENTS} elements")
    _dtype(spec.dtype, where)
    if spec.domain is not None and not (
        spec.domain in get_args(ValueDomain) and is_float(spec.dtype)
    ):
        known = f"none of {', '.join(get_args(ValueDomain))} of a float"
        raise GraphError(f"{where}: domain is {_shown(spec.domain)}, {known}")
    if spec.data is not None and len(spec.data) != spec.num_elements:
        raise GraphError(f"{where}: data has {len(spec.data)} values for shape {list(shape)}")
    numbers = (spec.mean, spec.std, spec.min_val, spec.max_val, *(spec.data or ()))
    if any(type(n) is int and n.bit_length() > MAX_INTEGER_BITS for n in numbers):
        raise GraphError(f"{where}: a whole number of more than {MAX_INTEGER_BITS} bits")
    if len({*spec.keys}) != len(spec.keys) or not {*_REQUIRED} <= {*spec.keys} <= _FIELDS:
        raise GraphError(f"{where}: keys are {_shown(spec.keys)}, expected fields of a spec")


def check_arguments(program: Program, specs: tuple[TensorSpec, ...], where: str) -> None:
    """Raise a GraphError unless each argument has a checked spec, in order, within the limits."""
    if [param.name for param in program.params] != [spec.name for spec in specs]:
        raise GraphError(f"{where}: the arguments of forward and their specs differ")
    if sum(spec.num_elements for spec in specs) > MAX_ELEMENTS:
        raise GraphError(f"{where}: the arguments have more than {MAX_ELEMENTS} elements together")


def render_meta(specs: Iterable[TensorSpec]) -> str:
    """Return the text of a meta file with these specs; parsing it gives them back."""
    return "\n\n".join(_render_spec(spec) for spec in specs)


def _render_spec(spec: TensorSpec) -> str:
    name = spec.original_name or spec.name
    lines = [f"class {CLASS_PREFIX}{name if name.isidentifier() else spec.name}:"]
    for key in spec.keys:
        value = getattr(spec, key)
        lines.append(f"    {key} = {_text('torch.' + value if key == 'dtype' else value)}")
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_text(number) for number in value)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)
