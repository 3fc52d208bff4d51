"""The C++ of nests in the loops language.

So that a compiler vectorises it, the innermost loop runs on over axes that are contiguous, and
loop-invariant steps are hoisted. Low floats are held as float, and rounded where the answer says so
or where they are stored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from passnet.errors import InputError
from passnet.passes.codegen.cpp_source import CPP_TYPES, ENTRY
from passnet_loops.language import language as lang
from passnet_loops.language.cpp.accumulators import Accumulators
from passnet_loops.language.cpp.cpp_calls import PRELUDE, call_text, real_text
from passnet_loops.language.cpp.offsets import Offset, offset_of, words_of
from passnet_loops.language.cpp.steps import accesses, index_values, names_of, words
from passnet_loops.language.symbols import Symbols


@dataclass(frozen=True, slots=True)
class MemoryLayout:
    """The layout of memory: C++ name, dtype, shape and strides in elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def cpp_of_nests(
    nests: Sequence[lang.Nest],
    memory: Mapping[str, MemoryLayout],
    inputs: Sequence[str],
    outputs: Sequence[str],
    scratch: Sequence[str],
    symbols: Symbols,
) -> str:
    """Return the source whose function `launch` runs nests, on inputs, then outputs.

    `memory` has the layout of every name; inputs are read-only; the source allocates `scratch`.

    Raises:
        InputError: A name, a number or an index has no meaning.
    """
    writer = _CppWriter(memory, frozenset(inputs), symbols)
    bodies = [line for nest in nests for line in writer.nest(nest)]
    types = {name: CPP_TYPES[layout.dtype] for name, layout in memory.items()}
    params = [f"const {types[name]}* __restrict__ {name}_at" for name in inputs]
    params += [f"{types[name]}* __restrict__ {name}_at" for name in outputs]
    # where an index is looked up, loops are not vectorised, and the instruction is faster
    lines = [PRELUDE] if writer.may_fail else ["#define PASSNET_HALF_IN_LOOPS", PRELUDE]
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
    """A writer of nests, which tracks known names and their dtypes."""

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

    def nest(self, nest: lang.Nest) -> Iterator[str]:
        """Yield the lines of a nest."""
        self._variables, self._merged, self._scopes = [], set(), [{}]
        yield "  {"
        has_inner = any(isinstance(step, lang.Inner) for step in nest.steps)
        loops = nest.loops if has_inner else self._merged_loops(nest.loops, nest.steps)
        early: Sequence[lang.LoopStep] = []
        steps: Sequence[lang.LoopStep] = nest.steps
        if not has_inner:
            early, steps = self._early_steps(loops, steps)
        yield from self._heads(loops[:-1])
        for step in early:
            yield from self._step(step)
        yield from self._heads(loops[-1:], None if has_inner else _simd(steps))
        for step in steps:
            if isinstance(step, lang.Inner):
                yield from self._inner(step)
            else:
                yield from self._step(step)
        yield "}" * len(loops)
        yield "  }"

    def _merged_loops(
        self, loops: tuple[lang.Loop, ...], steps: Sequence[lang.LoopStep]
    ) -> tuple[lang.Loop, ...]:
        """Merge the innermost loop with loops around it, as far as the accesses of `steps` allow.

        A longer loop is vectorised better.
        """
        self._merged = set()
        own = [name for name, _ in loops]
        names = {name for step in steps for name in names_of(step)}
        if len({*own, *names, *self._variables}) < len(own) + len(names) + len(self._variables):
            return loops  # which is an error, and told where names are declared
        run_time = {*own, *names}

        def number(word: str) -> int | None:
            return None if word in run_time else self._word_number(word)

        offsets = [self._offset(access.memory, access.index, number) for access in accesses(steps)]
        values = {word for index in index_values(steps) for word in words_of(index)}
        merged = list(loops)
        while len(merged) > 1:
            (outer, count), (inner, size) = merged[-2:]
            length = self._symbols.index_value(size)
            goes_on = all(
                (step := offset.times(inner)) is not None and offset.times(outer) == step * length
                for offset in offsets
            )
            if not goes_on or {outer, inner} & values:
                break
            merged[-2:] = [(inner, str(self._symbols.index_value(count) * length))]
            self._merged.add(outer)
        return tuple(merged)

    def _early_steps(
        self, loops: Sequence[lang.Loop], steps: Sequence[lang.LoopStep]
    ) -> tuple[list[lang.LoopStep], list[lang.LoopStep]]:
        """Split steps into loop-invariant ones, which run before the innermost loop, and others.

        A loop that looks up an index in each round is not vectorised.
        """
        if not loops or self._symbols.index_value(loops[-1][1]) <= 0:
            return [], list(steps)
        changing = {loops[-1][0]}
        put = {step.memory for step in steps if isinstance(step, lang.Put)}
        early: list[lang.LoopStep] = []
        late: list[lang.LoopStep] = []
        for step in steps:
            if isinstance(step, (lang.Let, lang.Pick)) and not words(step.value) & (changing | put):
                early.append(step)
            else:
                late.append(step)
                changing.update(names_of(step))
        return early, late

    def _heads(self, loops: Sequence[lang.Loop], pragma: str | None = None) -> Iterator[str]:
        """Yield the heads of loops, with a pragma before the last."""
        for number, (name, size) in enumerate(loops):
            if name in self._variables:
                raise InputError(f"the loop variable {name} has another meaning already")
            count = self._symbols.index_value(size)
            self._variables.append(name)
            if number == len(loops) - 1 and pragma is not None:
                yield f"#pragma {pragma}"
            yield f"for (int64_t {name} = 0; {name} < {count}; {name}++) {{"

    def _inner(self, inner: lang.Inner) -> Iterator[str]:
        inner = lang.Inner(self._merged_loops(inner.loops, inner.steps), inner.steps)
        reductions = [step for step in inner.steps if isinstance(step, lang.Reduce)]
        num_variables = len(self._variables)
        accumulators = Accumulators()
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
        self._merged.clear()  # as the loop's variables, these mean nothing after it

    def _count(self, inner: lang.Inner) -> int:
        count = 1
        for _, size in inner.loops:
            count *= self._symbols.index_value(size)
        return count

    def _loop(
        self, inner: lang.Inner, accumulators: Accumulators, only_means: bool
    ) -> Iterator[str]:
        self._scopes.append({})
        early, steps = self._early_steps(inner.loops, inner.steps)
        lines = ["{", *self._heads(inner.loops[:-1])]
        for step in early:
            lines += self._step(step)
        num_outer = len(self._variables)
        list(self._heads(inner.loops[-1:]))
        body = []
        for step in steps:
            if isinstance(step, lang.Reduce):
                value, dtype = self._expr(step.value)
                linear = self._linear(inner)
                body += accumulators.add(step, value, dtype, linear, only_means)
            elif not (only_means and isinstance(step, lang.Put)):
                body += self._step(step)
        del self._variables[num_outer:]
        lines += self._heads(inner.loops[-1:], _simd(steps) and accumulators.pragma())
        self._scopes.pop()
        yield from [*lines, *body]
        yield "}" * (len(inner.loops) + 1)

    def _linear(self, inner: lang.Inner) -> str:
        text = "0"
        for name, size in inner.loops:
            text = f"({text} * {self._symbols.index_value(size)} + {name})"
        return text

    def _step(self, step: lang.LoopStep) -> list[str]:
        match step:
            case lang.Let(name, value):
                text, dtype = self._expr(value)
                self._new_name(name, dtype)
                return [f"const auto {name} = {text};"]
            case lang.Pick(name, size, value):
                text, _ = self._expr(value)
                self._new_name(name, "int64")
                self.may_fail = True
                return [
                    f"const int64_t {name} = picked({text}, {self._symbols.index_value(size)});"
                ]
            case lang.Put(memory, index, value):
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

    def _expr(self, value: lang.Expr) -> tuple[str, str]:
        """Return the C++ of a value and its dtype."""
        match value:
            case str():
                return self._word(value)
            case lang.MemoryRead(memory, index):
                dtype = self._layout(memory).dtype
                element = self._element(memory, index)
                return (
                    (f"float({element})", "float32")
                    if dtype in lang.LOW_FLOATS
                    else (element, dtype)
                )
            case lang.IndexValue(index):
                return f"int64_t({self._index(index)})", "int64"
            case lang.Call(name, args):
                pairs = [self._expr(arg) for arg in args]
                return call_text(name, [text for text, _ in pairs], [dtype for _, dtype in pairs])
        raise AssertionError("these are all")

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
        return real_text(number), "float32"

    def _layout(self, memory: str) -> MemoryLayout:
        if memory not in self._memory:
            raise InputError(f"{memory!r} is no memory that can be read or put into here")
        return self._memory[memory]

    def _element(self, memory: str, index: Sequence[lang.Index]) -> str:
        return f"{memory}_at[{self._offset(memory, index, self._word_number).text()}]"

    def _offset(
        self, memory: str, index: Sequence[lang.Index], number: Callable[[str], int | None]
    ) -> Offset:
        """Return the offset of an element of memory."""
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

    def _index(self, index: lang.Index) -> str:
        return offset_of(index, self._word_number).text()

    def _word_number(self, word: str) -> int | None:
        """Return the number of a word of an index; None where it is known at run time only."""
        if word in self._merged:
            return 0  # the innermost loop goes on for it
        if word in self._variables or any(scope.get(word) == "int64" for scope in self._scopes):
            return None
        return self._symbols.whole_value(word)


def _simd(steps: Sequence[lang.LoopStep]) -> str | None:
    """Return the pragma that vectorises a loop of these steps, if that is possible."""
    return None if any(isinstance(step, lang.Pick) for step in steps) else "omp simd"
