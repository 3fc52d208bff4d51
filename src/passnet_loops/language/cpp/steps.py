"""The names, reads and puts of loop steps."""

from collections.abc import Iterator, Sequence

from passnet_loops.language import language as lang
from passnet_loops.language.cpp.offsets import words_of


def names_of(step: lang.LoopStep) -> tuple[str, ...]:
    """Return the names that a step defines."""
    match step:
        case lang.Let(name, _) | lang.Pick(name, _, _):
            return (name,)
        case lang.Reduce(_, names, _):
            return names
    return ()


def accesses(steps: Sequence[lang.LoopStep]) -> Iterator[lang.MemoryRead | lang.Put]:
    """Yield all reads and puts of steps."""
    for step in steps:
        if isinstance(step, lang.Put):
            yield step
    yield from (value for value in _expressions(steps) if isinstance(value, lang.MemoryRead))


def index_values(steps: Sequence[lang.LoopStep]) -> Iterator[lang.Index]:
    """Yield all indices that are values in steps."""
    yield from (value.index for value in _expressions(steps) if isinstance(value, lang.IndexValue))


def _expressions(steps: Sequence[lang.LoopStep]) -> Iterator[lang.Expr]:
    """Yield the values of steps with all their parts."""
    for step in steps:
        if not isinstance(step, lang.Inner):
            yield from _parts(step.value)


def _parts(value: lang.Expr) -> Iterator[lang.Expr]:
    """Yield a value and all its parts."""
    yield value
    for arg in value.args if isinstance(value, lang.Call) else ():
        yield from _parts(arg)


def words(value: lang.Expr) -> set[str]:
    """Return the names, numbers and memory in a value."""
    names: set[str] = set()
    for part in _parts(value):
        match part:
            case str():
                names.add(part)
            case lang.MemoryRead(memory, index):
                names.update((memory, *(word for part in index for word in words_of(part))))
            case lang.IndexValue(index):
                names |= words_of(index)
    return names
