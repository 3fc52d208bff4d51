"""Folding: its time and memory on the public graphs, its growth, and what it covers.

Run it with `make bench`. The alternatives to folding are plain: windows of a fixed size, random
ranges of the sizes that folding finds, and the layers that the names of parameters tell.
"""

from __future__ import annotations

import random
import re
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from passnet.graph.spec import Program, op_refs
from passnet.mine.folding import (
    COVERING,
    UNLIMITED,
    FoldingPlan,
    Range,
    alphabet,
    coverage,
    fold,
    ranges,
)
from passnet.report.tables import Table

WINDOW = 16
ATTEMPTS = 50
GROWTH_OPS = (87_500, 175_000, 350_000, 700_000, 1_400_000)
PLANS = {
    "published: W 64, 16 patterns": FoldingPlan(),
    "published, W unlimited": replace(UNLIMITED, max_patterns=16),
    "bounded, 16 patterns": replace(COVERING, max_patterns=16),
    "bounded, 256 patterns": replace(COVERING, max_patterns=256),
    "bounded, until nothing repeats": COVERING,
}


def folding_tables(programs: Sequence[Program]) -> list[Table]:
    """What folding finds in some programs beside plain alternatives, and how it grows."""
    sequences, _ = alphabet([[op.target for op in item.ops] for item in programs])
    table = Table(
        f"folding {len(programs)} graphs of {sum(map(len, sequences))} ops",
        ("way", "patterns", "ranges", "distinct", "coverage %", "seconds", "MiB"),
        note="Ranges of 4 to 63 ops whose ops occur at least twice. MiB: the most that numpy and "
        "Python held, measured in a run of its own.",
    )
    found: list[Range] = []
    for name, plan in PLANS.items():
        start = time.perf_counter()
        folded = fold(sequences, plan)
        found = list(ranges(folded, plan))
        seconds = time.perf_counter() - start
        size = _peak_mib(lambda plan=plan: fold(sequences, plan))
        table.rows.append(_row(name, len(folded.patterns), found, sequences, seconds, size))
    for name, other in (
        (f"windows of {WINDOW} ops", _windows(sequences)),
        ("random ranges of the same sizes", _random(found, sequences)),
        ("layers by the names of parameters", _layers(programs)),
    ):
        repeated = _repeated(other, sequences)
        table.rows.append(_row(name, 0, repeated, sequences, None, None))
    return [table, _growth(sequences)]


def _row(
    name: str,
    num_patterns: int,
    found: Sequence[Range],
    sequences: Sequence[Sequence[int]],
    seconds: float | None,
    size: float | None,
) -> tuple[str, ...]:
    texts = {tuple(sequences[item.sequence][item.start : item.stop]) for item in found}
    return (
        name,
        str(num_patterns or "-"),
        str(len(found)),
        str(len(texts)),
        f"{100 * coverage(found, sequences):.1f}",
        "-" if seconds is None else f"{seconds:.2f}",
        "-" if size is None else f"{size:.0f}",
    )


def _peak_mib(action: Callable[[], object]) -> float:
    tracemalloc.start()
    action()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def _growth(sequences: Sequence[Sequence[int]]) -> Table:
    """The time of one and of sixteen folds of corpora that double, cut from the public graphs."""
    table = Table(
        "growth of folding, W unlimited",
        ("ops", "1 pattern s", "16 patterns s", "16 patterns, us an op", "MiB"),
        note="Longer corpora repeat the graphs with a tenth of the ops drawn anew.",
    )
    rng = random.Random(0)
    highest = max(max(item) for item in sequences if item)
    for wanted in GROWTH_OPS:
        corpus: list[list[int]] = []
        size = 0
        while size < wanted:
            item = list(rng.choice(sequences))[: wanted - size]
            for _ in range(len(item) // 10):
                item[rng.randrange(len(item))] = rng.randint(0, highest)
            corpus.append(item)
            size += len(item)
        times = []
        for most in (1, 16):
            plan = replace(UNLIMITED, max_patterns=most)
            start = time.perf_counter()
            fold(corpus, plan)
            times.append(time.perf_counter() - start)
        peak = _peak_mib(lambda corpus=corpus: fold(corpus, replace(UNLIMITED, max_patterns=1)))
        micros = f"{1e6 * times[1] / wanted:.2f}"
        cells = (f"{times[0]:.2f}", f"{times[1]:.2f}", micros, f"{peak:.0f}")
        table.rows.append((str(wanted), *cells))
    return table


def _windows(sequences: Sequence[Sequence[int]]) -> list[Range]:
    return [
        Range(number, start, start + WINDOW, -1)
        for number, item in enumerate(sequences)
        for start in range(0, len(item) - WINDOW + 1, WINDOW)
    ]


def _random(found: Sequence[Range], sequences: Sequence[Sequence[int]]) -> list[Range]:
    """As many ranges in each graph, of the same sizes, where chance puts them."""
    rng = random.Random(0)
    placed: list[Range] = []
    taken: dict[int, set[int]] = {}
    for item in found:
        size = item.stop - item.start
        used = taken.setdefault(item.sequence, set())
        for _ in range(ATTEMPTS):
            start = rng.randint(0, len(sequences[item.sequence]) - size)
            if used.isdisjoint(range(start, start + size)):
                used |= set(range(start, start + size))
                placed.append(Range(item.sequence, start, start + size, -1))
                break
    return placed


def _layers(programs: Sequence[Program]) -> list[Range]:
    """Ops from the first use of a numbered block's parameters to that of the next block's."""
    found = []
    for number, program in enumerate(programs):
        names = {item.name for item in program.params}
        block, start = "", 0
        for place, op in enumerate(program.ops):
            blocks = [_block(name) for name in op_refs(op) if name in names and _block(name)]
            if blocks and blocks[0] != block:
                found += [Range(number, start, place, -1)] if block else []
                block, start = blocks[0], place
        found += [Range(number, start, len(program.ops), -1)] if block else []
    plan = FoldingPlan()
    return [item for item in found if plan.min_ops <= item.stop - item.start < plan.max_ops]


def _block(name: str) -> str:
    """The block that a parameter belongs to: its name up to the last module with a number."""
    match = re.match(r".*_modules_\d+_(?=modules)", name)
    return match[0] if match else ""


def _repeated(found: Sequence[Range], sequences: Sequence[Sequence[int]]) -> list[Range]:
    texts = [tuple(sequences[item.sequence][item.start : item.stop]) for item in found]
    counts = Counter(texts)
    return [item for item, text in zip(found, texts, strict=True) if counts[text] > 1]
