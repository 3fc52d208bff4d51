"""The C++ of calls of the loops language, and its prelude."""

from collections.abc import Sequence

from passnet.passes.codegen.cpp_source import CPP_TYPES
from passnet_loops.language.language import BOOLEAN_CALLS, LOW_FLOATS, UNARY

PRELUDE = """\
#include "inductor_kernel.h"

template <typename A, typename B>
inline auto largest(A a, B b) {
  return max_propagate_nan<std::common_type_t<A, B>>(a, b);
}
template <typename A, typename B>
inline auto smallest(A a, B b) {
  return min_propagate_nan<std::common_type_t<A, B>>(a, b);
}
template <typename T>
inline T sign_of(T a) {
  return T((T(0) < a) - (a < T(0)));
}
inline int64_t quotient(int64_t a, int64_t b) { return c10::div_floor_integer<int64_t>(a, b); }
inline int64_t rest(int64_t a, int64_t b) { return a - b * quotient(a, b); }
inline int64_t picked(int64_t index, int64_t size) {
  index = index < 0 ? index + size : index;
  TORCH_CHECK(0 <= index && index < size, "index out of bounds");
  return index;
}
"""

_FORMS = {name: f"inductor::{name}({{}})" for name in UNARY} | {
    "relu": "largest({}, 0)",
    "rsqrt": "(1 / inductor::sqrt({}))",
    "sigmoid": "(1 / (1 + inductor::exp(-{})))",
    "round": "inductor::nearbyint({})",
    "sign": "sign_of({})",
    "neg": "(-{})",
    "reciprocal": "(1 / {})",
    "logical_not": "(!{})",
    "bitwise_not": "(~{})",
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "truediv": "({} / {})",
    "minimum": "smallest({}, {})",
    "maximum": "largest({}, {})",
    "eq": "({} == {})",
    "ne": "({} != {})",
    "lt": "({} < {})",
    "gt": "({} > {})",
    "le": "({} <= {})",
    "ge": "({} >= {})",
    "logical_and": "({} && {})",
    "logical_or": "({} || {})",
    "logical_xor": "(bool({}) != bool({}))",
    "bitwise_and": "({} & {})",
    "bitwise_or": "({} | {})",
    "bitwise_xor": "({} ^ {})",
    "bitwise_left_shift": "({} << {})",
    "bitwise_right_shift": "({} >> {})",
    "pow": "inductor::pow({}, {})",
    "fmod": "inductor::fmod({}, {})",
    "mod": "mod({}, {})",
    "floordiv": "floor_divide_integral({}, {})",
    "truncdiv": "({} / {})",
    "atan2": "inductor::atan2({}, {})",
    "copysign": "inductor::copysign({}, {})",
    "hypot": "inductor::hypot({}, {})",
    "where": "({} ? {} : {})",
    "masked": "({} ? {} : {})",
}
_REAL = (UNARY - {"relu", "logical_not", "bitwise_not", "sign", "neg"}) | {"truediv", "pow"}


def call_text(name: str, texts: list[str], dtypes: list[str]) -> tuple[str, str]:
    """Return the C++ and the dtype of a call with arguments."""
    if name in CPP_TYPES:
        kind = CPP_TYPES[name]
        if name in LOW_FLOATS:
            return f"float({kind}(float({texts[0]})))", "float32"
        return f"c10::convert<{kind}>({texts[0]})", name
    values = dtypes[1:] if name in ("where", "masked") else dtypes
    dtype = _promoted(values)
    if name in _REAL and dtype not in ("float32", "float64"):
        texts, dtype = [f"float({text})" for text in texts], "float32"
    if name in ("bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor") and dtype == "bool":
        form = {"bitwise_not": "(!{})"}.get(name, _FORMS[name])
        return f"bool{form.format(*texts)}", "bool"
    if name == "mod" and dtype in ("float32", "float64"):
        a, b = texts
        return f"({a} - {b} * inductor::floor({a} / {b}))", dtype
    return _FORMS[name].format(*texts), "bool" if name in BOOLEAN_CALLS else dtype


def _promoted(dtypes: Sequence[str]) -> str:
    for dtype in ("float64", "float32", "int64", "int32", "int16", "int8", "uint8"):
        if dtype in dtypes:
            return dtype
    return "bool"


def real_text(number: float) -> str:
    """Return the C++ of a real number."""
    if number != number:
        return "std::numeric_limits<float>::quiet_NaN()"
    if number in (float("inf"), float("-inf")):
        return f"{'-' if number < 0 else ''}std::numeric_limits<float>::infinity()"
    return f"float({number!r})"
