"""Ranges of ops cut out as graphs with their live inputs and outputs."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from passnet.data.mine.literals import map_arg, map_op
from passnet.errors import CutError
from passnet.graph.spec import Alias, Arg, Graph, Op, Param, Program, Ref, TensorSpec, op_refs, refs
from passnet.graph.values.effects import (
    AliasClasses,
    alias_classes,
    first_values,
    has_state,
    last_name,
    written_results,
    written_values,
)
from passnet.graph.values.fake import SYMBOL_ANNOTATION, ValueShape, infer_shapes


def single_assignment(program: Program) -> Program:
    """Return the program without aliases and hints, with a unique name for every value."""
    names = {param.name: param.name for param in program.params}
    used = dict.fromkeys(names, 0)
    body: list[Op] = []
    for statement in program.body:
        if isinstance(statement, Alias):
            names[statement.output] = names[statement.source]
        elif isinstance(statement, Op):
            op = map_op(statement, partial(_renamed, names=names))
            if op.output is not None:
                names[op.output] = _unused_name(op.output, used)
                op = replace(op, output=names[op.output])
            body.append(op)
    outputs = tuple(map_arg(arg, partial(_renamed, names=names)) for arg in program.outputs)
    return Program(program.params, tuple(body), outputs)


def _renamed(arg: Arg, names: Mapping[str, str]) -> Arg:
    return Ref(names[arg.name]) if isinstance(arg, Ref) else arg


def _unused_name(stem: str, used: dict[str, int]) -> str:
    """Return the first unused name of `stem`, `stem_1`, ...; `used` has the last numbers."""
    name = stem
    while name in used:
        used[stem] += 1
        name = f"{stem}_{used[stem]}"
    used[name] = 0
    return name


def inferred_specs(graph: Graph) -> dict[str, TensorSpec]:
    """Return the specs of a `single_assignment` graph's tensors, but for unknown sizes.

    Values that `as_strided` reads past their strides, which specs do not hold, are left out too,
    and so are values that are read after an in-place op has changed their shape.
    """
    specs = {spec.name: spec for spec in graph.tensors}
    classes = alias_classes(graph.program.ops)
    by_strides = {
        classes.find(name)
        for op in graph.program.ops
        if last_name(op.target).rstrip("_") == "as_strided"
        for name in first_values(op)
    }
    made = infer_shapes(graph)
    for op, shapes in zip(graph.program.ops, made, strict=True):
        if op.output is None or len(shapes) != 1 or shapes[0].is_part:
            continue
        shape, dtype, stride = shapes[0].shape, shapes[0].dtype, shapes[0].stride
        is_lost = stride is not None and classes.find(op.output) in by_strides
        if shape is not None and dtype is not None and -1 not in shape and not is_lost:
            specs[op.output] = TensorSpec(op.output, shape, dtype)
    reshaped = _read_after_reshape(graph.program, specs, made, classes)
    return {name: spec for name, spec in specs.items() if name not in reshaped}


def _read_after_reshape(
    program: Program,
    specs: Mapping[str, TensorSpec],
    made: Sequence[Sequence[ValueShape]],
    classes: AliasClasses,
) -> set[str]:
    """Return the values that are read after an op has changed their shape, or may have."""
    shapes = {name: spec.shape for name, spec in specs.items()}
    births = {op.output: index for index, op in enumerate(program.ops)}
    last_reads = {name: index for index, op in enumerate(program.ops) for name in op_refs(op)}
    last_reads |= {name: len(program.ops) for arg in program.outputs for name in refs(arg)}
    names: set[str] = set()
    for index, (op, results) in enumerate(zip(program.ops, made, strict=True)):
        shape = results[0].shape if len(results) == 1 else None
        for written in written_results(op):
            if shape is None or shapes.get(written, shape) == shape:
                continue
            shapes[written] = shape
            names |= {
                name
                for name in specs
                if births.get(name, -1) < index < last_reads.get(name, -1)
                and classes.find(name) == classes.find(written)
            }
    return names


@dataclass(frozen=True, slots=True)
class Parent:
    """A program ready for cuts; see `parent_of`. `needed_until` is the index after the last op that
    reads a name, past all for an output; `shielded` ops stand where another op has switched a
    state.
    """

    ops: tuple[Op, ...]
    reads: tuple[tuple[str, ...], ...]
    needed_until: Mapping[str, int]
    shielded: frozenset[int]
    symbols: frozenset[str]
    specs: Mapping[str, TensorSpec]


def parent_of(program: Program, specs: Mapping[str, TensorSpec]) -> Parent:
    """Prepare a program from `single_assignment` for cuts; `specs` are of its tensors by name."""
    ops = program.ops
    reads = tuple(op_refs(op) for op in ops)
    until = {name: index for index, names in enumerate(reads, start=1) for name in names}
    until.update({name: len(ops) + 1 for arg in program.outputs for name in refs(arg)})
    symbols = {param.name for param in program.params if param.annotation == SYMBOL_ANNOTATION}
    return Parent(ops, reads, until, _shielded(ops), frozenset(symbols), specs)


def _shielded(ops: Sequence[Op]) -> frozenset[int]:
    shielded, depths = set(), {"vmap": 0, "autocast": 0}
    entered: dict[str | None, bool] = {}
    for index, op in enumerate(ops):
        name = last_name(op.target)
        if name == "_vmap_increment_nesting":
            depths["vmap"] += 1
        elif name == "_vmap_decrement_nesting":
            depths["vmap"] -= 1
        elif name == "_enter_autocast":
            # _enter_autocast(device, dtype, enabled, cache)
            enabled = op.args[2] if len(op.args) > 2 else dict(op.kwargs).get("enabled", True)
            entered[op.output] = enabled is not False
            depths["autocast"] += entered[op.output]
        elif name == "_exit_autocast":
            depths["autocast"] -= entered.get(next(iter(op_refs(op)), None), False)
        elif any(depths.values()):
            shielded.add(index)
    return frozenset(shielded)


def cut_range(parent: Parent, start: int, stop: int) -> Graph:
    """Cut the ops [start, stop) of a program out as a graph.

    Raises:
        CutError: the range is empty or out of bounds; it writes into a value made outside it; a
            value that crosses the cut is no tensor; or a state is switched inside or around it.
    """
    num_ops = len(parent.ops)
    if not 0 <= start < stop <= num_ops:
        raise CutError(f"range [{start}, {stop}) is not within the {num_ops} ops of the graph")
    ops = parent.ops[start:stop]
    outputs = dict.fromkeys(op.output for op in ops if op.output is not None)
    read = dict.fromkeys(name for names in parent.reads[start:stop] for name in names)
    live_in = [name for name in read if name not in outputs]
    live_out = [name for name in outputs if parent.needed_until.get(name, 0) > stop]
    if not live_out:
        raise CutError(f"range [{start}, {stop}) makes no value that is used after it")
    _check_effects(ops, live_in, start)
    if not parent.shielded.isdisjoint(range(start, stop)):
        raise CutError(f"range [{start}, {stop}) lies where another op switches a state")
    for name in (*live_in, *live_out):
        if name not in parent.specs:
            what = "is no tensor, or is read past its strides or after a change of its shape"
            raise CutError(f"range [{start}, {stop}): {name} crosses the cut and {what}")
    return _graph(parent, ops, live_in, live_out)


def trimmed_range(
    parent: Parent, start: int, stop: int, max_trimmed: int, min_ops: int
) -> tuple[int, int] | None:
    """Return the longest range inside [start, stop) that can be cut; None without. It has at least
    `min_ops` ops and loses at most `max_trimmed`, of equally long ones the fewest in front.
    """
    for num_trimmed in range(min(max_trimmed, stop - start - min_ops) + 1):
        for front in range(num_trimmed + 1):
            trimmed = (start + front, stop - num_trimmed + front)
            with suppress(CutError):
                cut_range(parent, *trimmed)
                return trimmed
    return None


def _check_effects(ops: Sequence[Op], live_in: Sequence[str], start: int) -> None:
    for index, op in enumerate(ops, start):
        if has_state(op.target):
            raise CutError(f"op {index} ({op.target}) switches a state")
    classes = alias_classes(ops)
    outside = {classes.find(name) for name in live_in}
    for index, op in enumerate(ops, start):
        for name in written_values(op):
            if classes.find(name) in outside:
                raise CutError(f"op {index} ({op.target}) writes into {name}, made outside")


_NAMED = ("name", "original_name")
"""Keys of an argument's spec that every cut sets."""


def _graph(parent: Parent, ops: Sequence[Op], live_in: list[str], live_out: list[str]) -> Graph:
    names = {name: f"in_{index}" for index, name in enumerate(live_in)}
    names |= {op.output: f"tmp_{index}" for index, op in enumerate(ops) if op.output is not None}
    renamed = partial(_renamed, names=names)
    params, tensors = [], []
    for name in live_in:
        spec = parent.specs[name]
        keys = (*_NAMED, *(key for key in spec.keys if key not in _NAMED))
        tensors.append(replace(spec, name=names[name], original_name=name, keys=keys))
        params.append(Param(names[name], SYMBOL_ANNOTATION if name in parent.symbols else None))
    body = [replace(map_op(op, renamed), output=names.get(op.output or ""), line=0) for op in ops]
    outputs = tuple(Ref(names[name]) for name in live_out)
    return Graph(Program(tuple(params), tuple(body), outputs), tuple(tensors))
