"""Folding: what it covers beside plain alternatives, whether its ranges are valid, how it grows.

Run it with `make bench`, or `python -m benchmarks.folding FOLDER` for a set of captured graphs or a
folder of graph directories, which also runs a sample of the ranges. The alternatives to folding are
plain: windows of a fixed size, random ranges of the sizes that folding finds, and the layers that
the names of parameters tell.
"""

from __future__ import annotations

import random
import re
import sys
import time
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from rich.console import Console

from benchmarks.cutting import Interval, check, graph_of, is_small, read_rows
from benchmarks.subgraph_verification import VerifiedRange
from passnet.data.capture.store import MANIFEST_FILE
from passnet.data.mine.cut import single_assignment
from passnet.data.mine.folding import (
    COVERING,
    FoldingPlan,
    Range,
    alphabet,
    fold,
    ranges,
)
from passnet.data.mine.subgraphs import RangeRefusal
from passnet.errors import PassnetError
from passnet.graph.spec import Graph, Program, op_refs
from passnet.graph.text.files import find_graphs, read_sample
from passnet.pages.tables.tables import Table, print_table

WINDOWS = (8, 16, 32)
ATTEMPTS = 50
GROWTH_OPS = (43_750, 87_500, 175_000, 350_000, 700_000, 1_400_000)
MAX_REPEATED = 1.1
"""Corpora are no larger than this many times the graphs: what is drawn anew is noise."""

NUM_RUN = 200
"""How many ranges of each way are run."""

GRAPHS_RUN = 30
"""From how many graphs, the same for each way, so that every graph is run once."""

UNLIMITED = FoldingPlan(max_length=None, max_patterns=None)
"""All repeats of every length, until nothing repeats."""

PLANS = {
    "as in the published cost: W 10, 10 patterns, under 16 ops": FoldingPlan(10, 10, 4, 16),
    "published: W 64, 16 patterns": FoldingPlan(),
    "published, W unlimited": replace(UNLIMITED, max_patterns=16),
    "bounded, 16 patterns": replace(COVERING, max_patterns=16),
    "bounded, 256 patterns": replace(COVERING, max_patterns=256),
    "bounded, until nothing repeats": COVERING,
}

Tokens = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Way:
    """One way to choose ranges, what it chose, and the time, None where that is no matter."""

    name: str
    num_patterns: int | None
    spans: list[Range]
    wall_s: float | None = None
    cpu_s: float | None = None
    peak_mib: float | None = None


@dataclass
class Sampled:
    """How many ranges of a way were cut, had lost ops at the ends, and had the parent's values."""

    ranges: int = 0
    cut: int = 0
    trimmed: int = 0
    equal: int = 0


def folding_tables(programs: Sequence[Program]) -> list[Table]:
    """What folding finds in some programs beside plain alternatives, and how it grows."""
    sequences, _ = alphabet([[op.target for op in program.ops] for program in programs])
    return [_ways_table(_ways(programs, sequences), sequences, {}), growth_table(sequences)]


def _ways(programs: Sequence[Program], sequences: Tokens) -> list[Way]:
    ways = []
    for name, plan in PLANS.items():
        ways.append(_folded(name, plan, sequences))
        print(f"{name}: {ways[-1].wall_s:.1f} s", file=sys.stderr)
    plain = {f"windows of {size} ops": _windows(sequences, size) for size in WINDOWS}
    plain["random ranges of the same sizes"] = _random(ways[-1].spans, sequences)
    plain["layers by the names of parameters"] = _layers(programs)
    for name, spans in plain.items():
        ways.append(Way(name, None, _repeated(spans, sequences)))
    return ways


def _folded(name: str, plan: FoldingPlan, sequences: Tokens) -> Way:
    wall, cpu = time.perf_counter(), time.process_time()
    folded = fold(sequences, plan)
    spans = list(ranges(folded, plan))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = _peak_mib(lambda: fold(sequences, plan))
    return Way(name, len(folded.patterns), spans, wall, cpu, peak)


def _ways_table(ways: Sequence[Way], sequences: Tokens, sampled: dict[str, Sampled]) -> Table:
    table = Table(
        f"folding {len(sequences)} graphs of {sum(map(len, sequences))} ops",
        ("way", "patterns", "ranges", "distinct", "ops covered %", "wall s", "CPU s", "MiB",
         "sample", "cut %", "trimmed %", "equal %"),
        note="Ranges of 4 to 63 ops whose ops occur at least twice. MiB: the most that numpy and "
        "Python held, measured in a run of its own. sample: ranges of graphs of 4 to 400 ops that "
        "were cut and run; trimmed: those that lost up to 4 ops at their ends for it; equal: of "
        "all in the sample, those that gave the parent's values.",
    )  # fmt: skip
    for way in ways:
        texts = {tuple(sequences[span.sequence][span.start : span.stop]) for span in way.spans}
        table.rows.append(
            (
                way.name,
                "-" if way.num_patterns is None else str(way.num_patterns),
                str(len(way.spans)),
                str(len(texts)),
                f"{100 * coverage(way.spans, sequences):.1f}",
                *("-" if time_s is None else f"{time_s:.2f}" for time_s in (way.wall_s, way.cpu_s)),
                "-" if way.peak_mib is None else f"{way.peak_mib:.0f}",
                *_shares(sampled.get(way.name, Sampled())),
            )
        )
    return table


def coverage(spans: Sequence[Range], sequences: Tokens) -> float:
    """The share of all ops that lie in a range; ranges of one corpus do not overlap."""
    return sum(span.stop - span.start for span in spans) / sum(map(len, sequences))


def _shares(sampled: Sampled) -> tuple[str, ...]:
    if not sampled.ranges:
        return ("-", "-", "-", "-")
    parts = (sampled.cut, sampled.trimmed, sampled.equal)
    return (str(sampled.ranges), *(f"{100 * part / sampled.ranges:.1f}" for part in parts))


def _peak_mib(action: Callable[[], object]) -> float:
    tracemalloc.start()
    action()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def sample_ways(ways: Sequence[Way], graph: Callable[[int], Graph], num: int) -> dict[str, Sampled]:
    """Cut and run ranges of each way, from graphs drawn by chance."""
    rng = random.Random(0)
    numbers = []
    for number in rng.sample(range(num), num):
        if len(numbers) < GRAPHS_RUN and is_small(graph(number)):
            numbers.append(number)
    samples: dict[int, list[tuple[str, Interval]]] = defaultdict(list)
    for way in ways:
        spans = [span for span in way.spans if span.sequence in set(numbers)]
        for span in rng.sample(spans, min(NUM_RUN, len(spans))):
            samples[span.sequence].append((way.name, (span.start, span.stop)))
    sampled = {way.name: Sampled() for way in ways}
    for num_graphs, (number, named_intervals) in enumerate(sorted(samples.items()), start=1):
        print(f"{num_graphs} of {len(samples)} graphs run", end="\r", file=sys.stderr)
        try:
            outcomes = check(graph(number), [interval for _, interval in named_intervals])
        except PassnetError as cause:
            print(f"left out: {cause}", file=sys.stderr)
            continue
        for (name, interval), (num_trimmed, outcome) in zip(named_intervals, outcomes, strict=True):
            _count(sampled[name], num_trimmed, outcome)
            if isinstance(outcome, VerifiedRange) and outcome.status != "equal":
                print(f"{name} {number} {interval}: {outcome}", file=sys.stderr)
    return sampled


def _count(into: Sampled, num_trimmed: int, outcome: RangeRefusal | VerifiedRange) -> None:
    into.ranges += 1
    if isinstance(outcome, VerifiedRange):
        into.cut += 1
        into.trimmed += num_trimmed > 0
        into.equal += outcome.status == "equal"


def growth_table(sequences: Tokens) -> Table:
    """The time of folding of corpora that double, made of graphs drawn by chance."""
    table = Table(
        "growth of folding",
        ("ops", "16 patterns, W unlimited: CPU s", "us an op", "until nothing repeats: patterns",
         "CPU s", "wall s", "us an op", "MiB"),
        note="Each graph is taken once, in an order by chance; where there are no more, they come "
        "again with a tenth of their ops drawn anew.",
    )  # fmt: skip
    most = MAX_REPEATED * sum(map(len, sequences))
    for num_ops in (size for size in GROWTH_OPS if size <= most):
        corpus = _corpus(sequences, num_ops)
        some = _folded("", replace(UNLIMITED, max_patterns=16), corpus)
        every = _folded("", COVERING, corpus)
        assert some.cpu_s is not None and every.cpu_s is not None, "folding is timed"
        table.rows.append(
            (
                str(num_ops),
                f"{some.cpu_s:.2f}",
                f"{1e6 * some.cpu_s / num_ops:.2f}",
                str(every.num_patterns),
                f"{every.cpu_s:.2f}",
                f"{every.wall_s:.2f}",
                f"{1e6 * every.cpu_s / num_ops:.2f}",
                f"{max(some.peak_mib or 0, every.peak_mib or 0):.0f}",
            )
        )
        print(" ".join(table.rows[-1]), file=sys.stderr)
    return table


def _corpus(sequences: Tokens, num_ops: int) -> list[list[int]]:
    rng = random.Random(0)
    highest = max(max(tokens) for tokens in sequences if tokens)
    order = rng.sample(range(len(sequences)), len(sequences))
    corpus: list[list[int]] = []
    size = 0
    while size < num_ops:
        is_again = len(corpus) >= len(order)
        tokens = list(sequences[order[len(corpus) % len(order)]])[: num_ops - size]
        for _ in range(len(tokens) // 10 if is_again else 0):
            tokens[rng.randrange(len(tokens))] = rng.randint(0, highest)
        corpus.append(tokens)
        size += len(tokens)
    return corpus


def _windows(sequences: Tokens, size: int) -> list[Range]:
    return [
        Range(number, start, start + size, -1)
        for number, tokens in enumerate(sequences)
        for start in range(0, len(tokens) - size + 1, size)
    ]


def _random(spans: Sequence[Range], sequences: Tokens) -> list[Range]:
    """As many ranges in each graph, of the same sizes, where chance puts them."""
    rng = random.Random(0)
    placed: list[Range] = []
    used_ops: dict[int, set[int]] = {}
    for span in spans:
        size = span.stop - span.start
        used = used_ops.setdefault(span.sequence, set())
        for _ in range(ATTEMPTS):
            start = rng.randint(0, len(sequences[span.sequence]) - size)
            if used.isdisjoint(range(start, start + size)):
                used |= set(range(start, start + size))
                placed.append(Range(span.sequence, start, start + size, -1))
                break
    return placed


def _layers(programs: Sequence[Program]) -> list[Range]:
    """Ops from the first use of a numbered block's parameters to that of the next block's."""
    spans = []
    for number, aliased in enumerate(programs):
        program = single_assignment(aliased)
        names = {param.name for param in program.params}
        ops = program.ops
        block, start = "", 0
        for index, op in enumerate(ops):
            blocks = [_block(name) for name in op_refs(op) if name in names and _block(name)]
            if blocks and blocks[0] != block:
                spans += [Range(number, start, index, -1)] if block else []
                block, start = blocks[0], index
        spans += [Range(number, start, len(ops), -1)] if block else []
    plan = FoldingPlan()
    return [span for span in spans if plan.min_ops <= span.stop - span.start < plan.max_ops]


def _block(name: str) -> str:
    """The block that a parameter belongs to: its name up to the last module with a number."""
    match = re.match(r".*_modules_\d+_(?=modules)", name)
    return match[0] if match else ""


def _repeated(spans: Sequence[Range], sequences: Tokens) -> list[Range]:
    texts = [tuple(sequences[span.sequence][span.start : span.stop]) for span in spans]
    counts = Counter(texts)
    return [span for span, text in zip(spans, texts, strict=True) if counts[text] > 1]


def main(folder: Path) -> None:
    """The table of ways with a sample of their ranges run, and that of growth."""
    torch.set_num_threads(1)
    if (folder / MANIFEST_FILE).exists():
        rows = read_rows(folder)
        graphs: Callable[[int], Graph] = lambda number: graph_of(rows[number])  # noqa: E731
        num = len(rows)
    else:
        folders = list(find_graphs(folder))
        graphs = lambda number: read_sample(folders[number]).graph  # noqa: E731
        num = len(folders)
    programs = [graphs(number).program for number in range(num)]
    sequences, _ = alphabet([[op.target for op in program.ops] for program in programs])
    ways = _ways(programs, sequences)
    sampled = sample_ways(ways, graphs, num)
    console = Console(width=150)
    print_table(console, _ways_table(ways, sequences, sampled))
    print_table(console, growth_table(sequences))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
