"""The search as author: it varies the compiler's passes, and keeps the faster ones.

A move changes the kernels of some graphs: tiling, fusion, rounding; for a CPU vector width, threads
and flags of the C++ compiler, for CUDA blocks, warps and the order of a reduction over its rows; or
the bounds of the replaced ranges of ops. It is tried on all graphs of the task at once and kept for
each graph by itself; a change of ranges for all graphs with the same program. First, graphs slower
than in eager torch leave their last op to it, or their first.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import exp, log
from statistics import median
from typing import TypeAlias

from passnet.agent.attempts.session import Session
from passnet.agent.attempts.tools import Submit
from passnet.agent.authors.compiler import CompilePlan, TaskCompiler, evaluate_files, product_files
from passnet.agent.settings import SEARCH_TURNS
from passnet.data.mine.cut import single_assignment
from passnet.graph.text.render import render_program
from passnet.inductor.schedule import TargetDevice
from passnet.passes.codegen.lowered_ranges import Options

NUM_ROUNDS = 3
"""Trials of every setting: the gain may change with the ranges."""
LEAST_GAIN = 1.02
"""The least gain of a move that is kept."""
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
"""Settings of Inductor for precision, vectors, tiles, fusion, reductions and the order of loops."""
THREADS: tuple[Options, ...] = (
    (("cpp.threads", 1),),
    (("cpp.min_chunk_size", 4096),),
    (("cpp.min_chunk_size", 32768),),
)
"""Further settings for more than one thread."""

PRAGMAS = ('#pragma GCC optimize ("unroll-loops")', '#pragma GCC optimize ("fp-contract=off")')

BLOCKS: tuple[tuple[tuple[str, int], ...], ...] = (
    *((("values", size),) for size in (256, 512, 2048, 4096)),
    *((("row", size),) for size in (512, 1024, 4096, 8192)),
    *((("num_warps", count),) for count in (1, 2, 4, 8, 16)),
    *((("num_stages", count),) for count in (1, 2, 4)),
)
"""The choices for launches of Triton, by the fields of `BlockSizes`."""
FolderKey: TypeAlias = tuple[tuple[str, ...], ...]
"""The identity of a folder: the ranges of each graph."""
Change: TypeAlias = Callable[[CompilePlan], CompilePlan]
"""The change of a graph's plan by a move."""


@dataclass(frozen=True, slots=True)
class Move:
    """A change; whether graphs of one program share it; whether it is only for slow graphs."""

    change: Change
    is_shared: bool = False
    is_for_slower: bool = False


def search_author(session: Session, seed: int = 0, budget: int = SEARCH_TURNS) -> None:
    """Write Inductor's kernels, improve them, and submit.

    Products that are given to oneDNN are submitted unchanged. The seed decides the order of moves,
    and the division of ranges; the budget is the number of evaluations after those that make the
    passes correct. Raises AuthorError as the compiler does.
    """
    if files := product_files(session):
        evaluate_files(session, files)
        session.act(Submit())
        return
    search = _Search(TaskCompiler(session), random.Random(seed))
    search.begin()
    for move in search.moves():
        if len(session.evaluations) >= budget - 1:
            break
        search.try_move(move)
    plans = search.compiler.plans
    if len(session.evaluations) < budget and search.folder_key(plans) not in search.evaluated:
        search.compiler.evaluate(plans)
    session.act(Submit())


@dataclass
class _Search:
    compiler: TaskCompiler
    draw: random.Random
    speedups: dict[tuple[int, tuple[str, ...]], list[float]] = field(default_factory=dict)
    evaluated: set[FolderKey] = field(default_factory=set)

    def begin(self) -> None:
        """Start from the compiler's passes, their ranges written out."""
        compiler = self.compiler
        compiler.make_correct()
        compiler.plans = [
            replace(plan, spans=compiler.spans(number, plan))
            for number, plan in enumerate(compiler.plans)
        ]
        if compiler.session.files != compiler.folder(compiler.plans):
            compiler.evaluate(compiler.plans)
        self._record_speedups(compiler.plans)

    def moves(self) -> Iterator[Move]:
        """Yield moves: ops left out of ranges that lose; settings, with other ranges between."""
        for is_last in (True, False):
            yield Move(partial(_without_op, is_last), is_shared=True, is_for_slower=True)
        moves = moves_for(self.compiler.device, self.compiler.num_threads > 1)
        self.draw.shuffle(moves)
        for _ in range(NUM_ROUNDS):
            for move in moves:
                yield move
                if self.draw.random() < 0.5:
                    position, kind = self.draw.random(), self.draw.random()
                    keeps_end = self.draw.random() < 0.5
                    change = partial(_with_spans, position, kind, keeps_end)
                    yield Move(change, is_shared=True)

    def try_move(self, move: Move) -> None:
        """Try a move on all graphs, and keep it where it is faster."""
        compiler = self.compiler
        before = list(compiler.plans)
        key, after = self.folder_key(before), list(before)
        for numbers in self._groups(move.is_shared):
            if not move.is_for_slower or self._gain(numbers, key) < 0:
                for number in numbers:
                    after[number] = self._changed(number, move.change)
        if self.folder_key(after) in self.evaluated or not compiler.evaluate(after):
            return
        self._record_speedups(after)
        keys = key, self.folder_key(after)
        for numbers in self._groups(move.is_shared):
            if self._is_better(numbers, *keys):
                for number in numbers:
                    compiler.plans[number] = after[number]

    def folder_key(self, plans: Sequence[CompilePlan]) -> FolderKey:
        """Return the identity of the folder of some plans."""
        sources = [self.compiler.sources(number, plan) for number, plan in enumerate(plans)]
        return tuple(
            tuple(f"{source.lowered.span}\n{source.text}" for source in ranges)
            for ranges in sources
        )

    def _changed(self, number: int, change: Change) -> CompilePlan:
        """Return the plan of a graph after a change; unchanged if there are no such ranges."""
        before = self.compiler.plans[number]
        if not before.spans:
            return before
        plan = change(before)
        sources = self.compiler.sources(number, plan)
        return plan if sources and len(sources) == len(plan.spans or ()) else before

    def _record_speedups(self, plans: Sequence[CompilePlan]) -> None:
        key = self.folder_key(plans)
        self.evaluated.add(key)
        for number, result in enumerate(self.compiler.results()):
            if result.is_correct and result.speedup is not None:
                self.speedups.setdefault((number, key[number]), []).append(result.speedup)

    def _groups(self, is_shared: bool) -> list[list[int]]:
        """Return the groups of graphs that keep or drop a move together."""
        groups: dict[object, list[int]] = {}
        for number, graph in enumerate(self.compiler.graphs):
            program = render_program(single_assignment(graph.graph.program)) if is_shared else None
            groups.setdefault(program or number, []).append(number)
        return list(groups.values())

    def _gain(self, numbers: list[int], key: FolderKey) -> float:
        speedups_by_graph = [self.speedups.get((number, key[number])) for number in numbers]
        gains = [log(median(speedups)) for speedups in speedups_by_graph if speedups]
        return sum(gains) / len(gains) if gains else 0.0

    def _is_better(self, numbers: Sequence[int], before: FolderKey, after: FolderKey) -> bool:
        gains = []
        for number in numbers:
            old = self.speedups.get((number, before[number]))
            new = self.speedups.get((number, after[number]))
            if not new:
                return False
            gains.append(log(median(new)) - (log(median(old)) if old else -10.0))
        return exp(sum(gains) / len(gains)) > LEAST_GAIN


def moves_for(device: TargetDevice, several_threads: bool = False) -> list[Move]:
    """Return the moves that change settings, in their listed order."""
    changes: list[Change] = [partial(_with_options, options) for options in OPTIONS[device]]
    if device == "cuda":
        changes += [partial(_with_blocks, blocks) for blocks in BLOCKS]
    else:
        changes += [partial(_with_options, options) for options in THREADS if several_threads]
        changes += [partial(_with_pragma, pragma) for pragma in PRAGMAS]
    return [Move(change) for change in changes]


def _with_options(options: Options, plan: CompilePlan) -> CompilePlan:
    return replace(plan, options=tuple({**dict(plan.options), **dict(options)}.items()))


def _with_pragma(pragma: str, plan: CompilePlan) -> CompilePlan:
    return plan if pragma in plan.pragmas else replace(plan, pragmas=(*plan.pragmas, pragma))


def _with_blocks(blocks: tuple[tuple[str, int], ...], plan: CompilePlan) -> CompilePlan:
    return replace(plan, blocks=replace(plan.blocks, **dict(blocks)))


def _without_op(is_last: bool, plan: CompilePlan) -> CompilePlan:
    """Return a plan without the last or first op of its spans; the same plan if it has no other."""
    spans = list(plan.spans or ())
    number = -1 if is_last else 0
    start, stop = spans[number]
    spans[number] = (start, stop - 1) if is_last else (start + 1, stop)
    nonempty = tuple((start, stop) for start, stop in spans if start < stop)
    return replace(plan, spans=nonempty) if nonempty else plan


def _with_spans(position: float, kind: float, keeps_end: bool, plan: CompilePlan) -> CompilePlan:
    """Return a plan with a span divided, shortened or left out, by three draws."""
    spans = list(plan.spans or ())
    longest = max(range(len(spans)), key=lambda number: spans[number][1] - spans[number][0])
    start, stop = spans[longest]
    if len(spans) > 1 and kind < 0.3:
        del spans[int(position * len(spans))]
    elif stop - start > 1:
        middle = start + 1 + int(position * (stop - start - 1))
        halves = [(start, middle), (middle, stop)]
        spans[longest : longest + 1] = halves if kind < 0.7 else [halves[keeps_end]]
    return replace(plan, spans=tuple(spans))
