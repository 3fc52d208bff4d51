"""The names, reads and puts of loop steps."""

from collections.abc import Iterator, Sequence

from passnet_loops.language.language import (
    Call,
    Expr,
    Index,
    IndexValue,
    Inner,
    Let,
    LoopStep,
    MemoryRead,
    Pick,
    Put,
    Reduce,
)
from passnet_loops.language.offsets import words_of


def names_of(step: LoopStep) -> tuple[str, ...]:
    """Return the names that a step defines."""
    match step:
        case Let(name, _) | Pick(name, _, _):
            return (name,)
        case Reduce(_, names, _):
            return names
    return ()


def accesses(steps: Sequence[LoopStep]) -> Iterator[MemoryRead | Put]:
    """Yield all reads and puts of steps."""
    for step in steps:
        if isinstance(step, Put):
            yield step
    yield from (value for value in _expressions(steps) if isinstance(value, MemoryRead))


def index_values(steps: Sequence[LoopStep]) -> Iterator[Index]:
    """Yield all indices that are values in steps."""
    yield from (value.index for value in _expressions(steps) if isinstance(value, IndexValue))


def _expressions(steps: Sequence[LoopStep]) -> Iterator[Expr]:
    """Yield the values of steps with all their parts."""
    for step in steps:
        if not isinstance(step, Inner):
            yield from _parts(step.value)


def _parts(value: Expr) -> Iterator[Expr]:
    """Yield a value and all its parts."""
    yield value
    for arg in value.args if isinstance(value, Call) else ():
        yield from _parts(arg)


def words(value: Expr) -> set[str]:
    """Return the names, numbers and memory in a value."""
    names: set[str] = set()
    for part in _parts(value):
        match part:
            case str():
                names.add(part)
            case MemoryRead(memory, index):
                names.update((memory, *(word for part in index for word in words_of(part))))
            case IndexValue(index):
                names |= words_of(index)
    return names
