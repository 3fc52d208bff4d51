"""Cut a range of ops out of a graph, as a graph of its own with its live inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
import torch.fx

from passnet.errors import CutError
from passnet.graph.build import build
from passnet.graph.effects import (
    SHARES_ALL,
    AliasClasses,
    has_state,
    last_name,
    may_alias,
    writes_first,
)
from passnet.graph.fake import SYMBOL_ANNOTATION, infer_shapes
from passnet.graph.spec import (
    Alias,
    Arg,
    Graph,
    Op,
    Param,
    Program,
    Ref,
    Release,
    Slice,
    TensorSpec,
    op_refs,
    refs,
)
from passnet.graph.spec import Sequence as Items


def single_assignment(program: Program) -> Program:
    """The same program without aliases and hints, every value under a name of its own.

    The result of an in-place operator gets a name of its own too (`y = operator.iadd(x, z)`).
    """
    names = {item.name: item.name for item in program.params}
    taken = set(names)
    body: list[Op] = []
    for item in program.body:
        if isinstance(item, Alias):
            names[item.output] = names[item.source]
        elif not isinstance(item, Release):
            args = tuple(_rename(arg, names) for arg in item.args)
            kwargs = tuple((key, _rename(arg, names)) for key, arg in item.kwargs)
            output = item.output
            if output is not None:
                output = _free(item.output or "", taken)
                names[item.output or ""] = output
            body.append(replace(item, output=output, args=args, kwargs=kwargs))
    outputs = tuple(_rename(arg, names) for arg in program.outputs)
    return Program(program.params, tuple(body), outputs)


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def _rename(arg: Arg, names: Mapping[str, str]) -> Arg:
    if isinstance(arg, Ref):
        return Ref(names[arg.name])
    if isinstance(arg, Items):
        return Items(arg.kind, tuple(_rename(item, names) for item in arg.items))
    if isinstance(arg, Slice):
        return Slice(*(_rename(part, names) for part in (arg.start, arg.stop, arg.step)))
    return arg


def observe(graph: Graph, values: Sequence[object]) -> dict[str, TensorSpec]:
    """What every tensor of a graph in single-assignment form looks like when it runs on `values`.

    Args:
        graph: its program must come from `single_assignment`.
        values: one tensor or number for each argument.
    """
    from passnet.extract.capture import describe

    names = [op.output for op in graph.program.ops]
    seen = {item.name: item for item in graph.tensors}

    class Recorder(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> object:
            result = super().run_node(n)
            if "custom" in n.meta and isinstance(result, torch.Tensor):
                name = names[n.meta["custom"]["op"]]
                if name is not None:
                    seen[name] = describe(name, result)
            return result

    with torch.no_grad():
        Recorder(build(graph.program)).run(*values)
    return seen


def infer(graph: Graph) -> dict[str, TensorSpec]:
    """The same as `observe`, from shapes and dtypes alone: no statistics of what ops make.

    Values whose size depends on others' values are left out.

    Args:
        graph: its program must come from `single_assignment`.

    Raises:
        GraphError: an op refuses the shapes it is given.
    """
    seen = {item.name: item for item in graph.tensors}
    for op, shapes in zip(graph.program.ops, infer_shapes(graph), strict=True):
        known = shapes[0] if len(shapes) == 1 else None
        if op.output is None or known is None or known.shape is None or known.dtype is None:
            continue
        if -1 not in known.shape:
            keys = ("name", "shape", "dtype", "device", "mean", "std", "data")
            seen[op.output] = TensorSpec(op.output, known.shape, known.dtype, keys=keys)
    return seen


def cut(program: Program, start: int, stop: int, seen: Mapping[str, TensorSpec]) -> Graph:
    """The ops [start, stop) of a program as a graph.

    Args:
        program: in single-assignment form.
        start: index of the first op among `program.ops`.
        stop: index after the last one.
        seen: specs of the values, from `observe` or `infer`.

    Raises:
        CutError: the range is empty or out of bounds; it writes into a value made outside it; a
            value that crosses the cut is no tensor; or a state is switched inside.
    """
    ops = program.ops
    if not 0 <= start < stop <= len(ops):
        raise CutError(f"range [{start}, {stop}) is not within the {len(ops)} ops of the graph")
    inside = ops[start:stop]
    made = {op.output for op in inside if op.output is not None}
    live_in = list(dict.fromkeys(name for op in inside for name in op_refs(op) if name not in made))
    later = {name for op in ops[stop:] for name in op_refs(op)}
    later |= {name for arg in program.outputs for name in refs(arg)}
    live_out = [op.output for op in inside if op.output in later]
    if not live_out:
        raise CutError(f"range [{start}, {stop}) makes no value that is used after it")
    _check_effects(inside, live_in, start)
    for name in (*live_in, *live_out):
        if name not in seen:
            raise CutError(f"range [{start}, {stop}): {name} crosses the cut and is no tensor")
    names = [name for name in live_out if name is not None]
    symbols = {item.name for item in program.params if item.annotation == SYMBOL_ANNOTATION}
    return _graph(inside, live_in, names, seen, symbols)


def _check_effects(inside: tuple[Op, ...], live_in: list[str], start: int) -> None:
    classes = AliasClasses()
    for index, op in enumerate(inside, start=start):
        if has_state(op.target):
            raise CutError(f"op {index} ({op.target}) switches a state")
        written = _written(op)
        shared = [*written, *(_first(op) if may_alias(op.target) else ())]
        if op.output is not None:
            classes.join([op.output, *shared])
    outside = {classes.find(name) for name in live_in}
    for index, op in enumerate(inside, start=start):
        for name in _written(op):
            if classes.find(name) in outside:
                raise CutError(f"op {index} ({op.target}) writes into {name}, made outside")


def _first(op: Op) -> tuple[str, ...]:
    """The values in the first argument of a call, or all of them where it is no plain one.

    It is none in `f(input=x)`, `einsum("ij->ji", x)` and `broadcast_tensors(x, y)`.
    """
    is_plain = op.args and last_name(op.target) not in SHARES_ALL
    return refs(op.args[0]) if is_plain else op_refs(op)


def _written(op: Op) -> tuple[str, ...]:
    """The values that a call writes into."""
    kwargs = dict(op.kwargs)
    first = _first(op) if writes_first(op.target, kwargs) else ()
    return (*first, *refs(kwargs.get("out")))


def _graph(
    inside: tuple[Op, ...],
    live_in: list[str],
    live_out: list[str],
    seen: Mapping[str, TensorSpec],
    symbols: set[str],
) -> Graph:
    names = {name: f"in_{index}" for index, name in enumerate(live_in)}
    for index, op in enumerate(inside):
        if op.output is not None:
            names[op.output] = f"tmp_{index}"
    body = []
    for op in inside:
        body.append(
            Op(
                None if op.output is None else names[op.output],
                op.target,
                tuple(_rename(arg, names) for arg in op.args),
                tuple((key, _rename(arg, names)) for key, arg in op.kwargs),
            )
        )
    params = tuple(
        Param(names[name], SYMBOL_ANNOTATION if name in symbols else None) for name in live_in
    )
    tensors = tuple(
        replace(
            seen[name],
            name=names[name],
            original_name=name,
            keys=("name", "original_name", *(key for key in seen[name].keys if key != "name")),
        )
        for name in live_in
    )
    return Graph(
        Program(params, tuple(body), tuple(Ref(names[name]) for name in live_out)), tensors
    )
