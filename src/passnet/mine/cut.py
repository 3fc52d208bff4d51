"""Cut a range of ops out of a graph, as a graph of its own with its live inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

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
    from passnet.graph.from_tensor import spec_from_tensor

    names = [op.output for op in graph.program.ops]
    seen = {item.name: item for item in graph.tensors}

    class Recorder(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> object:
            result = super().run_node(n)
            if "custom" in n.meta and isinstance(result, torch.Tensor):
                name = names[n.meta["custom"]["op"]]
                if name is not None:
                    seen[name] = spec_from_tensor(name, result)
            return result

    with torch.no_grad():
        Recorder(build(graph.program)).run(*values)
    return seen


_TUPLE_MAKERS = frozenset(
    ["split", "split_with_sizes", "unsafe_split", "chunk", "unsafe_chunk", "unbind", "tensor_split"]
    + ["hsplit", "vsplit", "dsplit", "broadcast_tensors", "meshgrid", "align_tensors"]
)
"""Last names of calls that make a tuple, even if of one tensor."""


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
        is_one = len(shapes) == 1 and last_name(op.target) not in _TUPLE_MAKERS
        known = shapes[0] if is_one else None
        if op.output is None or known is None or known.shape is None or known.dtype is None:
            continue
        if -1 not in known.shape:
            keys = ("name", "shape", "dtype", "device", "mean", "std", "data")
            seen[op.output] = TensorSpec(op.output, known.shape, known.dtype, keys=keys)
    return seen


@dataclass(frozen=True, slots=True)
class Parent:
    """A program in single-assignment form, as ranges are cut out of it; see `parent_of`.

    `reads` are the names that each op reads; `needed_until` is the index after the last op that
    reads a name, or past all of them for what the program returns; `shielded` are the ops between
    a switch of state and the one back, where they mean something else.
    """

    ops: tuple[Op, ...]
    reads: tuple[tuple[str, ...], ...]
    needed_until: Mapping[str, int]
    shielded: frozenset[int]
    symbols: frozenset[str]
    seen: Mapping[str, TensorSpec]


def parent_of(program: Program, seen: Mapping[str, TensorSpec]) -> Parent:
    """What every cut of a program needs, found once.

    Args:
        program: in single-assignment form.
        seen: specs of the values, from `observe` or `infer`.
    """
    ops = program.ops
    reads = tuple(op_refs(op) for op in ops)
    until = {name: index for index, names in enumerate(reads, start=1) for name in names}
    until.update({name: len(ops) + 1 for arg in program.outputs for name in refs(arg)})
    symbols = {item.name for item in program.params if item.annotation == SYMBOL_ANNOTATION}
    return Parent(ops, reads, until, _shielded(ops), frozenset(symbols), seen)


def _shielded(ops: Sequence[Op]) -> frozenset[int]:
    """The ops inside vmap, or inside autocast where that is on."""
    found, open_states = set(), {"vmap": 0, "autocast": 0}
    entered: dict[str | None, bool] = {}
    for index, op in enumerate(ops):
        name = last_name(op.target)
        if name == "_vmap_increment_nesting":
            open_states["vmap"] += 1
        elif name == "_vmap_decrement_nesting":
            open_states["vmap"] -= 1
        elif name == "_enter_autocast":
            entered[op.output] = _is_on(op)
            open_states["autocast"] += entered[op.output]
        elif name == "_exit_autocast":
            open_states["autocast"] -= entered.get(next(iter(op_refs(op)), None), False)
        elif any(open_states.values()):
            found.add(index)
    return frozenset(found)


def _is_on(op: Op) -> bool:
    """Whether a call `_enter_autocast(device, dtype, enabled, cache)` switches autocast on."""
    enabled = op.args[2] if len(op.args) > 2 else dict(op.kwargs).get("enabled", True)
    return enabled is not False


def cut(program: Program, start: int, stop: int, seen: Mapping[str, TensorSpec]) -> Graph:
    """One range of a program as a graph; for many, see `cut_range`."""
    return cut_range(parent_of(program, seen), start, stop)


def cut_range(parent: Parent, start: int, stop: int) -> Graph:
    """The ops [start, stop) of a program as a graph.

    Args:
        parent: from `parent_of`.
        start: index of the first op.
        stop: index after the last one.

    Raises:
        CutError: the range is empty or out of bounds; it writes into a value made outside it; a
            value that crosses the cut is no tensor; or a state is switched inside or around it.
    """
    num_ops = len(parent.ops)
    if not 0 <= start < stop <= num_ops:
        raise CutError(f"range [{start}, {stop}) is not within the {num_ops} ops of the graph")
    inside = parent.ops[start:stop]
    made = [op.output for op in inside if op.output is not None]
    known = set(made)
    read = dict.fromkeys(name for names in parent.reads[start:stop] for name in names)
    live_in = [name for name in read if name not in known]
    live_out = [name for name in made if parent.needed_until.get(name, 0) > stop]
    if not live_out:
        raise CutError(f"range [{start}, {stop}) makes no value that is used after it")
    _check_effects(inside, live_in, start)
    if not parent.shielded.isdisjoint(range(start, stop)):
        raise CutError(f"range [{start}, {stop}) lies where another op switches a state")
    for name in (*live_in, *live_out):
        if name not in parent.seen:
            raise CutError(f"range [{start}, {stop}): {name} crosses the cut and is no tensor")
    return _graph(inside, live_in, live_out, parent)


def trim(parent: Parent, start: int, stop: int, most: int, min_ops: int) -> tuple[int, int] | None:
    """The longest range inside [start, stop) that can be cut; None where there is none.

    Of equally long ones the one that loses fewest ops in front. It helps where a tuple is made on
    one side of the cut and taken apart on the other.

    Args:
        parent: from `parent_of`.
        start: index of the first op.
        stop: index after the last one.
        most: how many ops may be lost.
        min_ops: how many ops have to be left.
    """
    for lost in range(min(most, stop - start - min_ops) + 1):
        for front in range(lost + 1):
            chosen = (start + front, stop - lost + front)
            with suppress(CutError):
                cut_range(parent, *chosen)
                return chosen
    return None


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


_INPLACE_PLACE = {
    **dict.fromkeys(("relu", "relu6", "silu", "selu", "mish", "hardswish", "hardsigmoid"), 1),
    **dict.fromkeys(("elu", "celu", "leaky_relu"), 2),
    **dict.fromkeys(("hardtanh", "threshold", "_threshold", "alpha_dropout"), 3),
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "dropout3d"), 3),
    "feature_alpha_dropout": 3,
    "rrelu": 4,
}
"""The place of `inplace` among the arguments of functions of torch.nn.functional, by last name.

Source: their signatures in torch 2.13."""


def _written(op: Op) -> tuple[str, ...]:
    """The values that a call writes into."""
    kwargs = dict(op.kwargs)
    place = _INPLACE_PLACE.get(last_name(op.target), len(op.args))
    if op.target.startswith("torch.nn.functional.") and len(op.args) > place:
        kwargs["inplace"] = op.args[place]
    first = _first(op) if writes_first(op.target, kwargs) else ()
    return (*first, *refs(kwargs.get("out")))


def _graph(
    inside: tuple[Op, ...],
    live_in: list[str],
    live_out: list[str],
    parent: Parent,
) -> Graph:
    seen = parent.seen
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
        Param(names[name], SYMBOL_ANNOTATION if name in parent.symbols else None)
        for name in live_in
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
