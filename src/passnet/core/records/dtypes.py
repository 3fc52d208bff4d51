"""Element types in numpy, bfloat16 included, without torch."""

from typing import Any, TypeAlias

import numpy as np

from passnet.errors import GraphError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_DTYPES = ["float64", "float32", "float16", "bfloat16", "complex64", "complex128"]
_DTYPES += ["int64", "int32", "int16", "int8", "uint8", "bool"]

STORAGE: dict[str, np.dtype[Any]] = {
    name: np.dtype("uint16" if name == "bfloat16" else name) for name in _DTYPES
}
"""Numpy type that stores each dtype; bfloat16 is the upper half of a float32."""

LARGEST: dict[str, float] = {
    "float64": float(np.finfo(np.float64).max),
    "float32": float(np.finfo(np.float32).max),
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
}
"""Largest finite number of each float dtype."""


def storage(dtype: str) -> np.dtype[Any]:
    """Return numpy's storage type for a dtype of torch; raise GraphError if unsupported."""
    try:
        return STORAGE[dtype]
    except KeyError as cause:
        raise GraphError(f"dtype {dtype} is none of {', '.join(STORAGE)}") from cause


def is_float(dtype: str) -> bool:
    """Return whether a dtype is a real floating-point type."""
    return dtype in LARGEST


def to_storage(values: Array, dtype: str) -> Array:
    """Convert numbers (float32 or wider) to the storage of a dtype, rounded half to even.

    Examples:
        >>> hex(int(to_storage(np.array([1.00390625], np.float32), "bfloat16")[0]))
        '0x3f80'
    """
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):
            return values.astype(storage(dtype))
    bits = values.astype(np.float32).view(np.uint32)
    # What numpy computes from an array of no dimension is no array.
    rounded = np.asarray((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16, np.uint16)
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return np.where(nan, np.uint16(0x7FC0), rounded) if nan.any() else rounded


def from_storage(stored: Array, dtype: str) -> Array:
    """Convert storage of a dtype to numbers: bfloat16 to float32, the rest unchanged."""
    if dtype != "bfloat16":
        return stored
    return np.asarray(stored.astype(np.uint32) << 16).view(np.float32)
