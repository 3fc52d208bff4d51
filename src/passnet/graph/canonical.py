"""A graph's identity without its names: op sequence, canonical form, and three fingerprints."""

import hashlib
from dataclasses import dataclass
from operator import itemgetter

from passnet.errors import GraphError
from passnet.graph import spec


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Three identities of a graph, each SHA-256 in hex, from coarse to fine.

    `structure`: ops and data flow. `literals`: the same and every literal argument.
    `full`: the same and shape, dtype and declared domain of every argument (None where unknown).
    """

    structure: str
    literals: str
    full: str | None


def op_sequence(program: spec.Program) -> tuple[str, ...]:
    """Return the targets of the ops in program order; graphs that share them form one task."""
    return tuple(op.target for op in program.ops)


@dataclass(slots=True)
class _Value:
    """The value of a name; an argument gets a number when it is first read."""

    name: str
    number: str | None = None


class _Numbering:
    """Numbers of values, in the order of their first use (arguments) or creation (results)."""

    def __init__(self) -> None:
        self._values: dict[str, _Value] = {}
        self._num_ops = 0
        self.inputs: list[str] = []

    def alias(self, name: str, source: str) -> None:
        self._values[name] = self._value(source)

    def add_op(self, output: str | None) -> None:
        if output is not None:
            self._values[output] = _Value(output, f"v{self._num_ops}")
        self._num_ops += 1

    def _value(self, name: str) -> _Value:
        return self._values.setdefault(name, _Value(name))

    def texts(self, arg: spec.Arg) -> tuple[str, str]:
        """Return an argument in canonical form, without its literals and with them."""
        if isinstance(arg, spec.Ref):
            value = self._value(arg.name)
            if value.number is None:
                value.number = f"i{len(self.inputs)}"
                self.inputs.append(value.name)
            return value.number, value.number
        if isinstance(arg, spec.Sequence):
            return self._joined("(", arg.items)
        if isinstance(arg, spec.Slice):
            return self._joined("s(", (arg.start, arg.stop, arg.step))
        if isinstance(arg, spec.TorchName):
            return "", "torch." + arg.name
        if isinstance(arg, spec.Device):
            return "", "device"  # where a graph runs is no part of what it is
        return "", f"{type(arg).__name__}:{arg!r}"

    def _joined(self, opening: str, args: tuple[spec.Arg, ...]) -> tuple[str, str]:
        pairs = [self.texts(arg) for arg in args]
        bare = " ".join([bare for bare, _ in pairs if bare])
        return bare, f"{opening}{','.join([full for _, full in pairs])})"


def canonical_lines(program: spec.Program) -> tuple[list[str], list[str], list[str]]:
    """Return canonical lines of a program without literals, lines with them, and its arguments.

    Values are numbered by first use: names, order of arguments, aliases, hints, devices and kinds
    of sequences, except of an index, leave no trace. Arguments that nothing reads are not listed.
    """
    numbering = _Numbering()
    structure: list[str] = []
    literals: list[str] = []
    for statement in program.body:
        if isinstance(statement, spec.Alias):
            numbering.alias(statement.output, statement.source)
        elif isinstance(statement, spec.Op):
            pairs = [numbering.texts(arg) for arg in statement.args]
            if _is_by_list(statement):  # `x[[0, 1]]` are two rows, `x[0, 1]` is a number
                pairs[1] = (pairs[1][0], f"rows{pairs[1][1]}")
            for name, arg in sorted(statement.kwargs, key=itemgetter(0)):
                bare, full = numbering.texts(arg)
                pairs.append((f"{name}={bare}" if bare else "", f"{name}={full}"))
            numbering.add_op(statement.output)
            structure.append(f"{statement.target} {' '.join([bare for bare, _ in pairs if bare])}")
            literals.append(f"{statement.target} {' '.join([full for _, full in pairs])}")
    pairs = [numbering.texts(arg) for arg in program.outputs]
    structure.append("return " + " ".join(bare for bare, _ in pairs))
    literals.append("return " + " ".join(full for _, full in pairs))
    return structure, literals, numbering.inputs


def _is_by_list(op: spec.Op) -> bool:
    """Return whether an op takes or sets the rows that a list names."""
    name = op.target.rpartition(".")[2].strip("_")
    is_index = name in ("getitem", "setitem") and len(op.args) > 1
    index = op.args[1] if is_index else None
    return isinstance(index, spec.Sequence) and index.kind == "list"


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _type(tensor: spec.TensorSpec) -> str:
    return f"{tensor.dtype}{list(tensor.shape)}" + f" {tensor.domain}" * bool(tensor.domain)


def fingerprints(graph: spec.Graph) -> Fingerprints:
    """Return a graph's fingerprints; raise GraphError if only some used arguments have specs."""
    structure, literals, inputs = canonical_lines(graph.program)
    full = None
    if graph.tensors or not graph.program.params:
        specs = {spec.name: spec for spec in graph.tensors}
        missing = [name for name in inputs if name not in specs]
        if missing:
            raise GraphError(f"argument {missing[0]} has no shape and dtype")
        full = _digest(literals + [_type(specs[name]) for name in inputs])
    return Fingerprints(_digest(structure), _digest(literals), full)
