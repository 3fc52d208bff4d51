"""Programs to test with: from lines of text, or random, with every name bound before use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from passnet.graph.arguments import CONSTANT_NAMES
from passnet.graph.fx.operators import BINARY, COMPARE, IN_PLACE, UNARY
from passnet.graph.spec import (
    Alias,
    Arg,
    Device,
    Graph,
    Op,
    Param,
    Program,
    Ref,
    Release,
    Sequence,
    Slice,
    Statement,
    TensorSpec,
    TorchName,
    op_refs,
    refs,
)
from passnet.graph.text.parse import parse_program

FIRST_LINE = 5
"""Line of the first statement in what `text_of` gives."""

QUICK = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
"""How properties over programs are tried: no limit on the time of one, few of them."""

_FUNCTIONS = ("torch.relu", "torch.cat", "torch.nn.functional.layer_norm", "torch._C._nn.gelu")
_METHODS = ("view", "transpose", "masked_fill", "softmax", "to")
_ATTRIBUTES = ("shape", "dtype", "T")
_KEYWORDS = ("dim", "eps", "dtype", "inplace", "other")


def text_of(*lines: str, params: str = "a, b", returns: str = "(a,)") -> str:
    """The text of a `model.py` whose `forward` holds the lines."""
    body = "".join(f"        {line}\n" for line in lines)
    return (
        "import torch\n\nclass GraphModule(torch.nn.Module):\n"
        f"    def forward(self, {params}):\n{body}        return {returns}\n"
    )


def program_of(*lines: str, params: str = "a, b", returns: str = "(a,)") -> Program:
    """The program whose `forward` holds the lines."""
    return parse_program(text_of(*lines, params=params, returns=returns))


def graph_of(program: Program, shape: tuple[int, ...] = (2, 3), dtype: str = "float32") -> Graph:
    """The program with the same shape and dtype for every argument."""
    return Graph(program, tuple(TensorSpec(param.name, shape, dtype) for param in program.params))


NUMBERS: st.SearchStrategy[Arg] = (
    st.sampled_from([math.inf, -math.inf, math.nan, -0.0, 1e-12, -1, 2**63 - 1, -(2**63)])
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False)
)
"""Integers and floats, the odd ones included."""

DEVICES: st.SearchStrategy[Arg] = st.builds(
    Device, st.sampled_from(["cpu", "cuda"]), st.none() | st.integers(0, 7)
)
"""Device literals with and without an index."""

_LITERALS = st.one_of(
    NUMBERS,
    st.sampled_from([None, True, False, ...]),
    st.text("az'\"\\\n{}\0é☃ ", max_size=4),
    st.sampled_from([TorchName(name) for name in sorted(CONSTANT_NAMES)]),
    DEVICES,
)
_KINDS = st.sampled_from(["tuple", "list", "size"])


@cache
def arguments(names: tuple[str, ...]) -> st.SearchStrategy[Arg]:
    """Any argument of an op that reads only `names`."""
    single = st.sampled_from(names).map(Ref) | _LITERALS
    nested = st.builds(Sequence, _KINDS, st.lists(single, max_size=3).map(tuple))
    deep = st.builds(Sequence, _KINDS, st.lists(single | nested, max_size=3).map(tuple))
    return single | deep | slices(names)


@cache
def slices(names: tuple[str, ...]) -> st.SearchStrategy[Arg]:
    """Slices with bounds that are numbers, values or left out."""
    part = st.none() | st.integers(-9, 9) | st.sampled_from(names).map(Ref)
    return st.builds(Slice, part, part, part)


@st.composite
def _ops(draw: st.DrawFn, names: tuple[str, ...], output: str) -> Op:
    value = Ref(draw(st.sampled_from(names)))
    arg = arguments(names)

    def more_args() -> tuple[Arg, ...]:
        return tuple(draw(st.lists(arg, max_size=3)))

    def kwargs() -> tuple[tuple[str, Arg], ...]:
        keys = draw(st.lists(st.sampled_from(_KEYWORDS), unique=True, max_size=2))
        return tuple((key, draw(arg)) for key in keys)

    makes: dict[str, Callable[[], Op]] = {
        "function": lambda: Op(output, draw(st.sampled_from(_FUNCTIONS)), more_args(), kwargs()),
        "method": lambda: Op(
            output, "Tensor." + draw(st.sampled_from(_METHODS)), (value, *more_args()), kwargs()
        ),
        "statement": lambda: Op(None, "Tensor.relu_", (value, *more_args()), kwargs()),
        "left": lambda: Op(output, _operator(draw, BINARY, COMPARE), (value, draw(arg))),
        "right": lambda: Op(output, _operator(draw, BINARY, COMPARE), (draw(arg), value)),
        "unary": lambda: Op(output, _operator(draw, UNARY), (value,)),
        "in place": lambda: Op(value.name, _operator(draw, IN_PLACE), (value, draw(arg))),
        "in place, renamed": lambda: Op(output, _operator(draw, IN_PLACE), (value, draw(arg))),
        "call of an operator": lambda: Op(None, _operator(draw, BINARY), (value, draw(arg))),
        "index": lambda: Op(output, "operator.getitem", (value, draw(arg | slices(names)))),
        "set index": lambda: Op(None, "operator.setitem", (value, draw(arg), draw(arg))),
        "attribute": lambda: Op(output, "getattr", (value, draw(st.sampled_from(_ATTRIBUTES)))),
    }
    return makes[draw(st.sampled_from(sorted(makes)))]()


def _operator(draw: st.DrawFn, *tables: Mapping[type, str]) -> str:
    names = sorted(name for table in tables for name in table.values())
    return "operator." + draw(st.sampled_from(names))


@st.composite
def programs(draw: st.DrawFn, max_ops: int = 8) -> Program:
    """A random straight-line program that reads only what is bound, and returns several values."""
    num_params = draw(st.integers(1, 4))
    annotation = st.sampled_from([None, "torch.Tensor", "torch.SymInt"])
    params = tuple(Param(f"in_{index}", draw(annotation)) for index in range(num_params))
    bound = [param.name for param in params]
    body: list[Statement] = []
    for index in range(draw(st.integers(0, max_ops))):
        kind = draw(st.sampled_from(["op", "op", "op", "alias", "release"]))
        output = draw(st.sampled_from([f"tmp_{index}", f"tmp_{index}", bound[0]]))
        if kind == "op":
            statement: Statement = draw(_ops(tuple(bound), output))
        elif kind == "alias":
            statement = Alias(output, draw(st.sampled_from(bound)))
        else:
            statement = Release(tuple(draw(st.lists(st.sampled_from(bound), max_size=2)) or ["x"]))
            if set(bound) <= set(statement.names):
                continue
        body.append(statement)
        if isinstance(statement, Release):
            bound = [name for name in bound if name not in statement.names]
        elif statement.output is not None and statement.output not in bound:
            bound.append(statement.output)
    outputs = draw(st.lists(st.sampled_from(bound).map(Ref), min_size=1, max_size=3))
    return Program(params, tuple(body), tuple(outputs))


def reads(statement: Statement) -> tuple[str, ...]:
    """The names that a statement reads."""
    if isinstance(statement, Alias):
        return (statement.source,)
    return op_refs(statement) if isinstance(statement, Op) else ()


def writes(statement: Statement) -> tuple[str, ...]:
    """The names that a statement binds or releases."""
    if isinstance(statement, Release):
        return statement.names
    return () if statement.output is None else (statement.output,)


def rename_reads(statement: Statement, names: Mapping[str, str]) -> Statement:
    """The statement with other names for what it reads."""
    if isinstance(statement, Alias):
        return replace(statement, source=names.get(statement.source, statement.source))
    if isinstance(statement, Op):
        args = tuple(_rename(arg, names) for arg in statement.args)
        kwargs = tuple((key, _rename(arg, names)) for key, arg in statement.kwargs)
        return replace(statement, args=args, kwargs=kwargs)
    return statement


def _rename(arg: Arg, names: Mapping[str, str]) -> Arg:
    if isinstance(arg, Ref):
        return Ref(names.get(arg.name, arg.name))
    if isinstance(arg, Sequence):
        return Sequence(arg.kind, tuple(_rename(inner, names) for inner in arg.items))
    if isinstance(arg, Slice):
        return Slice(*(_rename(part, names) for part in (arg.start, arg.stop, arg.step)))
    return arg


def all_names(program: Program) -> list[str]:
    """The names of the arguments and temporaries, sorted."""
    names = {param.name for param in program.params}
    names |= {
        name for statement in program.body for name in (*reads(statement), *writes(statement))
    }
    return sorted(names)


def renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with other names for its arguments and temporaries."""
    body: list[Statement] = []
    for statement in graph.program.body:
        statement = rename_reads(statement, names)
        if isinstance(statement, Release):
            statement = Release(tuple(names[name] for name in statement.names))
        elif statement.output is not None:
            statement = replace(statement, output=names[statement.output])
        body.append(statement)
    params = tuple(replace(param, name=names[param.name]) for param in graph.program.params)
    outputs = tuple(_rename(arg, names) for arg in graph.program.outputs)
    tensors = tuple(replace(spec, name=names[spec.name]) for spec in graph.tensors)
    return Graph(Program(params, tuple(body), outputs), tensors)


def with_alias(program: Program, index: int, name: str) -> Program:
    """The program with `alias = name` before statement `place`, read from there on instead."""
    body = [*program.body[:index], Alias("alias", name)]
    names = {name: "alias"}
    for statement in program.body[index:]:
        body.append(rename_reads(statement, names))
        if name in writes(statement):
            names = {}
    outputs = tuple(_rename(arg, names) for arg in program.outputs)
    return Program(program.params, tuple(body), outputs)


def dead_names(program: Program, index: int) -> list[str]:
    """Names that no statement from `place` on reads, and one that was never bound."""
    later: Iterable[str] = [name for statement in program.body[index:] for name in reads(statement)]
    later = {*later, *(name for arg in program.outputs for name in refs(arg))}
    earlier = {name for statement in program.body[:index] for name in writes(statement)}
    earlier |= {param.name for param in program.params}
    return [*sorted(earlier - later), "never_bound"]


def bound_names(program: Program, index: int) -> list[str]:
    """Names that are bound before statement `place`."""
    bound = {param.name for param in program.params}
    for statement in program.body[:index]:
        if isinstance(statement, Release):
            bound -= set(statement.names)
        else:
            bound |= set(writes(statement))
    return sorted(bound)


def moved_index(shift: int) -> Graph:
    """An embedding by an index within [0, 3], to which a first op adds; a table has 8 rows."""
    program = program_of(
        f"tmp_0 = in_0.add_({shift})",
        "tmp_1 = torch.nn.functional.embedding(tmp_0, in_1)",
        params="in_0, in_1",
        returns="(tmp_1,)",
    )
    index = TensorSpec("in_0", (4,), "int64", min_val=0, max_val=3, role="input")
    return Graph(program, (index, TensorSpec("in_1", (8, 4), "float32")))
