"""The C++ of nests in the loops language, written out as they stand: nothing is moved or left out.

Values in low floats are held as float, and rounded where the answer says so or they are stored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from passnet.agent.authors.cpp_source import CPP_TYPES, ENTRY
from passnet.errors import InputError
from passnet.train.loops.language import (
    BOOLEAN_CALLS,
    LOW_FLOATS,
    UNARY,
    Call,
    Expr,
    Index,
    IndexValue,
    Inner,
    Let,
    Loop,
    LoopStep,
    MemoryRead,
    Nest,
    Pick,
    Put,
    Reduce,
)
from passnet.train.loops.offsets import Offset, offset_of, words_of
from passnet.train.loops.symbols import Symbols

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


@dataclass(frozen=True, slots=True)
class MemoryLayout:
    """What is known of memory: its C++ name, dtype, shape and strides in elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def cpp_of_nests(
    nests: Sequence[Nest],
    memory: Mapping[str, MemoryLayout],
    inputs: Sequence[str],
    outputs: Sequence[str],
    scratch: Sequence[str],
    symbols: Symbols,
) -> str:
    """The source whose function `launch` runs some nests, given inputs, then outputs.

    `memory` has the layout of all names of memory; inputs may only be read. `scratch` are those
    that the source allocates.

    Raises:
        InputError: a name, a number or an index has no meaning.
    """
    writer = _CppWriter(memory, frozenset(inputs), symbols)
    bodies = [line for nest in nests for line in writer.nest(nest)]
    types = {name: CPP_TYPES[layout.dtype] for name, layout in memory.items()}
    params = [f"const {types[name]}* __restrict__ {name}_at" for name in inputs]
    params += [f"{types[name]}* __restrict__ {name}_at" for name in outputs]
    lines = [PRELUDE]
    result = "const char*" if writer.may_fail else "void"
    lines.append(f'extern "C" {result} {ENTRY}({", ".join(params)}) {{')
    lines += ["try {"] * writer.may_fail
    for name in scratch:
        count = 1
        for size in memory[name].shape:
            count *= size
        lines.append(f"  inductor::Scratch<{types[name]}> {name}_memory({count});")
        lines.append(f"  {types[name]}* __restrict__ {name}_at = {name}_memory.data;")
    lines += bodies
    if writer.may_fail:
        lines += ["} catch (const inductor::Failure& failure) {", "  return failure.text;", "}"]
        lines.append("return nullptr;")
    return "\n".join([*lines, "}", ""])


class _CppWriter:
    """Writes nests one after the other, and follows which names are known, with their dtypes."""

    def __init__(
        self, memory: Mapping[str, MemoryLayout], inputs: frozenset[str], symbols: Symbols
    ) -> None:
        self._memory = memory
        self._inputs = inputs
        self._symbols = symbols
        self._variables: list[str] = []
        self._merged: set[str] = set()
        self._scopes: list[dict[str, str]] = []
        self.may_fail = False

    def nest(self, nest: Nest) -> Iterator[str]:
        """The lines of a nest."""
        self._variables, self._merged, self._scopes = [], set(), [{}]
        yield "  {"
        has_inner = any(isinstance(step, Inner) for step in nest.steps)
        loops = nest.loops if has_inner else self._merged_loops(nest.loops, nest.steps)
        yield from self._heads(loops, None if has_inner else nest.steps)
        for step in nest.steps:
            if isinstance(step, Inner):
                yield from self._inner(step)
            else:
                yield from self._step(step)
        yield "}" * len(loops)
        yield "  }"

    def _merged_loops(self, loops: tuple[Loop, ...], steps: Sequence[LoopStep]) -> tuple[Loop, ...]:
        """Loops, with the innermost one going on where the next round of those around it begins,
        wherever all that `steps` read and put allows it. It is longer then, to be vectorised.
        """
        self._merged = set()
        own = [name for name, _ in loops]
        names = {name for step in steps for name in _names_of(step)}
        if len({*own, *names, *self._variables}) < len(own) + len(names) + len(self._variables):
            return loops  # which is an error, and told where names are declared
        run_time = {*own, *names}

        def number(word: str) -> int | None:
            return None if word in run_time else self._word_number(word)

        offsets = [self._offset(each.memory, each.index, number) for each in _accesses(steps)]
        values = {word for index in _index_values(steps) for word in words_of(index)}
        merged = list(loops)
        while len(merged) > 1:
            (outer, count), (inner, size) = merged[-2:]
            length = self._number(size)
            goes_on = all(
                (step := each.times(inner)) is not None and each.times(outer) == step * length
                for each in offsets
            )
            if not goes_on or {outer, inner} & values:
                break
            merged[-2:] = [(inner, str(self._number(count) * length))]
            self._merged.add(outer)
        return tuple(merged)

    def _heads(
        self, loops: Sequence[Loop], steps: Sequence[LoopStep] | None, pragma: str | None = None
    ) -> Iterator[str]:
        """The heads of some loops; the last is innermost where its steps are given."""
        for number, (name, size) in enumerate(loops):
            if name in self._variables:
                raise InputError(f"the loop variable {name} has another meaning already")
            count = self._number(size)
            self._variables.append(name)
            is_last = number == len(loops) - 1 and steps is not None
            if is_last and not any(isinstance(step, Pick) for step in steps or ()):
                yield f"#pragma {pragma or 'omp simd'}"
            yield f"for (int64_t {name} = 0; {name} < {count}; {name}++) {{"

    def _inner(self, inner: Inner) -> Iterator[str]:
        inner = Inner(self._merged_loops(inner.loops, inner.steps), inner.steps)
        reductions = [step for step in inner.steps if isinstance(step, Reduce)]
        num_variables = len(self._variables)
        accumulators = _Accumulators()
        if any(step.kind == "welford" for step in reductions):
            lines = list(self._loop(inner, accumulators, only_means=True))
            yield from accumulators.declarations()
            yield from lines
            yield from accumulators.means(self._count(inner))
            del self._variables[num_variables:]
        accumulators.begin_second()
        lines = list(self._loop(inner, accumulators, only_means=False))
        yield from accumulators.declarations()
        yield from lines
        yield from accumulators.results()
        self._scopes[0].update(accumulators.dtypes)
        del self._variables[num_variables:]

    def _count(self, inner: Inner) -> int:
        count = 1
        for _, size in inner.loops:
            count *= self._number(size)
        return count

    def _loop(self, inner: Inner, accumulators: "_Accumulators", only_means: bool) -> Iterator[str]:
        self._scopes.append({})
        size_before = len(self._variables)
        body = []
        heads = list(self._heads(inner.loops, None))
        for step in inner.steps:
            if isinstance(step, Reduce):
                value, dtype = self._expr(step.value)
                linear = self._linear(inner)
                body += accumulators.add(step, value, dtype, linear, only_means)
            elif not (only_means and isinstance(step, Put)):
                body += self._step(step)
        del self._variables[size_before:]
        pragma = accumulators.pragma()
        if any(isinstance(step, Pick) for step in inner.steps):
            heads = list(self._heads(inner.loops, None))
        else:
            heads = list(self._heads(inner.loops, inner.steps, pragma))
        self._scopes.pop()
        yield from heads
        yield from body
        yield "}" * len(inner.loops)

    def _linear(self, inner: Inner) -> str:
        text = "0"
        for name, size in inner.loops:
            text = f"({text} * {self._number(size)} + {name})"
        return text

    def _step(self, step: LoopStep) -> list[str]:
        match step:
            case Let(name, value):
                text, dtype = self._expr(value)
                self._new_name(name, dtype)
                return [f"const auto {name} = {text};"]
            case Pick(name, size, value):
                text, _ = self._expr(value)
                self._new_name(name, "int64")
                self.may_fail = True
                return [f"const int64_t {name} = picked({text}, {self._number(size)});"]
            case Put(memory, index, value):
                if memory in self._inputs:
                    raise InputError(f"{memory} is an argument; nothing may be put into it")
                text, _ = self._expr(value)
                kind = CPP_TYPES[self._layout(memory).dtype]
                return [f"{self._element(memory, index)} = c10::convert<{kind}>({text});"]
        raise InputError("a sum is only known after an inner loop: over ... done")

    def _new_name(self, name: str, dtype: str) -> None:
        if name in self._variables or name in self._scopes[-1]:
            raise InputError(f"the name {name} has a meaning already")
        self._scopes[-1][name] = dtype

    def _expr(self, value: Expr) -> tuple[str, str]:
        """The C++ of a value, and its dtype."""
        match value:
            case str():
                return self._word(value)
            case MemoryRead(memory, index):
                dtype = self._layout(memory).dtype
                element = self._element(memory, index)
                return (f"float({element})", "float32") if dtype in LOW_FLOATS else (element, dtype)
            case IndexValue(index):
                return f"int64_t({self._index(index)})", "int64"
            case Call(name, args):
                pairs = [self._expr(arg) for arg in args]
                return self._call(name, [text for text, _ in pairs], [dtype for _, dtype in pairs])
        raise AssertionError("these are all")

    def _call(self, name: str, texts: list[str], dtypes: list[str]) -> tuple[str, str]:
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

    def _word(self, word: str) -> tuple[str, str]:
        for scope in reversed(self._scopes):
            if word in scope:
                return word, scope[word]
        number = self._symbols.number_value(word)
        if number is None:
            raise InputError(f"{word!r} is not known where it is used")
        if isinstance(number, bool):
            return str(number).lower(), "bool"
        if isinstance(number, int):
            return f"int64_t({number}LL)", "int64"
        return _real(number), "float32"

    def _layout(self, memory: str) -> MemoryLayout:
        if memory not in self._memory:
            raise InputError(f"{memory!r} is no memory that can be read or put into here")
        return self._memory[memory]

    def _element(self, memory: str, index: Sequence[Index]) -> str:
        return f"{memory}_at[{self._offset(memory, index, self._word_number).text()}]"

    def _offset(
        self, memory: str, index: Sequence[Index], number: Callable[[str], int | None]
    ) -> Offset:
        """Where an element of memory lies."""
        layout = self._layout(memory)
        if len(index) != len(layout.shape):
            raise InputError(
                f"{memory} has {len(layout.shape)} axes, and an index of {len(index)} parts"
            )
        parts = [
            offset_of(part, number) * step
            for part, step, size in zip(index, layout.stride, layout.shape, strict=True)
            if size != 1
        ]
        return sum(parts, Offset())

    def _index(self, index: Index) -> str:
        return offset_of(index, self._word_number).text()

    def _word_number(self, word: str) -> int | None:
        """The number that a word of an index is; None where it is known at run time only."""
        if word in self._merged:
            return 0  # the innermost loop goes on for it
        if word in self._variables or any(scope.get(word) == "int64" for scope in self._scopes):
            return None
        return self._symbols.whole_value(word)

    def _number(self, index: Index) -> int:
        """The number that an index without variables is."""
        if isinstance(index, str):
            return self._symbols.whole_value(index)
        left, right = self._number(index.left), self._number(index.right)
        if index.name in ("//", "%") and right <= 0:
            raise InputError(f"an index is divided by {right}")
        match index.name:
            case "+":
                return left + right
            case "*":
                return left * right
            case "//":
                return left // right
        return left % right


def _names_of(step: LoopStep) -> tuple[str, ...]:
    """The names that a step gives to values."""
    match step:
        case Let(name, _) | Pick(name, _, _):
            return (name,)
        case Reduce(_, names, _):
            return names
    return ()


def _accesses(steps: Sequence[LoopStep]) -> Iterator[MemoryRead | Put]:
    """All that some steps read and put."""
    for step in steps:
        if isinstance(step, Put):
            yield step
    yield from (each for each in _expressions(steps) if isinstance(each, MemoryRead))


def _index_values(steps: Sequence[LoopStep]) -> Iterator[Index]:
    """All indices that are values in some steps."""
    yield from (each.index for each in _expressions(steps) if isinstance(each, IndexValue))


def _expressions(steps: Sequence[LoopStep]) -> Iterator[Expr]:
    """The values of steps, and all that they are made of."""
    left = [step.value for step in steps if not isinstance(step, Inner)]
    while left:
        value = left.pop()
        yield value
        left += value.args if isinstance(value, Call) else ()


class _Accumulators:
    """What the reductions of an inner loop need before, in and after it."""

    def __init__(self) -> None:
        self._before: list[str] = []
        self._after: list[str] = []
        self._means: list[str] = []
        self._clauses: list[str] = []
        self._is_simd = True
        self.dtypes: dict[str, str] = {}

    def begin_second(self) -> None:
        """Forget what was only for the means."""
        self._before, self._clauses, self._is_simd = [], [], True

    def declarations(self) -> list[str]:
        """The lines before the loop."""
        return self._before

    def means(self, count: int) -> list[str]:
        """The lines after the loop for means."""
        return [f"const auto {name} = float({name}_sum / {count});" for name in self._means]

    def results(self) -> list[str]:
        """The lines after the loop."""
        return self._after

    def pragma(self) -> str:
        """What the compiler is told of the loop."""
        if not self._is_simd:
            return "GCC ivdep"
        return " ".join(["omp simd", *self._clauses])

    def add(self, step: Reduce, value: str, dtype: str, linear: str, only_means: bool) -> list[str]:
        """The lines in the loop for a reduction."""
        if only_means and step.kind != "welford":
            return []
        for name in step.names:
            if name in self.dtypes and not only_means and step.kind != "welford":
                raise InputError(f"the name {name} has a meaning already")
        name = step.names[0]
        is_real = dtype in ("float32", "float64")
        wide = "double" if is_real else "int64_t"
        narrow = CPP_TYPES[dtype] if is_real else "int64_t"
        match step.kind:
            case "sum" | "prod":
                sign, start = ("+", 0) if step.kind == "sum" else ("*", 1)
                self._before.append(f"{wide} {name}_all = {start};")
                self._after.append(f"const {narrow} {name} = {narrow}({name}_all);")
                self._clauses.append(f"reduction({sign}:{name}_all)")
                self.dtypes[name] = dtype if is_real else "int64"
                return [f"{name}_all {sign}= {wide}({value});"]
            case "max" | "min":
                return self._extreme(step.kind, name, value, dtype)
            case "any":
                self._before.append(f"int {name}_all = 0;")
                self._after.append(f"const bool {name} = {name}_all != 0;")
                self._clauses.append(f"reduction(|:{name}_all)")
                self.dtypes[name] = "bool"
                return [f"{name}_all |= int(bool({value}));"]
            case "argmax" | "argmin":
                kind = CPP_TYPES[dtype]
                worst = f"std::numeric_limits<{kind}>::lowest()"
                if step.kind == "argmin":
                    worst = f"std::numeric_limits<{kind}>::max()"
                if is_real:
                    sign = "-" if step.kind == "argmax" else ""
                    worst = f"{sign}std::numeric_limits<{kind}>::infinity()"
                self._before.append(f"IndexValue<{kind}> {name}_all{{0, {worst}}};")
                self._after.append(f"const int64_t {name} = {name}_all.index;")
                self._is_simd = False
                self.dtypes[name] = "int64"
                return [f"{step.kind}_combine({name}_all, {kind}({value}), {linear});"]
        mean, squares = step.names
        if only_means:
            self._before.append(f"double {mean}_sum = 0;")
            self._clauses.append(f"reduction(+:{mean}_sum)")
            self._means.append(mean)
            return [f"{mean}_sum += {value};"]
        self._before.append(f"double {squares}_all = 0;")
        self._after.append(f"const float {squares} = float({squares}_all);")
        self._clauses.append(f"reduction(+:{squares}_all)")
        self.dtypes |= {mean: "float32", squares: "float32"}
        return [
            f"const auto {mean}_off = {value} - {mean};",
            f"{squares}_all += double({mean}_off) * {mean}_off;",
        ]

    def _extreme(self, kind: str, name: str, value: str, dtype: str) -> list[str]:
        """The largest or smallest value; NaN where there is one."""
        of = CPP_TYPES[dtype]
        limits = f"std::numeric_limits<{of}>"
        is_real = dtype in ("float32", "float64")
        worst = f"{limits}::lowest()" if kind == "max" else f"{limits}::max()"
        if is_real:
            worst = f"{'-' if kind == 'max' else ''}{limits}::infinity()"
        sign = ">" if kind == "max" else "<"
        self._before += [f"{of} {name}_all = {worst};", f"int {name}_nan = 0;"]
        self._clauses += [f"reduction({kind}:{name}_all)", f"reduction(|:{name}_nan)"]
        result = f"{name}_nan ? {limits}::quiet_NaN() : {name}_all" if is_real else f"{name}_all"
        self._after.append(f"const {of} {name} = {result};")
        self.dtypes[name] = dtype
        return [
            f"const {of} {name}_new = {value};",
            f"{name}_nan |= int({name}_new != {name}_new);",
            f"{name}_all = {name}_new {sign} {name}_all ? {name}_new : {name}_all;",
        ]


def _promoted(dtypes: Sequence[str]) -> str:
    for dtype in ("float64", "float32", "int64", "int32", "int16", "int8", "uint8"):
        if dtype in dtypes:
            return dtype
    return "bool"


def _real(number: float) -> str:
    if number != number:
        return "std::numeric_limits<float>::quiet_NaN()"
    if number in (float("inf"), float("-inf")):
        return f"{'-' if number < 0 else ''}std::numeric_limits<float>::infinity()"
    return f"float({number!r})"
