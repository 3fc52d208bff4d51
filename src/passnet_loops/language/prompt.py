"""The prompt of the loops form: a line for each argument and op, with numbers as symbols."""

from dataclasses import dataclass, field
from functools import cached_property

from passnet.data.mine.cut import Parent, cut_range, inferred_specs, parent_of, single_assignment
from passnet.errors import GraphError, InputError
from passnet.graph.spec import (
    Arg,
    Device,
    Graph,
    Op,
    Ref,
    Sequence,
    Slice,
    TensorSpec,
    TorchName,
    refs,
)
from passnet.passes.codegen.lowered_ranges import Span, value_strides
from passnet_loops.language.symbols import Symbols

MAX_OPS = 64
_PREFIXES = ("torch.nn.functional.", "torch._C._nn.", "operator.", "torch.", "Tensor.")


@dataclass(frozen=True, slots=True)
class PromptRange:
    """A range of a prompt's ops as a graph of its own."""

    cut: Graph
    names: dict[str, str]
    """Names in the prompt, by names of the cut."""

    arguments: tuple[str, ...]
    """Names in the prompt of its parameters, in order."""

    results: tuple[str, ...]
    """Names in the prompt of its outputs."""


@dataclass(frozen=True)
class Prompt:
    """The prompt of a graph, and the meaning of its words.

    `graph` is in single-assignment form; `names` maps its values to names of the prompt, and
    `specs` has its tensors.
    """

    text: str
    graph: Graph
    symbols: Symbols
    names: dict[str, str]
    specs: dict[str, TensorSpec]
    _ranges: dict[Span, PromptRange] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def strides(self) -> dict[str, tuple[int, ...]]:
        """Return the strides of op results in eager torch, by names of the graph."""
        return value_strides(self.graph)

    @cached_property
    def op_numbers(self) -> dict[str, int]:
        """Return the number of the op of each value, by names of the prompt."""
        ops = enumerate(self.graph.program.ops)
        return {self.names[op.output or ""]: number for number, op in ops}

    @cached_property
    def _parent(self) -> Parent:
        return parent_of(self.graph.program, self.specs)

    def range(self, span: Span) -> PromptRange:
        """Cut out a range of ops, once for all answers.

        Raises:
            CutError, GraphError: It cannot be cut out.
            KeyError: A value of it has no name in the prompt.
        """
        if span not in self._ranges:
            cut = cut_range(self._parent, *span)
            names = {spec.name: self.names[spec.original_name or ""] for spec in cut.tensors}
            for number, op in enumerate(cut.program.ops):
                original = self.graph.program.ops[span[0] + number].output
                if op.output is not None and original is not None:
                    names[op.output] = self.names[original]
            arguments = tuple(names[spec.name] for spec in cut.tensors)
            results = tuple(names[name] for arg in cut.program.outputs for name in refs(arg))
            self._ranges[span] = PromptRange(cut, names, arguments, results)
        return self._ranges[span]


def loops_prompt(graph: Graph) -> Prompt:
    """Return the prompt of a graph, which does not depend on names.

    Raises:
        InputError: It has too many ops, or one without a result.
        GraphError: Its shapes cannot be inferred.
    """
    single = Graph(single_assignment(graph.program), graph.tensors)
    ops = single.program.ops
    if len(ops) > MAX_OPS:
        raise InputError(f"a graph of {len(ops)} ops; the loops form is for up to {MAX_OPS}")
    specs = inferred_specs(single)
    writer = _PromptWriter(specs)
    lines = [writer.op_line(op, number) for number, op in enumerate(ops)]
    outputs = " ".join(writer.words(Sequence("tuple", single.program.outputs)))
    bits = [f"N{n} {_magnitude(number)}" for n, number in enumerate(writer.symbols.wholes)]
    head = [" ".join(["sizes", *bits])] if bits else []
    text = "\n".join([*head, *writer.argument_lines, *lines, f"return {outputs}", "answer"])
    return Prompt(text, single, writer.symbols, writer.names, specs)


def prompt_or_none(graph: Graph) -> Prompt | None:
    """Return the prompt of a graph; None where it has none."""
    try:
        return loops_prompt(graph)
    except (GraphError, InputError):
        return None


def _magnitude(number: int) -> str:
    return f"e{number.bit_length()}" if number > 0 else f"-e{(-number).bit_length()}"


def short_name(target: str) -> str:
    """Return the name of an op without its module."""
    for prefix in _PREFIXES:
        if target.startswith(prefix):
            return target.removeprefix(prefix)
    return target


class _PromptWriter:
    """A writer of ops, which names values as they come up."""

    def __init__(self, specs: dict[str, TensorSpec]) -> None:
        self.symbols = Symbols()
        self.names: dict[str, str] = {}
        self.argument_lines: list[str] = []
        self._specs = specs

    def op_line(self, op: Op, number: int) -> str:
        if op.output is None:
            raise InputError(f"op {number} ({op.target}) has no result; the loops form has no such")
        words = [word for arg in op.args for word in self.words(arg)]
        for name, arg in op.kwargs:
            words += [f"{name}=", *self.words(arg)]
        self.names[op.output] = f"t{number}"
        parts = [f"t{number}", ":", *self._shape(op.output), "=", short_name(op.target), *words]
        return " ".join(parts)

    def words(self, arg: Arg) -> list[str]:
        match arg:
            case Ref(name):
                if name not in self.names:
                    self.names[name] = f"a{len(self.argument_lines)}"
                    words = [self.names[name], ":", *self._shape(name)]
                    self.argument_lines.append(" ".join(words))
                return [self.names[name]]
            case Sequence(_, elements):
                return ["(", *(word for element in elements for word in self.words(element)), ")"]
            case Slice(start, stop, step):
                parts = (word for part in (start, stop, step) for word in self.words(part))
                return ["<", *parts, ">"]
            case TorchName(name):
                return [name]
            case Device():
                return []
            case bool() | None:
                return [str(arg)]
            case int():
                return [self.symbols.whole(arg)]
            case float():
                return [self.symbols.real(arg)]
            case str():
                return ["'" + "_".join(arg.split()) + "'"]
        return ["..."]

    def _shape(self, name: str) -> list[str]:
        spec = self._specs.get(name)
        if spec is None:
            return ["?"]
        return [spec.dtype, *map(self.symbols.whole, spec.shape)]
