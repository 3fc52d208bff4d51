"""What a graph is, whatever its names: op sequence, canonical form, and three fingerprints."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from passnet.errors import GraphError
from passnet.graph.spec import (
    Alias,
    Arg,
    Device,
    Graph,
    Op,
    Program,
    Ref,
    Release,
    Sequence,
    Slice,
    TorchName,
)


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Three identities of a graph, each SHA-256 in hex, from coarse to fine.

    `structure`: ops and data flow. `literals`: the same and every literal argument.
    `full`: the same and the shape and dtype of every argument (None where these are not known).
    """

    structure: str
    literals: str
    full: str | None


def op_sequence(program: Program) -> tuple[str, ...]:
    """The targets of the ops in program order; graphs that share it belong to one task."""
    return tuple(item.target for item in program.body if isinstance(item, Op))


@dataclass(slots=True)
class _Value:
    """What a name stands for; an argument has no number until it is read."""

    name: str
    number: str | None = None


class _Numbering:
    """Numbers values in the order in which ops first use (arguments) or make (results) them."""

    def __init__(self) -> None:
        self._values: dict[str, _Value] = {}
        self.inputs: list[str] = []
        self._made = 0

    def read(self, name: str) -> str:
        value = self._value(name)
        if value.number is None:
            value.number = f"i{len(self.inputs)}"
            self.inputs.append(value.name)
        return value.number

    def make(self, name: str | None) -> None:
        if name is not None:
            self._values[name] = _Value(name, f"v{self._made}")
        self._made += 1

    def alias(self, name: str, source: str) -> None:
        self._values[name] = self._value(source)

    def _value(self, name: str) -> _Value:
        return self._values.setdefault(name, _Value(name))


class _Args:
    """Renders arguments in canonical form, with or without their literals."""

    def __init__(self, numbering: _Numbering) -> None:
        self._numbering = numbering

    def both(self, arg: Arg) -> tuple[str, str]:
        """The argument without and with literals."""
        if isinstance(arg, Ref):
            value = self._numbering.read(arg.name)
            return value, value
        if isinstance(arg, Sequence):
            return self._join("(", arg.items)
        if isinstance(arg, Slice):
            return self._join("s(", (arg.start, arg.stop, arg.step))
        return "", _literal(arg)

    def _join(self, opening: str, items: tuple[Arg, ...]) -> tuple[str, str]:
        pairs = [self.both(item) for item in items]
        bare = " ".join(pair[0] for pair in pairs if pair[0])
        return bare, opening + ",".join(pair[1] for pair in pairs) + ")"


def _literal(arg: Arg) -> str:
    if isinstance(arg, TorchName):
        return "torch." + arg.name
    if isinstance(arg, Device):
        return "device"  # where a graph runs is no part of what it is
    return f"{type(arg).__name__}:{arg!r}"


def canonical_lines(program: Program) -> tuple[list[str], list[str], list[str]]:
    """The canonical form of a program, one line per op and one for the outputs.

    Values are numbered by first use, so that names and the order of the arguments of `forward` do
    not matter; liveness hints and aliases leave no trace; tuples and lists are equal; devices are
    left out.

    Returns:
        The lines without literals, the lines with them, and the names of the arguments in the
        order of their numbers (arguments that no op or output reads are not listed).
    """
    numbering = _Numbering()
    args = _Args(numbering)
    structure: list[str] = []
    literals: list[str] = []
    for item in program.body:
        if isinstance(item, Release):
            continue
        if isinstance(item, Alias):
            numbering.alias(item.output, item.source)
            continue
        bare: list[str] = []
        full: list[str] = []
        for arg in item.args:
            pair = args.both(arg)
            bare.append(pair[0])
            full.append(pair[1])
        for name, arg in sorted(item.kwargs, key=lambda entry: entry[0]):
            pair = args.both(arg)
            if pair[0]:
                bare.append(f"{name}={pair[0]}")
            full.append(f"{name}={pair[1]}")
        numbering.make(item.output)
        structure.append(f"{item.target} {' '.join(part for part in bare if part)}")
        literals.append(f"{item.target} {' '.join(full)}")
    pairs = [args.both(arg) for arg in program.outputs]
    structure.append("return " + " ".join(pair[0] for pair in pairs))
    literals.append("return " + " ".join(pair[1] for pair in pairs))
    return structure, literals, numbering.inputs


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def fingerprints(graph: Graph) -> Fingerprints:
    """The three identities of a graph.

    Raises:
        GraphError: an argument that is used has no spec although others have one.
    """
    structure, literals, inputs = canonical_lines(graph.program)
    full = None
    if graph.tensors or not graph.program.params:
        specs = {item.name: item for item in graph.tensors}
        missing = [name for name in inputs if name not in specs]
        if missing:
            raise GraphError(f"argument {missing[0]} has no shape and dtype")
        types = [f"{specs[name].dtype}{list(specs[name].shape)}" for name in inputs]
        full = _digest(literals + types)
    return Fingerprints(_digest(structure), _digest(literals), full)
