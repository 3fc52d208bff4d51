"""The values of a nest: the computations of Inductor's loops, each once, by phase."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy

from passnet.errors import InputError
from passnet.inductor.loops import LoopNode, LoopValue
from passnet_loops.language.language import ARITY, BOOLEAN_CALLS, LOW_FLOATS
from passnet_loops.language.nests.range_memory import RangeMemory

FLOATS = (*LOW_FLOATS, "float32", "float64")
_RENAMED = {"remainder": "mod", "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor"}

LoopSizes = tuple[int, ...]


@dataclass(eq=False, slots=True)
class NestValue:
    """A value of a phase; `op` is the op of the prompt with this result."""

    name: str
    args: tuple[Any, ...]
    dtype: str
    op: str | None = None


@dataclass
class NestPhase:
    """The stores of one inner loop, or between inner loops where `inner` is empty.

    `reductions` are buffers that are known after the loop.
    """

    inner: LoopSizes
    stores: list[tuple[str, Any, NestValue]] = field(default_factory=list)
    reductions: set[str] = field(default_factory=set)
    values: dict[Any, NestValue] = field(default_factory=dict)


@dataclass
class NestPlan:
    """Outer loops and their phases; `stored` has phase, address and value of each buffer."""

    outer: LoopSizes
    phases: list[NestPhase] = field(default_factory=list)
    stored: dict[str, tuple[int, Any, NestValue]] = field(default_factory=dict)


def loop_variables(node: LoopNode, depth: int) -> dict[Any, Any]:
    """Map the variables of a node to a nest's with `depth` outer loops."""
    own = [variable for variable, _ in (*node.outer, *node.inner)]
    return {
        variable: outer_variable(n) if n < depth else inner_variable(n - depth)
        for n, variable in enumerate(own)
    }


def outer_variable(number: int) -> Any:
    """Return the variable of an outer loop."""
    return sympy.Symbol(f"i{number}", integer=True)


def inner_variable(number: int) -> Any:
    """Return the variable of an inner loop."""
    return sympy.Symbol(f"r{number}", integer=True)


class ValueBuilder:
    """A builder of a phase's values from a node of Inductor."""

    def __init__(
        self, memory: RangeMemory, nest: NestPlan, phase: NestPhase, node: LoopNode
    ) -> None:
        self._memory = memory
        self._nest = nest
        self._phase = phase
        self._number = nest.phases.index(phase)
        self.variables = loop_variables(node, len(nest.outer))
        for symbol, (value, size) in node.picks.items():
            if any(symbol in getattr(arg, "free_symbols", ()) for arg in _index_args(value)):
                raise InputError("an index that depends on itself")
            pick = self.cons("pick", (self.node(value), size), "int64")
            self.variables[symbol] = self._symbol_of(pick)
        self._known: dict[int, NestValue] = {}

    def cons(
        self, name: str, args: tuple[Any, ...], dtype: str, op: str | None = None
    ) -> NestValue:
        """Return the value of a call, the same for the same arguments."""
        key = (name, *(id(arg) if isinstance(arg, NestValue) else arg for arg in args), dtype)
        call = self._phase.values.get(key)
        if call is None:
            self._memory.count_value()
            call = self._phase.values[key] = NestValue(name, args, dtype)
        call.op = call.op or op
        return call

    def _symbol_of(self, pick: NestValue) -> Any:
        """Return the symbol of a picked index."""
        values = self._phase.values
        symbols = {id(value): key[1] for key, value in values.items() if key[0] == "symbol"}
        if id(pick) not in symbols:
            name = f"pick{self._number}_{len(symbols)}"
            symbols[id(pick)] = sympy.Symbol(name, integer=True)
            values["symbol", symbols[id(pick)]] = pick
        return symbols[id(pick)]

    def node(self, value: LoopValue) -> NestValue:
        """Return the value of a value of Inductor.

        Raises:
            InputError: The language cannot express it.
        """
        if not isinstance(value, LoopValue):
            if isinstance(value, bool | int | float):
                return self.cons("constant", (value,), _number_dtype(value))
            raise InputError(f"a value that is {type(value).__name__}")
        cache = getattr(self, "_known", {})
        if id(value) not in cache:
            cache[id(value)] = self._made(value)
        return cache[id(value)]

    def _made(self, value: LoopValue) -> NestValue:
        op = self._memory.op_name(value.op)
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
                result = self.node(reduction)
                if number == 2:
                    count = 1
                    for size in self._phase.inner:
                        count *= size
                    return self.cons("constant", (repr(float(count)),), "float32")
                return self.cons("part", (result, number), "float32")
            case "masked", (mask, inner, other):
                parts = (self.node(mask), self.node(inner), self.node(other))
                return self.cons("masked", parts, parts[1].dtype, op)
            case "identity", (inner,):
                return self.node(inner)
            case "square", (inner,):
                factor = self.node(inner)
                return self.cons("mul", (factor, factor), factor.dtype, op)
        name = _RENAMED.get(value.name, value.name)
        if name == "div_rn":
            name = "truediv"
        if ARITY.get(name) != len(value.args):
            raise InputError(f"the op {value.name} of Inductor cannot be said")
        args = tuple(self.node(arg) for arg in value.args)
        return self.cons(name, args, _result_dtype(name, args), op)

    def _cast(self, inner: NestValue, dtype: str, op: str | None) -> NestValue:
        is_same = inner.dtype == dtype or (dtype == "float32" and inner.dtype in LOW_FLOATS)
        if is_same:  # a low float is held as float32
            inner.op = inner.op or op
            return inner
        if inner.name == "constant" and dtype in FLOATS:
            return self.cons("constant", (repr(float(inner.args[0])),), dtype)
        return self.cons(dtype, (inner,), dtype, op)

    def _load(self, buffer: str, address: Any, op: str | None) -> NestValue:
        dtype = self._memory.layout(buffer).dtype
        if buffer in self._nest.stored:
            number, _, value = self._nest.stored[buffer]
            phase = self._nest.phases[number]
            if number == self._number and buffer not in phase.reductions:
                return value
            if not phase.inner or buffer in phase.reductions:
                return self.cons("result", (buffer,), dtype)
        self._memory.read_memory(buffer)
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


def _result_dtype(name: str, args: Sequence[NestValue]) -> str:
    if name in BOOLEAN_CALLS:
        return "bool"
    dtypes = [arg.dtype for arg in (args[1:] if name == "where" else args)]
    if "float64" in dtypes:
        return "float64"
    if any(dtype in FLOATS for dtype in dtypes) or name == "truediv":
        return "float32"
    return dtypes[0]
