"""Ops that few rows of training data hold, and subgraphs with an op exchanged for such a one.

An LLM answers wrongly where an op, or a pair of neighbours, is rare in what it learned
(`baselines/training`). Captured nets hold many ops once or twice; in the place of another op of
its kind, such an op gets new neighbours, and the teacher answers that graph as any other. Only ops
that rows hold already take the place of others.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from passnet.data.mine.literals import with_ops
from passnet.graph.spec import Arg, Graph, Op, Ref
from passnet.graph.spec import Sequence as Several
from passnet_loops.language.prompt import short_name

MAX_AROUND = 8
"""Windows around the places of one rare op in one captured graph."""

_TOTAL = """
    torch.nn.functional.relu torch.nn.functional.relu6 torch.nn.functional.silu torch._C._nn.gelu
    torch.nn.functional.mish torch.nn.functional.hardswish torch.nn.functional.hardsigmoid
    torch.nn.functional.hardtanh torch.nn.functional.elu torch.nn.functional.selu
    torch.nn.functional.celu torch.nn.functional.leaky_relu torch.nn.functional.softsign
    torch._C._nn.softplus torch._C._nn.log_sigmoid torch._C._nn.hardshrink torch._C._nn.softshrink
    torch.sigmoid Tensor.sigmoid torch.tanh Tensor.tanh torch.exp Tensor.exp torch.exp2
    torch.expm1 torch.erf torch.erfc torch.sin torch.cos Tensor.sin Tensor.cos torch.atan
    torch.asinh torch.sinh torch.cosh torch.sinc torch.abs Tensor.abs torch.square Tensor.square
    torch.sign torch.floor torch.ceil torch.round torch.trunc torch.frac operator.neg
"""
"""Functions of one value that are defined for every number."""

_POSITIVE = "torch.rsqrt torch.sqrt Tensor.sqrt torch.log Tensor.log torch.log2 torch.reciprocal"
"""Functions of one value whose captured arguments are positive."""

_PAIRS = (
    "operator.add operator.sub operator.mul torch.maximum torch.minimum torch.atan2 torch.hypot"
)
_COMPARISONS = "operator.gt operator.ge operator.lt operator.le operator.eq operator.ne"
_REDUCTIONS = """
    Tensor.mean Tensor.sum Tensor.amax Tensor.amin Tensor.prod torch.mean torch.sum torch.amax
    torch.amin torch.var Tensor.var torch.std Tensor.std torch.logsumexp Tensor.norm
"""
_POOLS = "torch.nn.functional.max_pool2d torch._C._nn.avg_pool2d"
_ADAPTIVE_POOLS = "torch.nn.functional.adaptive_avg_pool2d torch.nn.functional.adaptive_max_pool2d"

_ALONG = {
    "torch.nn.functional.softmax": "dim", "torch.nn.functional.log_softmax": "dim",
    "torch.nn.functional.normalize": "dim", "torch.cumsum": "dim", "torch.flip": "dims",
}  # fmt: skip
"""Functions that keep the shape and work along a dimension, with the name of that argument."""

_DIMS = (-1, -1, 1, -2)


def _unary(op: Op, target: str, draw: random.Random) -> Op | None:
    if not op.args or not isinstance(op.args[0], Ref):
        return None
    kwargs: tuple[tuple[str, Arg], ...] = ()
    if target in _ALONG:
        dim = draw.choice(_DIMS)
        several = Several("tuple", (dim,)) if _ALONG[target] == "dims" else dim
        kwargs = ((_ALONG[target], several),)
    elif target == "torch.roll":
        kwargs = (("shifts", draw.choice((1, -1, 2))), ("dims", draw.choice(_DIMS)))
    return replace(op, target=target, args=op.args[:1], kwargs=kwargs)


def _binary(op: Op, target: str, draw: random.Random) -> Op | None:
    """Exchange a call of two values; only operators take a number."""
    takes_numbers = target.startswith("operator.")
    is_fit = len(op.args) == 2 and (takes_numbers or all(isinstance(a, Ref) for a in op.args))
    return replace(op, target=target, kwargs=()) if is_fit else None


def _reduction(op: Op, target: str, draw: random.Random) -> Op | None:
    arguments = dict(zip(("input", "dim", "keepdim"), op.args, strict=False)) | dict(op.kwargs)
    dim, keepdim = arguments.get("dim"), arguments.get("keepdim", False)
    if dim is None or type(keepdim) is not bool or not isinstance(arguments.get("input"), Ref):
        return None
    kwargs = (("dim", dim), ("keepdim", keepdim))
    return replace(op, target=target, args=(arguments["input"],), kwargs=kwargs)


def _pool(op: Op, target: str, draw: random.Random, num_args: int) -> Op | None:
    return replace(op, target=target, args=op.args[:num_args], kwargs=())


Exchange: TypeAlias = Callable[[Op, str, random.Random], Op | None]
"""Returns a call of a target in the place of an op; None if it cannot take its arguments."""

_ALL_TOTAL = (*_TOTAL.split(), *_ALONG, "torch.roll", "torch.tril", "torch.triu")
_KINDS: tuple[tuple[Sequence[str], Exchange], ...] = (
    (_ALL_TOTAL, _unary), (_POSITIVE.split(), _unary), (_PAIRS.split(), _binary),
    (_COMPARISONS.split(), _binary), (_REDUCTIONS.split(), _reduction),
    (_POOLS.split(), partial(_pool, num_args=4)),
    (_ADAPTIVE_POOLS.split(), partial(_pool, num_args=2)),
)  # fmt: skip
"""Ops that may stand for each other, and how one is exchanged for another."""

_KIND_OF = {target: kind for kind in _KINDS for target in kind[0]}


@dataclass(frozen=True)
class RareOps:
    """The number of rows that hold each op, by its name in prompts; ops below `limit` are rare."""

    limit: int
    counts: Counter[str]

    @classmethod
    def of_rows(cls, limit: int, op_sequences: Iterable[Sequence[str]]) -> "RareOps":
        """Count the ops of some rows."""
        rare = cls(limit, Counter())
        for sequence in op_sequences:
            rare.add(sequence)
        return rare

    def add(self, op_sequence: Sequence[str]) -> None:
        """Count the ops of one more row."""
        self.counts.update({short_name(target) for target in op_sequence})

    def is_rare(self, target: str) -> bool:
        """Return whether fewer rows than the limit hold an op."""
        return self.counts[short_name(target)] < self.limit

    def spans(
        self, targets: Sequence[str], max_ops: int, draw: random.Random
    ) -> Iterator[tuple[int, int]]:
        """Yield windows (start, stop) of a graph around its rare ops."""
        places: dict[str, list[int]] = {}
        for place, target in enumerate(targets):
            if self.is_rare(target):
                places.setdefault(target, []).append(place)
        for found in places.values():
            for _ in range(MAX_AROUND):
                length = draw.randint(2, max_ops)
                start = max(0, draw.choice(found) - draw.randrange(length))
                yield start, min(len(targets), start + length)

    def exchanged(self, graph: Graph, draw: random.Random) -> Graph | None:
        """Return a graph with up to two ops exchanged, itself with none; None without a rare op."""
        ops = list(graph.program.ops)
        is_found = any(self.is_rare(op.target) for op in ops)
        places = [place for place, op in enumerate(ops) if op.target in _KIND_OF]
        draw.shuffle(places)
        for place in places[: draw.randint(0 if is_found else 1, 2)]:
            targets, exchange = _KIND_OF[ops[place].target]
            others = [
                target
                for target in targets
                if target != ops[place].target and self.counts[short_name(target)]
            ]
            rare = [target for target in others if self.is_rare(target)]
            chosen = rare or (others if is_found and not self.is_rare(ops[place].target) else ())
            if chosen:
                ops[place] = exchange(ops[place], draw.choice(chosen), draw) or ops[place]
        if not any(self.is_rare(op.target) for op in ops):
            return None
        if ops == list(graph.program.ops):
            return graph
        return replace(graph, program=with_ops(graph.program, ops))
