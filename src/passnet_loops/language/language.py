"""The loops language: what to fuse, the loop nests and their arithmetic, as a tree.

An answer is a list of ranges of ops, each with its nests and the memory that it needs between them.
A nest is a list of outer loops and steps; among the steps are inner loops with steps of their own.
All calls are in prefix order and each has a fixed number of arguments, so that no brackets are
needed but those around an index. Words are separated by blanks; a line is a step, but line breaks
mean nothing.

    range t0 t2
    buf b0 float32 N0 N1 ;
    for i0 N0 i1 N1 :
      over r0 N2 :
        t0 = mul a0 [ i0 i1 r0 ] F0
        sum s0 t0
      done
      put t2 [ i0 i1 ] truediv s0 N2.
    end

Values of the prompt keep the names that they have there. Numbers up to 8 stand as they are, others
as the symbols of the prompt, and `N2.` is N2 as a real number.
"""

from dataclasses import dataclass
from typing import TypeAlias

_UNARY = """
    abs exp exp2 expm1 sqrt relu cos sin lgamma erf cosh sinh acos acosh asin asinh atan atanh
    erfc log10 log2 logical_not bitwise_not rsqrt log1p tan tanh sigmoid signbit log isinf isnan
    round floor sign trunc ceil neg reciprocal
"""
UNARY = frozenset(_UNARY.split())
_COMPARISONS = """
    eq ne lt gt le ge logical_and logical_or logical_xor
"""
COMPARISONS = frozenset(_COMPARISONS.split())
_BINARY = """
    add sub mul truediv minimum maximum bitwise_and bitwise_or bitwise_xor bitwise_left_shift
    bitwise_right_shift pow fmod atan2 copysign hypot mod floordiv truncdiv
"""
BINARY = COMPARISONS | frozenset(_BINARY.split())
_CASTS = """
    float32 float64 bfloat16 float16 int64 int32 int16 int8 uint8 bool
"""
CASTS = frozenset(_CASTS.split())
LOW_FLOATS = ("bfloat16", "float16")
TERNARY = frozenset(("where", "masked"))
BOOLEAN_CALLS = COMPARISONS | {"logical_not", "isinf", "isnan", "signbit"}
"""Calls that give true or false, whatever the dtypes of their arguments."""
ARITY = {
    **dict.fromkeys(UNARY | CASTS, 1),
    **dict.fromkeys(BINARY, 2),
    **dict.fromkeys(TERNARY, 3),
}
"""How many arguments a call has. `masked condition value other` reads nothing for its value where
the condition does not hold."""

REDUCTIONS = {"sum": 1, "prod": 1, "max": 1, "min": 1, "any": 1, "argmax": 1, "argmin": 1}
REDUCTIONS |= {"welford": 2}
"""What an inner loop may add up, and how many values come of it; of welford mean and sum of squared
differences from it."""

INDEX_CALLS = frozenset(("+", "*", "//", "%"))


@dataclass(frozen=True, slots=True)
class IndexCall:
    """Whole-number arithmetic of two parts of an index."""

    name: str
    left: "Index"
    right: "Index"


Index: TypeAlias = "IndexCall | str"
"""A loop variable, a number, a symbol or the name of a value; or arithmetic of these."""


@dataclass(frozen=True, slots=True)
class MemoryRead:
    """A value read from memory, `a0 [ i0 i1 ]`: an index for each axis."""

    memory: str
    index: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class IndexValue:
    """An index as a value, `at [ + i0 N1 ]`."""

    index: Index


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the language."""

    name: str
    args: tuple["Expr", ...]


Expr: TypeAlias = "MemoryRead | IndexValue | Call | str"
"""A value: a name, a number, a symbol; or what is read or computed."""


@dataclass(frozen=True, slots=True)
class Let:
    """`name = value`."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Pick:
    """`pick name size value`: a value as an index; a negative one counts from the end."""

    name: str
    size: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Put:
    """`put memory [ index ] value`."""

    memory: str
    index: tuple[Index, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class Reduce:
    """`sum name value`: a reduction, known by its names after the inner loop."""

    kind: str
    names: tuple[str, ...]
    value: Expr


Loop: TypeAlias = tuple[str, Index]
"""A variable, and how many values it takes, from 0."""


@dataclass(frozen=True, slots=True)
class Inner:
    """`over r0 N2 : ... done`."""

    loops: tuple[Loop, ...]
    steps: tuple["Let | Pick | Put | Reduce", ...]


LoopStep: TypeAlias = "Let | Pick | Put | Reduce | Inner"


@dataclass(frozen=True, slots=True)
class Nest:
    """`for i0 N0 : ... end`."""

    loops: tuple[Loop, ...]
    steps: tuple[LoopStep, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory between nests: `buf b0 float32 N0 N1 ;`."""

    name: str
    dtype: str
    shape: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class FusedRange:
    """Fused ops, from the first to the last by the names of their results."""

    first: str
    last: str
    memory: tuple[Memory, ...]
    nests: tuple[Nest, ...]
