"""Replacement of references and literals in a program."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from passnet.errors import GraphError
from passnet.graph.spec import Arg, Graph, Op, Program, Ref, Sequence, Slice


def map_arg(arg: Arg, change: Callable[[Arg], Arg]) -> Arg:
    """Return an argument with `change` applied to its leaves: all but sequences and slices."""
    if isinstance(arg, Sequence):
        return Sequence(arg.kind, tuple(map_arg(part, change) for part in arg.items))
    if isinstance(arg, Slice):
        return Slice(*(map_arg(part, change) for part in (arg.start, arg.stop, arg.step)))
    return change(arg)


def map_op(op: Op, change: Callable[[Arg], Arg]) -> Op:
    """Return an op with its arguments changed; see `map_arg`."""
    kwargs = tuple((name, map_arg(arg, change)) for name, arg in op.kwargs)
    return replace(op, args=tuple(map_arg(arg, change) for arg in op.args), kwargs=kwargs)


def with_ops(program: Program, ops: Iterable[Op]) -> Program:
    """Return a program with its ops replaced one by one."""
    following = iter(ops)
    body = (next(following) if isinstance(line, Op) else line for line in program.body)
    return replace(program, body=tuple(body))


def adopt_literals(graph: Graph, base: Graph, variant: Graph) -> Graph:
    """Return a graph with the literals that differ between captures of its net in two dtypes.
    `base` is in the dtype of `graph`, which has the same ops, at any sizes.

    Raises:
        GraphError: the ops differ, or a literal of the graph depends on its sizes as well.
    """
    ops = [version.program.ops for version in (graph, base, variant)]
    if len({tuple(op.target for op in part) for part in ops}) != 1:
        raise GraphError("the graphs have other ops; literals of one are no literals of the other")
    return Graph(with_ops(graph.program, map(_adopt_in_op, *ops)), graph.tensors)


def _adopt_in_op(op: Op, base: Op, variant: Op) -> Op:
    versions = (op, base, variant)
    if len({(len(call.args), *(name for name, _ in call.kwargs)) for call in versions}) != 1:
        raise GraphError(f"{op.target}: called with other arguments in another capture")
    args = map(_adopt_in_arg, op.args, base.args, variant.args)
    values = map(_adopt_in_arg, *([arg for _, arg in call.kwargs] for call in versions))
    names = (name for name, _ in op.kwargs)
    return replace(op, args=tuple(args), kwargs=tuple(zip(names, values, strict=True)))


def _adopt_in_arg(arg: Arg, base: Arg, variant: Arg) -> Arg:
    if isinstance(arg, Ref) or base == variant:
        return arg
    if isinstance(arg, Sequence) and isinstance(base, Sequence) and isinstance(variant, Sequence):
        if len(arg.items) == len(base.items) == len(variant.items):
            parts = map(_adopt_in_arg, arg.items, base.items, variant.items)
            return Sequence(arg.kind, tuple(parts))
    elif isinstance(arg, Slice) and isinstance(base, Slice) and isinstance(variant, Slice):
        bounds = [(part.start, part.stop, part.step) for part in (arg, base, variant)]
        return Slice(*map(_adopt_in_arg, *bounds))
    elif arg == base:
        return variant
    raise GraphError(f"literal {arg!r} depends on sizes and on the dtype: {base!r}, {variant!r}")
