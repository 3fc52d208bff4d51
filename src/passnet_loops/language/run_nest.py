"""One nest of the loops language run by torch, each step for all rounds at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch

from passnet.errors import InputError, PassnetError
from passnet_loops.language import language as lang
from passnet_loops.language.symbols import Symbols
from passnet_loops.language.torch_calls import reduced, torch_call, torch_cast


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits beyond which loops are not run, and left to the judge."""

    max_rounds: int = 2**24
    """Rounds of a nest, or elements of memory."""

    max_bytes: int = 2**31
    """Bytes of the values of a nest at one time."""


class WrongLoopsError(PassnetError):
    """The loops differ from any correct answer."""


class UnknownLoopsError(PassnetError):
    """The loops cannot be run here."""


class NestRun:
    """A run of one nest.

    A value has an axis for each loop around it, of size 1 where it does not change.
    """

    def __init__(
        self,
        memory: Mapping[str, torch.Tensor],
        arguments: frozenset[str],
        symbols: Symbols,
        limits: RunLimits,
    ) -> None:
        self._memory = memory
        self._limits = limits
        self._arguments = arguments
        self._symbols = symbols
        self._loops: list[tuple[str, int]] = []
        self._values: dict[str, torch.Tensor] = {}

    def run(self, nest: lang.Nest) -> None:
        """Run it, and put its results into memory."""
        self._enter(nest.loops)
        for step in nest.steps:
            if isinstance(step, lang.Inner):
                self._inner(step)
            else:
                self._step(step)

    def _enter(self, loops: Sequence[tuple[str, lang.Index]]) -> None:
        for name, size in loops:
            count = self._symbols.index_value(size)
            if count <= 0:
                raise UnknownLoopsError(f"{name} takes {count} values")
            self._loops.append((name, count))
        if prod(count for _, count in self._loops) > self._limits.max_rounds:
            raise UnknownLoopsError(f"more than {self._limits.max_rounds} rounds")

    def _inner(self, inner: lang.Inner) -> None:
        num_outer, outer_values = len(self._loops), dict(self._values)
        self._enter(inner.loops)
        num_inner = len(self._loops) - num_outer
        results: dict[str, torch.Tensor] = {}
        for step in inner.steps:
            if not isinstance(step, lang.Reduce):
                self._step(step)
                continue
            value = self._aligned(self._expr(step.value, None))
            sizes = [count for _, count in self._loops[num_outer:]]
            value = value.expand(*value.shape[:num_outer], *sizes)
            results.update(zip(step.names, reduced(step.kind, value, num_inner), strict=True))
        del self._loops[num_outer:]
        self._values = outer_values | results

    def _step(self, step: lang.LoopStep) -> None:
        match step:
            case lang.Let(name, value):
                self._values[name] = self._expr(value, None)
                if sum(x.nbytes for x in self._values.values()) > self._limits.max_bytes:
                    raise UnknownLoopsError(f"values of more than {self._limits.max_bytes} bytes")
            case lang.Pick(name, size, value):
                count = self._symbols.index_value(size)
                index = self._expr(value, None).long()
                index = torch.where(index < 0, index + count, index)
                if bool(((index < 0) | (index >= count)).any()):
                    raise WrongLoopsError(f"{name} is out of bounds")
                self._values[name] = index
            case lang.Put(memory, index, value):
                self._put(memory, index, self._expr(value, None))
            case _:
                raise InputError("a sum is only known after an inner loop: over ... done")

    def _aligned(self, value: torch.Tensor) -> torch.Tensor:
        """Return a value with an axis for each current loop."""
        return value.reshape(*value.shape, *[1] * (len(self._loops) - value.ndim))

    def _expr(self, value: lang.Expr, mask: torch.Tensor | None) -> torch.Tensor:
        """Return a value where `mask` holds; elsewhere it is unused."""
        match value:
            case str():
                return self._word(value)
            case lang.MemoryRead(memory, index):
                return self._read(memory, index, mask)
            case lang.IndexValue(index):
                return self._aligned(torch.as_tensor(self._index(index)))
            case lang.Call("masked", (condition, inside, other)):
                holds = self._aligned(self._expr(condition, mask)).bool()
                within = holds if mask is None else holds & mask
                args = (holds, self._expr(inside, within), self._expr(other, mask))
                return torch_call("masked", [self._aligned(arg) for arg in args])
            case lang.Call(name, args):
                return torch_call(name, [self._aligned(self._expr(arg, mask)) for arg in args])
        raise AssertionError("these are all")

    def _word(self, word: str) -> torch.Tensor:
        if word in self._values:
            return self._aligned(self._values[word])
        number = self._symbols.number_value(word)
        if number is None:
            raise InputError(f"{word!r} is not known where it is used")
        dtype = torch.float32 if isinstance(number, float) else None  # torch's own for the others
        return self._aligned(torch.tensor(number, dtype=dtype))

    def _index(self, index: lang.Index) -> torch.Tensor | int:
        if isinstance(index, str):
            for axis, (name, count) in enumerate(self._loops):
                if name == index:
                    sizes = [1] * len(self._loops)
                    sizes[axis] = count
                    return torch.arange(count).reshape(sizes)
            if index in self._values:
                return self._aligned(self._values[index])
            return self._symbols.whole_value(index)
        left, right = self._index(index.left), self._index(index.right)
        match index.name:
            case "+":
                return left + right
            case "*":
                return left * right
        if isinstance(right, torch.Tensor) or right <= 0:
            raise InputError("an index is divided by what is not a number greater than 0")
        return left // right if index.name == "//" else left % right

    def _view(self, memory: torch.Tensor, index: Sequence[lang.Index]) -> torch.Tensor | None:
        """Return memory with an axis for each loop, if each index is a whole loop or a number."""
        loop_axes = {name: loop_axis for loop_axis, (name, _) in enumerate(self._loops)}
        used: list[int] = []
        view = memory
        for part, size in zip(index, memory.shape, strict=True):
            axis = len(used)
            if size == 1:
                view = view.select(axis, 0)
            elif isinstance(part, str) and part in loop_axes and loop_axes[part] not in used:
                if self._loops[loop_axes[part]][1] > size:
                    return None
                view = view.narrow(axis, 0, self._loops[loop_axes[part]][1])
                used.append(loop_axes[part])
            else:
                return None
        order = sorted(range(len(used)), key=lambda axis: used[axis])
        view = view.permute(order)
        for loop_axis in range(len(self._loops)):
            if loop_axis not in used:
                view = view.unsqueeze(loop_axis)
        return view

    def _parts(
        self,
        memory: torch.Tensor,
        index: Sequence[lang.Index],
        mask: torch.Tensor | None,
        name: str,
    ) -> tuple[torch.Tensor, ...]:
        """Return an index for each axis, all in bounds."""
        parts = []
        for part, size in zip(index, memory.shape, strict=True):
            number = torch.as_tensor(0 if size == 1 else self._index(part))
            number = self._aligned(number)
            is_out = (number < 0) | (number >= size)
            if bool((is_out if mask is None else is_out & mask).any()):
                raise WrongLoopsError(f"an index of {name} is beyond its axis of {size}")
            parts.append(number if mask is None else number.clamp(0, size - 1))
        return tuple(parts)

    def _of(self, name: str, index: Sequence[lang.Index]) -> torch.Tensor:
        if name not in self._memory:
            raise InputError(f"{name!r} is no memory that can be read or put into here")
        memory = self._memory[name]
        if memory.ndim != len(index):
            raise InputError(f"{name} has {memory.ndim} axes, and an index of {len(index)} parts")
        return memory

    def _read(
        self, name: str, index: Sequence[lang.Index], mask: torch.Tensor | None
    ) -> torch.Tensor:
        memory = self._of(name, index)
        value = self._view(memory, index)
        if value is None:
            value = self._aligned(memory[self._parts(memory, index, mask, name)])
        elif name not in self._arguments:
            value = value.clone()  # what is put there later changes nothing
        return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value

    def _put(self, name: str, index: Sequence[lang.Index], value: torch.Tensor) -> None:
        if name in self._arguments:
            raise InputError(f"{name} is an argument; nothing may be put into it")
        memory = self._of(name, index)
        sizes = [count for _, count in self._loops]
        value = torch_cast(str(memory.dtype).removeprefix("torch."), self._aligned(value))
        value = value.to(memory.dtype)
        view = self._view(memory, index)
        if view is not None and list(view.shape) == sizes:
            view.copy_(value.expand(sizes))
            return
        parts = [part.expand(sizes) for part in self._parts(memory, index, None, name)]
        memory[tuple(parts)] = value.expand(sizes)
