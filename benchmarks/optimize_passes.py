"""What passes add to whole nets: the library's and the compiler's, beside what torch has.

Run it with `python -m benchmarks.optimize_passes [RECORDS [NUM_NETS]]`. Nets are the first of
`optimize_nets.txt` whose call takes less than `MAX_MS` in eager torch on one thread (ranges of
others take longer to judge than they have), each in a process of its own that has `BUDGET_S`
seconds for building and judging. What is done is kept in the file RECORDS and not done again.
"""

import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import torch
from rich.console import Console

from benchmarks.optimize import BUDGET_S, Request, drawn, folder_of, measure
from passnet.core.records.serialise import decode
from passnet.core.terminal.progress import progress
from passnet.data.capture.catalog import build_entry
from passnet.data.capture.net import input_values
from passnet.optimizer.record import BackendRecord, OptimizedRecord
from passnet.pages.tables.tables import Table, markdown, print_table

NUM_NETS = 8
MAX_MS = 100.0
AUTHORS = ("library", "compiler")
LIMIT_S = 2 * BUDGET_S

READING = ("compile", "graph", "aot")
READING_PASSES = ("passes", "passes_compiled", "aot_passes")
FOLDING = ("aot_frozen",)
FOLDING_PASSES = ("aot_passes_frozen",)
BACKENDS = READING + FOLDING + READING_PASSES + FOLDING_PASSES
"""Ways that read weights at each call and such that fold them in, without passes and with them."""


def eager_ms(entry: str) -> float:
    """Milliseconds of the shorter of two calls in eager torch, on one thread."""
    torch.set_num_threads(1)
    net = build_entry(entry)
    args, kwargs = input_values(net)
    seconds = []
    with torch.no_grad():
        for _ in range(3):  # the first one warms up
            start = time.perf_counter()
            net.module(*args, **kwargs)
            seconds.append(time.perf_counter() - start)
    return 1e3 * min(seconds[1:])


def quick(entries: Sequence[str]) -> Iterator[str]:
    """Those whose call is short enough."""
    return (entry for entry in entries if eager_ms(entry) < MAX_MS)


def table_of(records: Sequence[dict[str, object]]) -> Table:
    """A row for each net: its speedups over eager torch, and in how many places passes stand."""
    heads = ("net", "eager ms", "best without passes", "with passes", "over it",
             "folded, without", "folded, with", "places")  # fmt: skip
    table = Table("Whole nets with passes, speedup over eager torch", heads)
    gains: dict[int, list[float]] = {}
    for record in records:
        if "record" not in record:
            empty = ("–" for _ in heads[2:])
            table.rows.append((str(record["entry"]), str(record["error"])[:60], *empty))
            continue
        [form] = decode(json.dumps(record["record"]), OptimizedRecord).forms
        ways = {engine.engine: engine for engine in form.engines}
        plain, passes = (_fastest(ways, names) for names in (READING, READING_PASSES))
        folded, both = (_fastest(ways, names) for names in (FOLDING, FOLDING_PASSES))
        shares = [form.eager_ms / ms for ms in (plain, passes)]
        columns = [*shares, plain / passes, form.eager_ms / folded, form.eager_ms / both]
        for index, share in enumerate(columns):
            if math.isfinite(share) and share > 0:
                gains.setdefault(index, []).append(share)
        places = sum(each.num_chosen for each in form.ranges)
        shown = [f"{share:.2f}" if share > 0 else "–" for share in columns]
        table.rows.append((str(record["entry"]), f"{form.eager_ms:.3f}", *shown, str(places)))
    if gains:
        means = [f"{math.exp(statistics.fmean(map(math.log, gains[index])))  :.2f}"
                 for index in sorted(gains)]  # fmt: skip
        table.rows.append(("geometric mean", "", *means, ""))
    return table


def _fastest(ways: dict[str, BackendRecord], names: Sequence[str]) -> float:
    """Milliseconds of the fastest of some ways, infinity if there is none: as torch itself calls
    what it has, as the returned net calls passes; folded weights not compared.
    """
    found = [ways[name].plain_ms or ways[name].ms for name in names if name in ways]
    return min((ms for ms in found if ms), default=math.inf)


def main(records: Path, count: int) -> None:
    """Measure what is not yet measured, and print the table."""
    done: dict[str, dict[str, object]] = {}
    if records.exists():
        lines = map(json.loads, records.read_text(encoding="utf-8").splitlines())
        done = {line["entry"]: line for line in lines}
    chosen = list(islice(quick(drawn()), count))
    with progress("optimising nets", len(chosen)) as step, records.open("a") as file:
        for entry in chosen:
            if entry not in done:
                folder = folder_of(records, entry)
                done[entry] = measure(Request(entry, 1, folder, 0, BACKENDS, AUTHORS), LIMIT_S)
                file.write(json.dumps(done[entry]) + "\n")
                file.flush()
            step(entry)
    table = table_of([done[entry] for entry in chosen])
    print_table(Console(width=150), table)
    records.with_suffix(".md").write_text(markdown([table]), encoding="utf-8")


if __name__ == "__main__":
    records, count = (
        *sys.argv[1:],
        *("runs/optimize_passes.jsonl", str(NUM_NETS))[len(sys.argv) - 1 :],
    )
    main(Path(records), int(count))
