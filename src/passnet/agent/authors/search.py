"""The search as author: begins with what the compiler writes, varies it, and keeps what is faster.

A move changes how the kernels of some graphs are made: tiling, fusion, rounding; for a CPU vector
width, threads and flags of the C++ compiler, for CUDA blocks, warps and how a reduction goes over
its rows; or where the ranges of ops that are replaced begin and end. It is tried on all graphs of
the task at once and kept for each graph by itself; a change of ranges is kept for all graphs with
the same program, since patterns do not see shapes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from statistics import median
from typing import Any, TypeAlias

from passnet.agent.authors.folder_text import Written
from passnet.agent.authors.lowered_ranges import Options, Span
from passnet.agent.authors.task_compiler import TaskCompiler, Way
from passnet.agent.session import Session
from passnet.agent.tools import Submit
from passnet.graph.render import render_program
from passnet.mine.cut import single_assignment
from passnet.mine.schedule import TargetDevice

BUDGET = 12

NUM_ROUNDS = 3
"""How often every setting is tried: what gains may change with the ranges."""

LEAST_GAIN = 1.02
"""What a move must gain to be kept."""

OPTIONS: dict[TargetDevice, tuple[Options, ...]] = {
    "cpu": (
        (("emulate_precision_casts", False),),
        (("cpp.simdlen", 256),),
        (("cpp.simdlen", 1),),
        (("cpp.enable_tiling_heuristics", False),),
        (("cpp.enable_loop_tail_vec", False),),
        (("max_fusion_size", 1),),
        (("realize_reads_threshold", 1), ("realize_cpu_opcount_threshold", 2)),
        (("realize_reads_threshold", 64), ("realize_cpu_opcount_threshold", 1000)),
        (("pick_loop_orders", False),),
    ),
    "cuda": (
        (("emulate_precision_casts", False),),
        (("triton.persistent_reductions", False),),
        (("split_reductions", False),),
        (("online_softmax", False),),
        (("triton.max_tiles", 1),),
        (("triton.prefer_nd_tiling", True),),
        (("max_fusion_size", 1),),
        (("force_pointwise_cat", True),),
        (("realize_reads_threshold", 1), ("realize_opcount_threshold", 2)),
        (("realize_reads_threshold", 64), ("realize_opcount_threshold", 1000)),
        (("pick_loop_orders", False),),
    ),
}
"""Settings of Inductor that change precision, vectors, tiles, fusion, reductions and the order of
loops."""

THREADS: tuple[Options, ...] = (
    (("cpp.threads", 1),),
    (("cpp.min_chunk_size", 4096),),
    (("cpp.min_chunk_size", 32768),),
)
"""More of them, where there is more than one thread."""

PRAGMAS = (
    '#pragma GCC optimize ("unroll-loops")',
    '#pragma GCC optimize ("fp-contract=off")',
)

BLOCKS: tuple[tuple[tuple[str, int], ...], ...] = (
    *((("values", size),) for size in (256, 512, 2048, 4096)),
    *((("row", size),) for size in (512, 1024, 4096, 8192)),
    *((("num_warps", count),) for count in (1, 2, 4, 8, 16)),
    *((("num_stages", count),) for count in (1, 2, 4)),
)
"""What the launches of Triton are chosen from, by the fields of `Blocks`."""

State: TypeAlias = tuple[tuple[str, ...], ...]
"""What tells one folder from another: the pieces of each graph."""

Change: TypeAlias = Callable[[int, Way], Way]
"""What a move makes of the way of a graph, by its number."""


@dataclass(frozen=True, slots=True)
class Move:
    """A change, and whether graphs with the same program must make it together."""

    change: Change
    is_shared: bool = False


def search_author(session: Session, seed: int = 0, budget: int = BUDGET) -> None:
    """Write what Inductor generates, improve it, and submit.

    Args:
        session: with the task.
        seed: of the order of moves, and of where ranges are divided.
        budget: evaluations, at most, but for those that it takes to be correct.

    Raises:
        AuthorError: as the compiler.
    """
    search = _Search(TaskCompiler(session), random.Random(seed))
    search.begin()
    for move in search.moves():
        if len(session.evaluations) >= budget - 1:
            break
        search.attempt(move)
    search.end(budget)
    session.act(Submit())


@dataclass
class _Search:
    """The state of a search: what was measured of each way of each graph."""

    compiler: TaskCompiler
    draw: random.Random
    speedups: dict[tuple[int, tuple[str, ...]], list[float]] = field(default_factory=dict)
    evaluated: set[State] = field(default_factory=set)

    def begin(self) -> None:
        """Start from what the compiler writes, its ranges written out."""
        compiler = self.compiler
        compiler.make_correct()
        compiler.ways = [
            replace(way, spans=compiler.spans(number)) for number, way in enumerate(compiler.ways)
        ]
        if not compiler.is_written(compiler.ways):
            compiler.evaluate(compiler.ways)
        self._keep_measured(compiler.ways)

    def end(self, budget: int) -> None:
        """Evaluate what was found best, unless that is what an evaluation was of."""
        ways = self.compiler.ways
        is_left = len(self.compiler.session.evaluations) < budget
        if is_left and self._state(ways) not in self.evaluated:
            self.compiler.evaluate(ways)

    def moves(self) -> Iterator[Move]:
        """All settings in a drawn order, and between them ranges divided, shortened, left out."""
        several = self.compiler.num_threads > 1
        changes = moves_for(self.compiler.device, several)
        self.draw.shuffle(changes)
        for _ in range(NUM_ROUNDS):
            for change in changes:
                yield change
                if self.draw.random() < 0.5:
                    yield Move(self._with_spans(), is_shared=True)

    def attempt(self, move: Move) -> None:
        """Try a move on all graphs, and keep it where it is faster."""
        compiler = self.compiler
        before = list(compiler.ways)
        tried = [
            self._valid(number, move.change(number, way), way) for number, way in enumerate(before)
        ]
        if self._state(tried) in self.evaluated or not compiler.evaluate(tried):
            return
        self._keep_measured(tried)
        for numbers in self._units(move.is_shared):
            if self._is_better(numbers, before, tried):
                for number in numbers:
                    compiler.ways[number] = tried[number]

    def _valid(self, number: int, way: Way, before: Way) -> Way:
        """A way, or the one before where not all of its pieces can be made."""
        written = self.compiler.written(number, way)
        return way if written and len(written) == len(way.spans or ()) else before

    def _sources(self, number: int, way: Way) -> tuple[str, ...]:
        return tuple(_named(item) for item in self.compiler.written(number, way))

    def _state(self, ways: Sequence[Way]) -> State:
        return tuple(self._sources(number, way) for number, way in enumerate(ways))

    def _keep_measured(self, ways: Sequence[Way]) -> None:
        """Note the speedups of the last evaluation, which was of these ways."""
        self.evaluated.add(self._state(ways))
        for number, item in enumerate(self.compiler.results()):
            key = (number, self._sources(number, ways[number]))
            if item.is_correct and item.speedup is not None:
                self.speedups.setdefault(key, []).append(item.speedup)

    def _units(self, is_shared: bool) -> list[list[int]]:
        """The graphs for which a move is kept or dropped together."""
        graphs = self.compiler.graphs
        if not is_shared:
            return [[number] for number in range(len(graphs))]
        groups: dict[str, list[int]] = {}
        for number, item in enumerate(graphs):
            text = render_program(single_assignment(item.graph.program))
            groups.setdefault(text, []).append(number)
        return list(groups.values())

    def _is_better(
        self, numbers: Sequence[int], before: Sequence[Way], after: Sequence[Way]
    ) -> bool:
        """Whether some graphs are all correct and faster on the whole than they were."""
        gains = []
        for number in numbers:
            old = self.speedups.get((number, self._sources(number, before[number])))
            new = self.speedups.get((number, self._sources(number, after[number])))
            if not new:
                return False
            gains.append(log(median(new)) - (log(median(old)) if old else -10.0))
        return exp(sum(gains) / len(gains)) > LEAST_GAIN

    def _with_spans(self) -> Change:
        """A span divided, shortened or left out, the same for graphs with the same program."""
        place, kind, side = self.draw.random(), self.draw.random(), self.draw.random() < 0.5

        def change(_: int, way: Way) -> Way:
            spans = list(way.spans or ())
            longest = max(range(len(spans)), key=lambda item: spans[item][1] - spans[item][0])
            start, stop = spans[longest]
            if len(spans) > 1 and kind < 0.3:
                del spans[int(place * len(spans))]
            elif stop - start > 1:
                middle = start + 1 + int(place * (stop - start - 1))
                halves: list[Span] = [(start, middle), (middle, stop)]
                spans[longest : longest + 1] = halves if kind < 0.7 else [halves[side]]
            return replace(way, spans=tuple(spans))

        return change


def moves_for(device: TargetDevice, several_threads: bool = False) -> list[Move]:
    """The moves that change settings, in the order in which they are written down."""
    moves = [Move(_with_options(item)) for item in OPTIONS[device]]
    if device == "cuda":
        return moves + [Move(_with_blocks(item)) for item in BLOCKS]
    moves += [Move(_with_options(item)) for item in (THREADS if several_threads else ())]
    return moves + [Move(_with_pragma(item)) for item in PRAGMAS]


def _with_options(options: Options) -> Change:
    def change(_: int, way: Way) -> Way:
        changed: dict[str, Any] = {**dict(way.options), **dict(options)}
        return replace(way, options=tuple(changed.items()))

    return change


def _with_pragma(pragma: str) -> Change:
    def change(_: int, way: Way) -> Way:
        if pragma in way.pragmas:
            return way
        return replace(way, pragmas=(*way.pragmas, pragma))

    return change


def _with_blocks(blocks: tuple[tuple[str, int], ...]) -> Change:
    def change(_: int, way: Way) -> Way:
        return replace(way, blocks=replace(way.blocks, **dict(blocks)))

    return change


def _named(item: Written) -> str:
    """What tells one piece of a graph from another."""
    return f"{item.piece.span}\n{item.source}"
