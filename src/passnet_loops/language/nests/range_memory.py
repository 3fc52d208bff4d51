"""The names and layouts of a range's memory.

Arguments and results have their names from the prompt. A buffer that one nest stores and another
reads is memory too, named as it comes up.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from passnet.errors import InputError
from passnet.inductor.loops import InductorLoops
from passnet_loops.language.language import Memory
from passnet_loops.language.symbols import Symbols

MAX_VALUES = 600
"""Values of a range beyond which it is not written down."""


def spanned_elements(shape: Sequence[int]) -> int:
    """Return the number of elements that the strides of memory span.

    An empty axis counts as one, as it does not shorten the strides of the others.
    """
    return prod(max(size, 1) for size in shape)


class RangeMemory:
    """The buffers of a range, by name.

    Arguments, outputs and op results are given by their names in the prompt.
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

    def between_nests(self) -> tuple[Memory, ...]:
        """Return the memory that is neither argument nor result."""
        return tuple(
            Memory(
                self._names[name],
                self._layouts[name].dtype,
                tuple(self._symbols.index_of(size) for size in self._layouts[name].shape),
            )
            for name in self._memory
        )

    def count_value(self) -> None:
        """Count a value; raise InputError if there are too many."""
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
        """Return True if a buffer is a result, or read by another nest."""
        return buffer in self._outputs or buffer in self._read

    def layout(self, buffer: str) -> Any:
        """Return shape, strides and dtype of a buffer; raise InputError for constant tensors."""
        if buffer not in self._layouts:
            raise InputError(f"a constant tensor ({buffer}), which answers cannot hold")
        return self._layouts[buffer]

    def op_name(self, op: int | None) -> str | None:
        """Return the name in the prompt of the result of an op."""
        return self._op_names[op] if op is not None and op < len(self._op_names) else None

    def buffer_op(self, buffer: str) -> str | None:
        """Return the name in the prompt of the value in a buffer."""
        computed = self._loops.buffers.get(buffer)
        return self.op_name(computed.op) if computed is not None else None

    def name(self, buffer: str) -> str:
        """Return the name of a buffer in prompt or answer."""
        return self._names[buffer]

    @property
    def symbols(self) -> Symbols:
        """Return the symbols of the prompt."""
        return self._symbols
