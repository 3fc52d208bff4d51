"""A nest as steps of the loops language; named values come before their use."""

from collections import Counter
from typing import Any

from passnet.errors import InputError
from passnet_loops.language import language as lang
from passnet_loops.language.indices import Bounds, axis_indices, index_words
from passnet_loops.language.nests.nest_values import (
    LoopSizes,
    NestPhase,
    NestPlan,
    NestValue,
    inner_variable,
    outer_variable,
)
from passnet_loops.language.nests.range_memory import RangeMemory
from passnet_loops.language.symbols import LARGEST_PLAIN


class NestPrinter:
    """A printer of a nest, which names its values."""

    def __init__(self, memory: RangeMemory, nest: NestPlan) -> None:
        self._memory = memory
        self._nest = nest
        self._results: dict[str, str] = {}
        self._taken: set[str] = set()
        self._num_named: Counter[str] = Counter()
        outer = {outer_variable(n): (0, size - 1) for n, size in enumerate(nest.outer)}
        self._bounds: dict[Any, Bounds] = outer

    def nest(self) -> lang.Nest:
        """Return the nest; without steps where none of it is used."""
        steps: list[lang.LoopStep] = []
        for number, phase in enumerate(self._nest.phases):
            before, after = self._phase_steps(number, phase)
            if phase.inner and before:
                loops = self._loops("r", phase.inner)
                steps.append(lang.Inner(loops, tuple(before)))
            else:
                steps += before
            steps += after
        return lang.Nest(self._loops("i", self._nest.outer), tuple(steps))

    def _loops(self, letter: str, sizes: LoopSizes) -> tuple[lang.Loop, ...]:
        index_of = self._memory.symbols.index_of
        return tuple((f"{letter}{n}", index_of(size)) for n, size in enumerate(sizes))

    def fresh(self, letter: str) -> str:
        """Return a new name in the nest."""
        self._num_named[letter] += 1
        return f"{letter}{self._num_named[letter] - 1}"

    def _phase_steps(self, number: int, phase: NestPhase) -> tuple[list[Any], list[lang.LoopStep]]:
        """Return the steps of a phase, and the steps after its loop."""
        inner = {inner_variable(n): (0, size - 1) for n, size in enumerate(phase.inner)}
        later = self._nest.phases[number + 1 :]
        read_later = {
            node.args[0] for later_phase in later for node in later_phase.values.values()
            if node.name == "result"
        }  # fmt: skip
        printer = _PhasePrinter(self, self._memory, {**self._bounds, **inner}, phase)
        return printer.steps(read_later)

    def result_name(self, buffer: str) -> str:
        """Return the name of a value that later phases know."""
        return self._results[buffer]

    def name_result(self, buffer: str, op: str | None) -> str:
        """Name a value that later phases know."""
        name = op if op is not None and op not in self._taken else self.fresh("s")
        self._taken.add(name)
        self._results[buffer] = name
        return name

    def is_taken(self, name: str) -> bool:
        """Return True if a name has a meaning between the inner loops."""
        return name in self._taken


class _PhasePrinter:
    """A printer of the steps of one phase."""

    def __init__(
        self, nest: NestPrinter, memory: RangeMemory, bounds: dict[Any, Bounds], phase: NestPhase
    ) -> None:
        self._nest = nest
        self._memory = memory
        self._phase = phase
        self._bounds = bounds
        self._variable_names = {symbol: str(symbol) for symbol in bounds}
        self._picks = {
            key[1]: node for key, node in phase.values.items() if key[0] == "symbol"
        }  # fmt: skip
        for symbol, node in self._picks.items():
            self._bounds[symbol] = (0, node.args[1] - 1)
        self._uses: Counter[int] = Counter()
        self._open: set[int] = set()
        self._names: dict[int, str] = {}
        self._made: list[Any] = []

    def steps(self, read_later: set[str]) -> tuple[list[Any], list[lang.LoopStep]]:
        """Return the steps of the phase, and the steps after its loop.

        `read_later` are buffers whose values later phases name.
        """
        phase, memory = self._phase, self._memory
        roots = [
            (buffer, address, node)
            for buffer, address, node in phase.stores
            if memory.is_in_memory(buffer) or buffer in read_later or buffer in phase.reductions
        ]
        for _, _, node in roots:
            self._count(node, is_open=True)
        after: list[lang.LoopStep] = []
        reduced: dict[int, tuple[str, ...]] = {}
        for buffer, address, node in roots:
            if buffer in phase.reductions:
                name = self._reduced_name(buffer, node, reduced)
                if memory.is_in_memory(buffer):
                    after.append(lang.Put(memory.name(buffer), self._index(buffer, address), name))
                continue
            value = self._expr(node, is_root=buffer not in read_later)
            if buffer in read_later:
                name = self._nest.name_result(buffer, memory.buffer_op(buffer))
                if value != name:
                    self._made.append(lang.Let(name, value))
                value = name
            if memory.is_in_memory(buffer):
                self._made.append(
                    lang.Put(memory.name(buffer), self._index(buffer, address), value)
                )
        return self._made, after

    def _reduced_name(
        self, buffer: str, node: NestValue, reduced: dict[int, tuple[str, ...]]
    ) -> str:
        """Return the name of the result of a reduction, which becomes a step at first."""
        part = 0
        if node.name == "part":
            node, part = node.args
        if node.name != "reduction":  # the count of a welford
            name = self._nest.name_result(buffer, None)
            value = self._expr(node)
            self._made.append(lang.Let(name, value))
            return name
        kind, inner = node.args
        if id(node) not in reduced:
            value = self._expr(inner)
            if kind == "welford":
                names = (self._nest.fresh("s"), self._nest.fresh("s"))
            else:
                names = (self._nest.fresh("s"),)
            reduced[id(node)] = names
            self._made.append(lang.Reduce(kind, names, value))
        name = reduced[id(node)][part]
        self._nest._results[buffer] = name  # noqa: SLF001
        return name

    def _count(self, node: NestValue, is_open: bool) -> None:
        """Count uses; a value that is used only under a mask gets no name."""
        self._uses[id(node)] += 1
        is_new = self._uses[id(node)] == 1 or (is_open and id(node) not in self._open)
        if is_open:
            self._open.add(id(node))
        if not is_new:
            return
        for number, arg in enumerate(node.args):
            if isinstance(arg, NestValue):
                self._count(arg, is_open and not (node.name == "masked" and number == 1))
        for symbol in self._index_symbols(node):
            if not is_open:
                raise InputError("a value is an index only where a mask holds")
            self._count(self._picks[symbol], is_open)

    def _index_symbols(self, node: NestValue) -> list[Any]:
        if node.name not in ("load", "index"):
            return []
        return [symbol for symbol in self._picks if symbol in node.args[-1].free_symbols]

    def _expr(self, node: NestValue, is_root: bool = False) -> lang.Expr:
        """Return a value as written at its use; named values are made before."""
        if id(node) in self._names:
            return self._names[id(node)]
        if node.name == "constant":
            return self._constant(node)
        if node.name == "result":
            return self._nest.result_name(node.args[0])
        for symbol in self._index_symbols(node):
            self._pick_name(symbol)
        if node.name == "load":
            buffer, address = node.args
            return lang.MemoryRead(self._memory.name(buffer), self._index(buffer, address))
        if node.name == "index":
            return lang.IndexValue(self._words(node.args[0]))
        args = tuple(self._expr(arg) for arg in node.args)
        value = lang.Call(node.name, args)
        is_shared = self._uses[id(node)] > 1
        if id(node) not in self._open or not (is_shared or (node.op and not is_root)):
            return value
        name = node.op
        if name is None or name in self._names.values() or self._nest.is_taken(name):
            name = self._nest.fresh("v")
        self._names[id(node)] = name
        self._made.append(lang.Let(name, value))
        return name

    def _pick_name(self, symbol: Any) -> None:
        if symbol not in self._variable_names:
            value, size = self._picks[symbol].args
            expr = self._expr(value)
            name = self._nest.fresh("p")
            size_word = self._memory.symbols.index_of(size)
            if not isinstance(size_word, str):
                raise InputError("an axis of a size that is no symbol")
            self._made.append(lang.Pick(name, size_word, expr))
            self._variable_names[symbol] = name

    def _constant(self, node: NestValue) -> lang.Expr:
        number = node.args[0]
        symbols = self._memory.symbols
        if isinstance(number, bool):
            return str(number)
        if isinstance(number, int):
            index = symbols.index_of(number)
            return index if isinstance(index, str) else lang.IndexValue(index)
        real = float(number)
        word: lang.Expr = symbols.real_of(real)
        if real == int(real) if abs(real) < 2**53 else False:
            whole = int(real)
            if abs(whole) > LARGEST_PLAIN and word == repr(real):
                index = symbols.index_of(whole)
                return lang.Call("float32", (lang.IndexValue(index),))
        return lang.Call("float64", (word,)) if node.dtype == "float64" else word

    def _index(self, buffer: str, address: Any) -> tuple[lang.Index, ...]:
        layout = self._memory.layout(buffer)
        axes = axis_indices(address, layout.shape, layout.stride, self._bounds)
        return tuple(self._words(axis) for axis in axes)

    def _words(self, axis: Any) -> lang.Index:
        return index_words(axis, self._variable_names, self._memory.symbols.index_of)
