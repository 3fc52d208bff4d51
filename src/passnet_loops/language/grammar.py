"""The grammar of answers: the words that may come next, so that every answer has a meaning.

It knows the syntax, the known names, the number of axes of memory, and the bounds of indices; it
does not know the correct answer. It is a coroutine that yields the allowed words and is sent the
next one.
"""

from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from passnet.errors import CutError, GraphError, InputError
from passnet_loops.language.index_grammar import (
    MAX_INDEX_DEPTH,
    IndexBounds,
    IndexGrammar,
    IndexWords,
)
from passnet_loops.language.language import ARITY, CASTS, REDUCTIONS
from passnet_loops.language.prompt import Prompt, PromptRange
from passnet_loops.language.symbols import LARGEST_PLAIN

DONE = ""
"""The word at which an answer may end."""

MAX_EXPR_DEPTH = 24
MAX_LOCALS = 24

Words = Generator[frozenset[str], str, None]
Answered = Generator[frozenset[str], str, str]


@dataclass
class _Nest:
    """The state of a nest: bounds of loop variables, and values by scope."""

    variables: dict[str, IndexBounds] = field(default_factory=dict)
    scopes: list[set[str]] = field(default_factory=lambda: [set()])
    num_puts: int = 0

    def is_new(self, name: str) -> bool:
        return name not in self.variables and name not in self.scopes[-1]


class AnswerGrammar:
    """The words of answers to one prompt; `numbers` are further real numbers, as words."""

    def __init__(self, prompt: Prompt, numbers: Iterable[str] = ()) -> None:
        symbols = prompt.symbols
        self._prompt = prompt
        self._ops = [prompt.names[op.output or ""] for op in prompt.graph.program.ops]
        self._shapes = {
            prompt.names[name]: spec.shape
            for name, spec in prompt.specs.items()
            if name in prompt.names
        }
        wholes = {f"N{number}": whole for number, whole in enumerate(symbols.wholes)}
        self._sizes = {name: whole for name, whole in wholes.items() if whole > 0}
        self._sizes |= {str(number): number for number in range(1, LARGEST_PLAIN + 1)}
        self._wholes = wholes | {
            str(number): number for number in range(-LARGEST_PLAIN, LARGEST_PLAIN + 1)
        }
        self._numbers = {*numbers, *self._wholes, *(f"{name}." for name in wholes)}
        self._numbers |= {f"F{number}" for number in range(len(symbols.reals))}
        self._spans: dict[tuple[int, int], PromptRange | None] = {}
        self._indices: dict[tuple[tuple[str, IndexBounds], ...], IndexGrammar] = {}
        self._readable: dict[str, tuple[int, ...]] = {}
        self._writable: dict[str, tuple[int, ...]] = {}
        self._put: set[str] = set()

    def words(self) -> Words:
        """Yield the words of an answer; `DONE` is sent at its end."""
        start, word = 0, "range"
        yield_first = yield frozenset(("range",))
        assert yield_first == "range", "an answer begins with it"
        while word == "range":
            firsts = [n for n in range(start, len(self._ops)) if self._lasts(n)]
            name = yield frozenset(self._ops[n] for n in firsts)
            first = self._ops.index(name)
            name = yield frozenset(self._ops[n] for n in self._lasts(first))
            last = self._ops.index(name)
            start = last + 1
            word = yield from self._range(first, last)

    def _lasts(self, first: int) -> list[int]:
        """Return the ops at which a range from `first` may end."""
        return [n for n in range(first, len(self._ops)) if self._span(first, n) is not None]

    def _span(self, first: int, last: int) -> PromptRange | None:
        """Return a range of ops that a kernel may replace; None where it cannot be cut."""
        key = (first, last)
        if key not in self._spans:
            self._spans[key] = None
            with suppress(CutError, GraphError, InputError, KeyError):
                prompt_range = self._prompt.range((first, last + 1))
                is_known = all(name in self._shapes for name in prompt_range.results)
                if prompt_range.arguments and is_known:
                    self._spans[key] = prompt_range
        return self._spans[key]

    def _range(self, first: int, last: int) -> Answered:
        """Yield the words of a range; return the word after it."""
        span = self._span(first, last)
        assert span is not None, "only ranges that can be cut are said"
        tensors = zip(span.arguments, span.cut.tensors, strict=True)
        self._readable = {name: spec.shape for name, spec in tensors}
        self._writable = {name: self._shapes[name] for name in span.results}
        self._put = set()
        self._locals = self._ops[first : last + 1]
        word = yield frozenset(("buf", "for"))
        number = 0
        while word == "buf":
            name = yield frozenset((f"b{number}",))
            yield CASTS
            shape: list[int] = []
            while (size := (yield from self._size(";"))) is not None:
                shape.append(size)
            self._writable[name] = tuple(shape)
            number += 1
            word = yield frozenset(("buf", "for"))
        while word == "for":
            yield from self._nest()
            ends = {"for"}
            if self._put.issuperset(span.results):
                ends.add(DONE)
                if any(self._lasts(n) for n in range(last + 1, len(self._ops))):
                    ends.add("range")
            word = yield frozenset(ends)
        return word

    def _size(self, end: str = "") -> Generator[frozenset[str], str, int | None]:
        """Yield the words of a size; return None where the word `end` comes instead."""
        word = yield frozenset((*self._sizes, "+", "*", "//", *filter(None, (end,))))
        if word in self._sizes:
            return self._sizes[word]
        return (yield from self._constant_call(word, 0)) if word != end else None

    def _constant(self, depth: int = 0) -> Generator[frozenset[str], str, int]:
        calls = ("+", "*", "//") if depth < MAX_INDEX_DEPTH else ()
        word = yield frozenset((*self._wholes, *calls))
        if word in self._wholes:
            return self._wholes[word]
        return (yield from self._constant_call(word, depth))

    def _constant_call(self, name: str, depth: int) -> Generator[frozenset[str], str, int]:
        left = yield from self._constant(depth + 1)
        if name == "//":
            return left // (yield from IndexGrammar({}, self._wholes, self._sizes).divisor())
        right = yield from self._constant(depth + 1)
        return left + right if name == "+" else left * right

    def _loops(self, nest: _Nest, letter: str) -> Words:
        number = 0
        while True:
            name = yield frozenset((f"{letter}{number}", ":"))
            if name == ":":
                return
            size = yield from self._size()
            nest.variables[name] = (0, max(size or 1, 1) - 1)
            number += 1

    def _nest(self) -> Words:
        nest = _Nest()
        yield from self._loops(nest, "i")
        while True:
            word = yield frozenset(
                ("put", "pick", "over", *self._new_names(nest), *(("end",) * bool(nest.num_puts)))
            )
            if word == "end":
                return
            if word == "over":
                yield from self._inner(nest)
            else:
                yield from self._step(nest, word)

    def _inner(self, nest: _Nest) -> Words:
        outer = dict(nest.variables)
        nest.scopes.append(set())
        results: set[str] = set()
        num_puts = nest.num_puts
        yield from self._loops(nest, "r")
        while True:
            is_full = bool(results) or nest.num_puts > num_puts
            word = yield frozenset(
                ("put", "pick", *REDUCTIONS, *self._new_names(nest), *(("done",) * is_full))
            )
            if word == "done":
                break
            if word in REDUCTIONS:
                for _ in range(REDUCTIONS[word]):
                    used_names = results | nest.scopes[0]
                    free = (f"s{n}" for n in range(MAX_LOCALS) if f"s{n}" not in used_names)
                    results.add((yield frozenset((next(free, "s99"),))))
                yield from self._expr(nest)
            else:
                yield from self._step(nest, word)
        nest.scopes.pop()
        nest.scopes[0] |= results
        nest.variables = outer

    def _new_names(self, nest: _Nest) -> Iterable[str]:
        names = [*self._locals, *(f"v{number}" for number in range(MAX_LOCALS))]
        return [name for name in names if nest.is_new(name)]

    def _step(self, nest: _Nest, word: str) -> Words:
        if word == "put":
            memory = yield frozenset(self._writable)
            yield from self._index_list(nest, self._writable[memory])
            yield from self._expr(nest)
            self._put.add(memory)
            self._readable[memory] = self._writable[memory]
            nest.num_puts += 1
        elif word == "pick":
            picks = [f"p{number}" for number in range(MAX_LOCALS) if nest.is_new(f"p{number}")]
            name = yield frozenset(picks)
            size = yield frozenset(self._sizes)
            yield from self._expr(nest)
            nest.variables[name] = (0, self._sizes[size] - 1)
        else:
            yield frozenset(("=",))
            yield from self._expr(nest)
            nest.scopes[-1].add(word)

    def _expr(self, nest: _Nest, depth: int = 0, is_masked: bool = False) -> Words:
        value_names = {name for scope in nest.scopes for name in scope}
        leaves = {*self._readable, *value_names, *self._numbers, "at"}
        word = yield frozenset(leaves | ARITY.keys() if depth < MAX_EXPR_DEPTH else leaves)
        if word == "at":
            yield frozenset(("[",))
            yield from self._index(nest, None)
            yield frozenset(("]",))
        elif word in ARITY:
            for position in range(ARITY[word]):
                may_leave = is_masked or (word == "masked" and position == 1)
                yield from self._expr(nest, depth + 1, may_leave)
        elif word not in value_names and word in self._readable:
            yield from self._index_list(nest, self._readable[word], is_masked)

    def _index_list(self, nest: _Nest, shape: tuple[int, ...], is_masked: bool = False) -> Words:
        """Yield an index for each axis; a masked index may lie outside."""
        yield frozenset(("[",))
        for size in shape:
            yield from self._index(nest, None if is_masked else size)
        yield frozenset(("]",))

    def _index(self, nest: _Nest, size: int | None) -> IndexWords:
        """Yield an index within an axis of a size; any index where the size is None."""
        variables = tuple(nest.variables.items())
        if variables not in self._indices:
            self._indices[variables] = IndexGrammar(nest.variables, self._wholes, self._sizes)
        return self._indices[variables].words(size)
