"""Answers in the loops language as text: printed and parsed."""

from collections.abc import Iterator

from passnet.errors import InputError
from passnet_loops.language import language as lang

MAX_DEPTH = 200
MAX_WORDS = 20_000


def print_answer(ranges: tuple[lang.FusedRange, ...]) -> str:
    """Return the text of an answer."""
    return "\n".join(line for fused in ranges for line in _range_lines(fused))


def _range_lines(fused: lang.FusedRange) -> Iterator[str]:
    yield f"range {fused.first} {fused.last}"
    for memory in fused.memory:
        shape = " ".join(map(_index_text, memory.shape))
        yield " ".join(filter(None, ("buf", memory.name, memory.dtype, shape, ";")))
    for nest in fused.nests:
        yield f"for {_loops_text(nest.loops)}:"
        for step in nest.steps:
            if isinstance(step, lang.Inner):
                yield f"  over {_loops_text(step.loops)}:"
                yield from (f"    {_step_text(inner)}" for inner in step.steps)
                yield "  done"
            else:
                yield f"  {_step_text(step)}"
        yield "end"


def _loops_text(loops: tuple[lang.Loop, ...]) -> str:
    return "".join(f"{name} {_index_text(size)} " for name, size in loops)


def _step_text(step: lang.LoopStep) -> str:
    match step:
        case lang.Let(name, value):
            return f"{name} = {_expr_text(value)}"
        case lang.Pick(name, size, value):
            return f"pick {name} {size} {_expr_text(value)}"
        case lang.Put(memory, index, value):
            return f"put {memory} {_brackets(index)} {_expr_text(value)}"
        case lang.Reduce(kind, names, value):
            return f"{kind} {' '.join(names)} {_expr_text(value)}"
    raise AssertionError("an inner loop is printed by its nest")


def _expr_text(value: lang.Expr) -> str:
    match value:
        case str():
            return value
        case lang.MemoryRead(memory, index):
            return f"{memory} {_brackets(index)}"
        case lang.IndexValue(index):
            return f"at {_brackets((index,))}"
        case lang.Call(name, args):
            return " ".join((name, *map(_expr_text, args)))


def _brackets(index: tuple[lang.Index, ...]) -> str:
    return " ".join(("[", *map(_index_text, index), "]"))


def _index_text(index: lang.Index) -> str:
    if isinstance(index, str):
        return index
    return f"{index.name} {_index_text(index.left)} {_index_text(index.right)}"


def parse_answer(text: str) -> tuple[lang.FusedRange, ...]:
    """Parse an answer's text.

    Raises:
        InputError: It is no answer; the first word that does not fit is named.
    """
    return _Parser(text.split()).answer()


class _Parser:
    """A parser that reads words from left to right."""

    def __init__(self, words: list[str]) -> None:
        if len(words) > MAX_WORDS:
            raise InputError(f"an answer of {len(words)} words; {MAX_WORDS} are read")
        self._words = words
        self._place = 0

    def answer(self) -> tuple[lang.FusedRange, ...]:
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
        position, word = self._place, self._word()
        if word != expected:
            raise InputError(f"word {position} of the answer is {word!r}, not {expected!r}")

    def _name(self) -> str:
        position, word = self._place, self._word()
        if not word.isidentifier():
            raise InputError(f"word {position} of the answer is {word!r}, which is no name")
        return word

    def _range(self) -> lang.FusedRange:
        self._expect("range")
        first, last = self._name(), self._name()
        memory, nests = [], []
        while self._peek() == "buf":
            memory.append(self._memory())
        while self._peek() == "for":
            nests.append(self._nest())
        if not nests:
            raise InputError(f"range {first} {last} has no loops")
        return lang.FusedRange(first, last, tuple(memory), tuple(nests))

    def _memory(self) -> lang.Memory:
        self._expect("buf")
        name, dtype, shape = self._name(), self._name(), []
        if dtype not in lang.CASTS:
            raise InputError(
                f"buf {name}: {dtype!r} is no dtype; there are {', '.join(lang.CASTS)}"
            )
        while self._peek() != ";":
            shape.append(self._index())
        self._expect(";")
        return lang.Memory(name, dtype, tuple(shape))

    def _loops(self) -> tuple[lang.Loop, ...]:
        loops = []
        while self._peek() != ":":
            loops.append((self._name(), self._index()))
        self._expect(":")
        return tuple(loops)

    def _nest(self) -> lang.Nest:
        self._expect("for")
        loops, steps = self._loops(), []
        while self._peek() != "end":
            steps.append(self._inner() if self._peek() == "over" else self._step())
        self._expect("end")
        return lang.Nest(loops, tuple(steps))

    def _inner(self) -> lang.Inner:
        self._expect("over")
        loops, steps = self._loops(), []
        while self._peek() != "done":
            steps.append(self._step())
        self._expect("done")
        return lang.Inner(loops, tuple(steps))

    def _step(self) -> lang.Let | lang.Pick | lang.Put | lang.Reduce:
        word = self._name()
        if word == "put":
            return lang.Put(self._name(), self._index_list(), self._expr())
        if word == "pick":
            return lang.Pick(self._name(), self._word(), self._expr())
        if word in lang.REDUCTIONS and self._peek() != "=":
            names = tuple(self._name() for _ in range(lang.REDUCTIONS[word]))
            return lang.Reduce(word, names, self._expr())
        self._expect("=")
        return lang.Let(word, self._expr())

    def _expr(self, depth: int = 0) -> lang.Expr:
        word = self._word()
        if depth > MAX_DEPTH:
            raise InputError(f"an expression of more than {MAX_DEPTH} calls in each other")
        if word == "at":
            index = self._index_list()
            if len(index) != 1:
                raise InputError(f"at has {len(index)} indices, it needs 1")
            return lang.IndexValue(index[0])
        if word in lang.ARITY:
            return lang.Call(word, tuple(self._expr(depth + 1) for _ in range(lang.ARITY[word])))
        return lang.MemoryRead(word, self._index_list()) if self._peek() == "[" else word

    def _index_list(self) -> tuple[lang.Index, ...]:
        self._expect("[")
        index = []
        while self._peek() != "]":
            index.append(self._index())
        self._expect("]")
        return tuple(index)

    def _index(self, depth: int = 0) -> lang.Index:
        word = self._word()
        if depth > MAX_DEPTH:
            raise InputError(f"an index of more than {MAX_DEPTH} calls in each other")
        if word in lang.INDEX_CALLS:
            return lang.IndexCall(word, self._index(depth + 1), self._index(depth + 1))
        return word
