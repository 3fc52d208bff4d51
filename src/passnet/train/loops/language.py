"""The loops language: what to fuse, the loop nests and their arithmetic, as a tree and as text.

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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from passnet.errors import InputError

UNARY = frozenset(
    [
        "abs",
        "exp",
        "exp2",
        "expm1",
        "sqrt",
        "relu",
        "cos",
        "sin",
        "lgamma",
        "erf",
        "cosh",
        "sinh",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "erfc",
        "log10",
        "log2",
        "logical_not",
        "bitwise_not",
        "rsqrt",
        "log1p",
        "tan",
        "tanh",
        "sigmoid",
        "signbit",
        "log",
        "isinf",
        "isnan",
        "round",
        "floor",
        "sign",
        "trunc",
        "ceil",
        "neg",
        "reciprocal",
    ]
)
COMPARISONS = frozenset(
    [
        "eq",
        "ne",
        "lt",
        "gt",
        "le",
        "ge",
        "logical_and",
        "logical_or",
        "logical_xor",
    ]
)
BINARY = COMPARISONS | frozenset(
    [
        "add",
        "sub",
        "mul",
        "truediv",
        "minimum",
        "maximum",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_left_shift",
        "bitwise_right_shift",
        "pow",
        "fmod",
        "atan2",
        "copysign",
        "hypot",
        "mod",
        "floordiv",
        "truncdiv",
    ]
)
CASTS = frozenset(
    [
        "float32",
        "float64",
        "bfloat16",
        "float16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
    ]
)
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
MAX_DEPTH = 200
MAX_WORDS = 20_000


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
    """A value of memory, `a0 [ i0 i1 ]`: an index for each axis."""

    memory: str
    index: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class IndexValue:
    """An index as a value, `at [ + i0 N1 ]`."""

    index: Index


@dataclass(frozen=True, slots=True)
class Call:
    """Arithmetic."""

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
    """`pick name size value`: a value as an index of an axis of some size, counted from the end if
    it is negative.
    """

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
    """`sum name value`: what becomes known under these names when the inner loop is done."""

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
    """The ops from one to another, by the names of what they make, and how they are computed."""

    first: str
    last: str
    memory: tuple[Memory, ...]
    nests: tuple[Nest, ...]


def print_answer(ranges: tuple[FusedRange, ...]) -> str:
    """The text of an answer."""
    return "\n".join(line for fused in ranges for line in _range_lines(fused))


def _range_lines(fused: FusedRange) -> Iterator[str]:
    yield f"range {fused.first} {fused.last}"
    for memory in fused.memory:
        shape = " ".join(map(_index_text, memory.shape))
        yield " ".join(filter(None, ("buf", memory.name, memory.dtype, shape, ";")))
    for nest in fused.nests:
        yield f"for {_loops_text(nest.loops)}:"
        for step in nest.steps:
            if isinstance(step, Inner):
                yield f"  over {_loops_text(step.loops)}:"
                yield from (f"    {_step_text(inner)}" for inner in step.steps)
                yield "  done"
            else:
                yield f"  {_step_text(step)}"
        yield "end"


def _loops_text(loops: tuple[Loop, ...]) -> str:
    return "".join(f"{name} {_index_text(size)} " for name, size in loops)


def _step_text(step: LoopStep) -> str:
    match step:
        case Let(name, value):
            return f"{name} = {_expr_text(value)}"
        case Pick(name, size, value):
            return f"pick {name} {size} {_expr_text(value)}"
        case Put(memory, index, value):
            return f"put {memory} {_brackets(index)} {_expr_text(value)}"
        case Reduce(kind, names, value):
            return f"{kind} {' '.join(names)} {_expr_text(value)}"
    raise AssertionError("an inner loop is printed by its nest")


def _expr_text(value: Expr) -> str:
    match value:
        case str():
            return value
        case MemoryRead(memory, index):
            return f"{memory} {_brackets(index)}"
        case IndexValue(index):
            return f"at {_brackets((index,))}"
        case Call(name, args):
            return " ".join((name, *map(_expr_text, args)))


def _brackets(index: tuple[Index, ...]) -> str:
    return " ".join(("[", *map(_index_text, index), "]"))


def _index_text(index: Index) -> str:
    if isinstance(index, str):
        return index
    return f"{index.name} {_index_text(index.left)} {_index_text(index.right)}"


def parse_answer(text: str) -> tuple[FusedRange, ...]:
    """The tree of an answer's text.

    Raises:
        InputError: it is none; the first word that does not fit is named.
    """
    return _Parser(text.split()).answer()


class _Parser:
    """Reads words from left to right."""

    def __init__(self, words: list[str]) -> None:
        if len(words) > MAX_WORDS:
            raise InputError(f"an answer of {len(words)} words; {MAX_WORDS} are read")
        self._words = words
        self._place = 0

    def answer(self) -> tuple[FusedRange, ...]:
        ranges = []
        while self._place < len(self._words):
            ranges.append(self._range())
        if not ranges:
            raise InputError("an empty answer; it begins with: range")
        return tuple(ranges)

    def _peek(self) -> str:
        return self._words[self._place] if self._place < len(self._words) else ""

    def _word(self) -> str:
        word = self._peek()
        if not word:
            raise InputError("the answer ends in the middle of a step")
        self._place += 1
        return word

    def _expect(self, expected: str) -> None:
        place, word = self._place, self._word()
        if word != expected:
            raise InputError(f"word {place} of the answer is {word!r}, not {expected!r}")

    def _name(self) -> str:
        place, word = self._place, self._word()
        if not word.isidentifier():
            raise InputError(f"word {place} of the answer is {word!r}, which is no name")
        return word

    def _range(self) -> FusedRange:
        self._expect("range")
        first, last = self._name(), self._name()
        memory, nests = [], []
        while self._peek() == "buf":
            memory.append(self._memory())
        while self._peek() == "for":
            nests.append(self._nest())
        if not nests:
            raise InputError(f"range {first} {last} has no loops")
        return FusedRange(first, last, tuple(memory), tuple(nests))

    def _memory(self) -> Memory:
        self._expect("buf")
        name, dtype, shape = self._name(), self._name(), []
        if dtype not in CASTS:
            raise InputError(f"buf {name}: {dtype!r} is no dtype; there are {', '.join(CASTS)}")
        while self._peek() != ";":
            shape.append(self._index())
        self._expect(";")
        return Memory(name, dtype, tuple(shape))

    def _loops(self) -> tuple[Loop, ...]:
        loops = []
        while self._peek() != ":":
            loops.append((self._name(), self._index()))
        self._expect(":")
        return tuple(loops)

    def _nest(self) -> Nest:
        self._expect("for")
        loops, steps = self._loops(), []
        while self._peek() != "end":
            steps.append(self._inner() if self._peek() == "over" else self._step())
        self._expect("end")
        return Nest(loops, tuple(steps))

    def _inner(self) -> Inner:
        self._expect("over")
        loops, steps = self._loops(), []
        while self._peek() != "done":
            steps.append(self._step())
        self._expect("done")
        return Inner(loops, tuple(steps))

    def _step(self) -> Let | Pick | Put | Reduce:
        word = self._name()
        if word == "put":
            return Put(self._name(), self._index_list(), self._expr())
        if word == "pick":
            return Pick(self._name(), self._word(), self._expr())
        if word in REDUCTIONS and self._peek() != "=":
            names = tuple(self._name() for _ in range(REDUCTIONS[word]))
            return Reduce(word, names, self._expr())
        self._expect("=")
        return Let(word, self._expr())

    def _expr(self, depth: int = 0) -> Expr:
        word = self._word()
        if depth > MAX_DEPTH:
            raise InputError(f"an expression of more than {MAX_DEPTH} calls in each other")
        if word == "at":
            index = self._index_list()
            if len(index) != 1:
                raise InputError(f"at has {len(index)} indices, it needs 1")
            return IndexValue(index[0])
        if word in ARITY:
            return Call(word, tuple(self._expr(depth + 1) for _ in range(ARITY[word])))
        return MemoryRead(word, self._index_list()) if self._peek() == "[" else word

    def _index_list(self) -> tuple[Index, ...]:
        self._expect("[")
        index = []
        while self._peek() != "]":
            index.append(self._index())
        self._expect("]")
        return tuple(index)

    def _index(self, depth: int = 0) -> Index:
        word = self._word()
        if depth > MAX_DEPTH:
            raise InputError(f"an index of more than {MAX_DEPTH} calls in each other")
        if word in INDEX_CALLS:
            return IndexCall(word, self._index(depth + 1), self._index(depth + 1))
        return word
