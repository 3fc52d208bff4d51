"""The nests of a range in the loops language, from the loops of Inductor.

Nodes that Inductor fused share outer loops where their sizes agree and each reads what another
stored at the same outer position; otherwise they become nests of their own, one after the other.
What is stored and read in the same place is no memory but a name.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy

from passnet.errors import InputError
from passnet.train.loops.indices import Bounds, axis_indices, index_words
from passnet.train.loops.inductor_loops import InductorLoops, LoopNode, LoopValue
from passnet.train.loops.language import (
    ARITY,
    BOOLEAN_CALLS,
    LOW_FLOATS,
    Call,
    Expr,
    Index,
    IndexValue,
    Inner,
    Let,
    Loop,
    LoopStep,
    Memory,
    MemoryRead,
    Nest,
    Pick,
    Put,
    Reduce,
)
from passnet.train.loops.symbols import LARGEST_PLAIN, Symbols

MAX_VALUES = 600
"""Values of a nest beyond which it is not written down."""

FLOATS = (*LOW_FLOATS, "float32", "float64")
_RENAMED = {"remainder": "mod", "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor"}

LoopSizes = tuple[int, ...]


@dataclass(eq=False, slots=True)
class _Node:
    """A value of a phase, each but once; `op` is the op of the prompt that it is the result of."""

    name: str
    args: tuple[Any, ...]
    dtype: str
    op: str | None = None


@dataclass
class _Phase:
    """What runs in one inner loop of a nest, or between them where `inner` is empty: `stores` has
    what is stored where, `reductions` which of it is known when the loop is done.
    """

    inner: LoopSizes
    stores: list[tuple[str, Any, _Node]] = field(default_factory=list)
    reductions: set[str] = field(default_factory=set)
    values: dict[Any, _Node] = field(default_factory=dict)


@dataclass
class _Nest:
    outer: LoopSizes
    phases: list[_Phase] = field(default_factory=list)
    stored: dict[str, tuple[int, Any, _Node]] = field(default_factory=dict)


class RangeWriter:
    """Writes the nests of a range.

    Args:
        symbols: those of the prompt.
        loops: the loops of Inductor for it.
        arguments: what the prompt calls the range's arguments.
        outputs: what it calls its results, in order.
        op_names: what it calls what each op makes; None where the prompt has no such op.
    """

    def __init__(
        self,
        symbols: Symbols,
        loops: InductorLoops,
        arguments: dict[str, str],
        outputs: Sequence[str],
        op_names: Sequence[str | None],
    ) -> None:
        buffers = [name for name, _ in loops.outputs]
        if len(set(buffers)) < len(outputs):
            raise InputError("two results in one memory")
        self._symbols = symbols
        self._loops = loops
        self._op_names = op_names
        self._names = {**arguments, **dict(zip(buffers, outputs, strict=True))}
        self._outputs = set(buffers)
        self._layouts = {**loops.buffers, **dict(loops.outputs)}
        self._memory: list[str] = []
        self._read: set[str] = set()
        self._num_values = 0

    def write(self) -> tuple[tuple[Memory, ...], tuple[Nest, ...]]:
        """The memory between nests, and the nests.

        Raises:
            InputError: the language cannot say them.
        """
        nests = [nest for group in self._loops.groups for nest in self._split(group)]
        written = tuple(nest for each in nests if (nest := _NestPrinter(self, each).nest()).steps)
        memory = tuple(
            Memory(
                self._names[name],
                self._layouts[name].dtype,
                tuple(self._symbols.index_of(size) for size in self._layouts[name].shape),
            )
            for name in self._memory
        )
        return memory, written

    def _split(self, group: Sequence[LoopNode]) -> Iterator[_Nest]:
        """The nests of nodes that are fused."""
        nest: _Nest | None = None
        for number, node in enumerate(group):
            if nest is not None and not self._fits(nest, node):
                yield nest
                nest = None
            if nest is None:
                nest = _Nest(self._outer_sizes(node, group[number + 1 :]))
            self._add(nest, node)
        if nest is not None:
            yield nest

    def _outer_sizes(self, node: LoopNode, later: Sequence[LoopNode]) -> LoopSizes:
        sizes = _sizes(node)
        if node.inner:
            return sizes[: len(node.outer)]
        for other in later:
            outer = _sizes(other)[: len(other.outer)]
            if other.inner and sizes[: len(outer)] == outer:
                return outer
        return sizes

    def _fits(self, nest: _Nest, node: LoopNode) -> bool:
        depth = len(nest.outer)
        if _sizes(node)[:depth] != nest.outer or (node.inner and len(node.outer) != depth):
            return False
        variables = _variables(node, depth)
        for buffer, address in _loads(node):
            if buffer in nest.stored:
                expected = nest.stored[buffer][1]
                if sympy.expand(address.xreplace(variables) - expected) != 0:
                    return False
        return True

    def _add(self, nest: _Nest, node: LoopNode) -> None:
        depth = len(nest.outer)
        inner = _sizes(node)[depth:]
        last = nest.phases[-1] if nest.phases else None
        if (
            last is None
            or last.inner != inner
            or any(b in last.reductions for b, _ in _loads(node))
        ):
            last = _Phase(inner)
            nest.phases.append(last)
        builder = _Builder(self, nest, last, node)
        for store in node.stores:
            value = builder.node(store.value)
            address = sympy.expand(store.address.xreplace(builder.variables))
            dtype = self._layouts[store.buffer].dtype
            last.stores.append((store.buffer, address, value))
            if store.is_reduction:
                last.reductions.add(store.buffer)
            if dtype in LOW_FLOATS and value.dtype not in LOW_FLOATS:
                value = builder.cons(dtype, (value,), dtype)
            nest.stored[store.buffer] = (len(nest.phases) - 1, address, value)

    def count_value(self) -> None:
        """Count one more value.

        Raises:
            InputError: there are too many.
        """
        self._num_values += 1
        if self._num_values > MAX_VALUES:
            raise InputError(f"more than {MAX_VALUES} values")

    def read_memory(self, buffer: str) -> None:
        """Note that a buffer is read from memory."""
        self._read.add(buffer)
        if buffer not in self._names:
            self._names[buffer] = f"b{len(self._memory)}"
            self._memory.append(buffer)

    def is_in_memory(self, buffer: str) -> bool:
        """Whether what is stored in a buffer is a result, or read by another nest."""
        return buffer in self._outputs or buffer in self._read

    def layout(self, buffer: str) -> Any:
        """Shape, strides and dtype of a buffer.

        Raises:
            InputError: it is a constant tensor, which answers cannot hold.
        """
        if buffer not in self._layouts:
            raise InputError(f"a constant tensor ({buffer}), which answers cannot hold")
        return self._layouts[buffer]

    def op_name(self, op: int | None) -> str | None:
        """What the prompt calls what an op makes."""
        return self._op_names[op] if op is not None and op < len(self._op_names) else None

    def buffer_op(self, buffer: str) -> str | None:
        """What the prompt calls what a buffer holds."""
        made = self._loops.buffers.get(buffer)
        return self.op_name(made.op) if made is not None else None

    def name(self, buffer: str) -> str:
        """What the prompt, or the answer, calls a buffer."""
        return self._names[buffer]

    @property
    def symbols(self) -> Symbols:
        """Those of the prompt."""
        return self._symbols


def _sizes(node: LoopNode) -> LoopSizes:
    return tuple(size for _, size in (*node.outer, *node.inner))


def _variables(node: LoopNode, depth: int) -> dict[Any, Any]:
    """The variables of a nest with so many outer loops, by those of a node."""
    own = [variable for variable, _ in (*node.outer, *node.inner)]
    return {
        variable: outer_variable(n) if n < depth else inner_variable(n - depth)
        for n, variable in enumerate(own)
    }


def outer_variable(number: int) -> Any:
    """The variable of an outer loop."""
    return sympy.Symbol(f"i{number}", integer=True)


def inner_variable(number: int) -> Any:
    """The variable of an inner loop."""
    return sympy.Symbol(f"r{number}", integer=True)


def _loads(node: LoopNode) -> list[tuple[str, Any]]:
    """The buffers that a node reads, with the addresses."""
    waiting: list[Any] = [store.value for store in node.stores]
    waiting += [value for value, _ in node.picks.values()]
    loads, seen = [], set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, LoopValue) and id(value) not in seen:
            seen.add(id(value))
            if value.name == "load":
                loads.append((value.args[0], value.args[1]))
            else:
                waiting += value.args
    return loads


class _Builder:
    """Makes the values of a phase of those of a node of Inductor, each but once."""

    def __init__(self, writer: RangeWriter, nest: _Nest, phase: _Phase, node: LoopNode) -> None:
        self._writer = writer
        self._nest = nest
        self._phase = phase
        self._number = nest.phases.index(phase)
        self.variables = _variables(node, len(nest.outer))
        for symbol, (value, size) in node.picks.items():
            if any(symbol in getattr(arg, "free_symbols", ()) for arg in _index_args(value)):
                raise InputError("an index that depends on itself")
            made = self.cons("pick", (self.node(value), size), "int64")
            self.variables[symbol] = sympy.Symbol(f"pick{id(made)}", integer=True)
            phase.values.setdefault(("symbol", self.variables[symbol]), made)
        self._known: dict[int, _Node] = {}

    def cons(self, name: str, args: tuple[Any, ...], dtype: str, op: str | None = None) -> _Node:
        """The value of a call, the same for the same arguments."""
        key = (name, *(id(arg) if isinstance(arg, _Node) else arg for arg in args), dtype)
        made = self._phase.values.get(key)
        if made is None:
            self._writer.count_value()
            made = self._phase.values[key] = _Node(name, args, dtype)
        made.op = made.op or op
        return made

    def node(self, value: LoopValue) -> _Node:
        """A value of Inductor.

        Raises:
            InputError: the language has no such.
        """
        if not isinstance(value, LoopValue):
            if isinstance(value, bool | int | float):
                return self.cons("constant", (value,), _number_dtype(value))
            raise InputError(f"a value that is {type(value).__name__}")
        known = getattr(self, "_known", {})
        if id(value) not in known:
            known[id(value)] = self._made(value)
        return known[id(value)]

    def _made(self, value: LoopValue) -> _Node:
        op = self._writer.op_name(value.op)
        match value.name, value.args:
            case "constant", (number, dtype):
                if dtype in FLOATS:
                    return self.cons("constant", (repr(float(number)),), dtype)
                number = bool(number) if dtype == "bool" else int(number)
                return self.cons("constant", (number,), dtype)
            case "load", (buffer, address):
                return self._load(buffer, sympy.expand(address.xreplace(self.variables)), op)
            case "index", (expr, dtype):
                index = self.cons("index", (expr.xreplace(self.variables),), "int64")
                return self.cons(dtype, (index,), dtype) if dtype in FLOATS else index
            case "cast", (inner, dtype):
                return self._cast(self.node(inner), dtype, op)
            case "reduction", (kind, inner):
                if kind in ("welford_reduce",):
                    return self.cons("reduction", ("welford", self.node(inner)), "float32")
                return self.cons("reduction", (kind, self.node(inner)), _reduced(kind), op)
            case "part", (reduction, number):
                made = self.node(reduction)
                if number == 2:
                    count = 1
                    for size in self._phase.inner:
                        count *= size
                    return self.cons("constant", (repr(float(count)),), "float32")
                return self.cons("part", (made, number), "float32")
            case "masked", (mask, inner, other):
                made = (self.node(mask), self.node(inner), self.node(other))
                return self.cons("masked", made, made[1].dtype, op)
            case "identity", (inner,):
                return self.node(inner)
            case "square", (inner,):
                made = self.node(inner)
                return self.cons("mul", (made, made), made.dtype, op)
        name = _RENAMED.get(value.name, value.name)
        if name == "div_rn":
            name = "truediv"
        if ARITY.get(name) != len(value.args):
            raise InputError(f"the op {value.name} of Inductor cannot be said")
        args = tuple(self.node(arg) for arg in value.args)
        return self.cons(name, args, _result_dtype(name, args), op)

    def _cast(self, inner: _Node, dtype: str, op: str | None) -> _Node:
        is_same = inner.dtype == dtype or (dtype == "float32" and inner.dtype in LOW_FLOATS)
        if is_same:  # a low float is held as float32
            inner.op = inner.op or op
            return inner
        if inner.name == "constant" and dtype in FLOATS:
            return self.cons("constant", (repr(float(inner.args[0])),), dtype)
        return self.cons(dtype, (inner,), dtype, op)

    def _load(self, buffer: str, address: Any, op: str | None) -> _Node:
        dtype = self._writer.layout(buffer).dtype
        if buffer in self._nest.stored:
            number, _, value = self._nest.stored[buffer]
            phase = self._nest.phases[number]
            if number == self._number and buffer not in phase.reductions:
                return value
            if not phase.inner or buffer in phase.reductions:
                return self.cons("result", (buffer,), dtype)
        self._writer.read_memory(buffer)
        return self.cons("load", (buffer, address), dtype, op)


def _index_args(value: Any) -> Iterator[Any]:
    if isinstance(value, LoopValue):
        for arg in value.args:
            if isinstance(arg, LoopValue):
                yield from _index_args(arg)
            else:
                yield arg


def _number_dtype(value: bool | float) -> str:
    if isinstance(value, bool):
        return "bool"
    return "int64" if isinstance(value, int) else "float32"


def _reduced(kind: str) -> str:
    return {"argmax": "int64", "argmin": "int64", "any": "bool"}.get(kind, "float32")


def _result_dtype(name: str, args: Sequence[_Node]) -> str:
    if name in BOOLEAN_CALLS:
        return "bool"
    dtypes = [arg.dtype for arg in (args[1:] if name == "where" else args)]
    if "float64" in dtypes:
        return "float64"
    if any(dtype in FLOATS for dtype in dtypes) or name == "truediv":
        return "float32"
    return dtypes[0]


class _NestPrinter:
    """Writes a nest as steps, and names its values."""

    def __init__(self, writer: RangeWriter, nest: _Nest) -> None:
        self._writer = writer
        self._nest = nest
        self._results: dict[str, str] = {}
        self._taken: set[str] = set()
        self._num_named: Counter[str] = Counter()
        outer = {outer_variable(n): (0, size - 1) for n, size in enumerate(nest.outer)}
        self._bounds: dict[Any, Bounds] = outer

    def nest(self) -> Nest:
        """The nest; without steps where nothing of it is used."""
        steps: list[LoopStep] = []
        for number, phase in enumerate(self._nest.phases):
            before, after = self._phase_steps(number, phase)
            if phase.inner and before:
                loops = self._loops("r", phase.inner)
                steps.append(Inner(loops, tuple(before)))
            else:
                steps += before
            steps += after
        return Nest(self._loops("i", self._nest.outer), tuple(steps))

    def _loops(self, letter: str, sizes: LoopSizes) -> tuple[Loop, ...]:
        index_of = self._writer.symbols.index_of
        return tuple((f"{letter}{n}", index_of(size)) for n, size in enumerate(sizes))

    def _fresh(self, letter: str) -> str:
        self._num_named[letter] += 1
        return f"{letter}{self._num_named[letter] - 1}"

    def _phase_steps(self, number: int, phase: _Phase) -> tuple[list[Any], list[LoopStep]]:
        """The steps of a phase, and those that follow its loop."""
        inner = {inner_variable(n): (0, size - 1) for n, size in enumerate(phase.inner)}
        later = self._nest.phases[number + 1 :]
        read_later = {
            node.args[0] for other in later for node in other.values.values()
            if node.name == "result"
        }  # fmt: skip
        printer = _PhasePrinter(self, self._writer, {**self._bounds, **inner}, phase)
        return printer.steps(read_later)

    def result_name(self, buffer: str) -> str:
        """The name of a value that is known to later phases."""
        return self._results[buffer]

    def name_result(self, buffer: str, op: str | None) -> str:
        """A new name for such a value."""
        name = op if op is not None and op not in self._taken else self._fresh("s")
        self._taken.add(name)
        self._results[buffer] = name
        return name

    def is_taken(self, name: str) -> bool:
        """Whether a name means something between the inner loops."""
        return name in self._taken

    def fresh(self, letter: str) -> str:
        """A name that no other value of the nest has."""
        return self._fresh(letter)


class _PhasePrinter:
    """Writes the steps of one phase."""

    def __init__(
        self, nest: _NestPrinter, writer: RangeWriter, bounds: dict[Any, Bounds], phase: _Phase
    ) -> None:
        self._nest = nest
        self._writer = writer
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

    def steps(self, read_later: set[str]) -> tuple[list[Any], list[LoopStep]]:
        """The steps of the phase and those after its loop; `read_later` are buffers whose values
        later phases name.
        """
        phase, writer = self._phase, self._writer
        roots = [
            (buffer, address, node)
            for buffer, address, node in phase.stores
            if writer.is_in_memory(buffer) or buffer in read_later or buffer in phase.reductions
        ]
        for _, _, node in roots:
            self._count(node, is_open=True)
        after: list[LoopStep] = []
        reduced: dict[int, tuple[str, ...]] = {}
        for buffer, address, node in roots:
            if buffer in phase.reductions:
                name = self._reduced_name(buffer, node, reduced)
                if writer.is_in_memory(buffer):
                    after.append(Put(writer.name(buffer), self._index(buffer, address), name))
                continue
            value = self._expr(node, is_root=buffer not in read_later)
            if buffer in read_later:
                name = self._nest.name_result(buffer, writer.buffer_op(buffer))
                if value != name:
                    self._made.append(Let(name, value))
                value = name
            if writer.is_in_memory(buffer):
                self._made.append(Put(writer.name(buffer), self._index(buffer, address), value))
        return self._made, after

    def _reduced_name(self, buffer: str, node: _Node, reduced: dict[int, tuple[str, ...]]) -> str:
        """The name of the result of a reduction, which is a step where it comes up first."""
        part = 0
        if node.name == "part":
            node, part = node.args
        if node.name != "reduction":  # the count of a welford
            name = self._nest.name_result(buffer, None)
            value = self._expr(node)
            self._made.append(Let(name, value))
            return name
        kind, inner = node.args
        if id(node) not in reduced:
            value = self._expr(inner)
            if kind == "welford":
                names = (self._nest.fresh("s"), self._nest.fresh("s"))
            else:
                names = (self._nest.fresh("s"),)
            reduced[id(node)] = names
            self._made.append(Reduce(kind, names, value))
        name = reduced[id(node)][part]
        self._nest._results[buffer] = name  # noqa: SLF001
        return name

    def _count(self, node: _Node, is_open: bool) -> None:
        """Count uses; what is only used where a mask holds is not open, and gets no name."""
        self._uses[id(node)] += 1
        is_new = self._uses[id(node)] == 1 or (is_open and id(node) not in self._open)
        if is_open:
            self._open.add(id(node))
        if not is_new:
            return
        for number, arg in enumerate(node.args):
            if isinstance(arg, _Node):
                self._count(arg, is_open and not (node.name == "masked" and number == 1))
        for symbol in self._index_symbols(node):
            if not is_open:
                raise InputError("a value is an index only where a mask holds")
            self._count(self._picks[symbol], is_open)

    def _index_symbols(self, node: _Node) -> list[Any]:
        if node.name not in ("load", "index"):
            return []
        return [symbol for symbol in node.args[-1].free_symbols if symbol in self._picks]

    def _expr(self, node: _Node, is_root: bool = False) -> Expr:
        """A value as it is written where it is used; what has a name is made before."""
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
            return MemoryRead(self._writer.name(buffer), self._index(buffer, address))
        if node.name == "index":
            return IndexValue(self._words(node.args[0]))
        args = tuple(self._expr(arg) for arg in node.args)
        value = Call(node.name, args)
        is_shared = self._uses[id(node)] > 1
        if id(node) not in self._open or not (is_shared or (node.op and not is_root)):
            return value
        name = node.op
        if name is None or name in self._names.values() or self._nest.is_taken(name):
            name = self._nest.fresh("v")
        self._names[id(node)] = name
        self._made.append(Let(name, value))
        return name

    def _pick_name(self, symbol: Any) -> None:
        if symbol not in self._variable_names:
            value, size = self._picks[symbol].args
            expr = self._expr(value)
            name = self._nest.fresh("p")
            size_word = self._writer.symbols.index_of(size)
            if not isinstance(size_word, str):
                raise InputError("an axis of a size that is no symbol")
            self._made.append(Pick(name, size_word, expr))
            self._variable_names[symbol] = name

    def _constant(self, node: _Node) -> Expr:
        number = node.args[0]
        symbols = self._writer.symbols
        if isinstance(number, bool):
            return str(number)
        if isinstance(number, int):
            index = symbols.index_of(number)
            return index if isinstance(index, str) else IndexValue(index)
        real = float(number)
        word: Expr = symbols.real_of(real)
        if real == int(real) if abs(real) < 2**53 else False:
            whole = int(real)
            if abs(whole) > LARGEST_PLAIN and word == repr(real):
                index = symbols.index_of(whole)
                return Call("float32", (IndexValue(index),))
        return Call("float64", (word,)) if node.dtype == "float64" else word

    def _index(self, buffer: str, address: Any) -> tuple[Index, ...]:
        layout = self._writer.layout(buffer)
        axes = axis_indices(address, layout.shape, layout.stride, self._bounds)
        return tuple(self._words(axis) for axis in axes)

    def _words(self, axis: Any) -> Index:
        return index_words(axis, self._variable_names, self._writer.symbols.index_of)
