"""The fusion plan of one lowering against the kernels of every prefix: how often equal, how fast.

Run it with `make bench`, or `python -m benchmarks.fusion SUITE` for the graphs of another suite.
Both stop before code is made, so that the ratio is of lowerings alone.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

from rich.console import Console

from passnet.dataset.suite import load_suite
from passnet.errors import PassnetError
from passnet.mine.fusion import fusion_plan, prefix_kernels
from passnet.mine.ranges import fusible_ranges
from passnet.report.tables import Table, print_table


def fusion_table(suite_name: str = "demo") -> Table:
    """A line a task: graphs, prefixes, how many counts and ranges are equal, and the times."""
    heads = ("task", "graphs", "prefixes", "equal counts", "graphs with equal counts",
             "graphs with equal ranges", "one plan s", "prefixes s", "ratio")  # fmt: skip
    table = Table(
        "fusion plan of one lowering, and lowering every prefix",
        heads,
        note="Counts: K(P) of a prefix of P ops. Ranges: the fusible ranges that follow.",
    )
    total: Counter[str] = Counter()
    for task in load_suite(suite_name).tasks:
        found: Counter[str] = Counter()
        for item in task.graphs:
            try:
                fusion_plan(item.graph)  # what is loaded on first use is not to be timed
                start = time.perf_counter()
                mine = fusion_plan(item.graph).num_kernels()
                middle = time.perf_counter()
                theirs = prefix_kernels(item.graph)
                end = time.perf_counter()
            except PassnetError as cause:
                print(f"{item.name}: {cause}", file=sys.stderr)
                found["failed"] += 1
                continue
            known = [(one, other) for one, other in zip(mine, theirs, strict=True)
                     if other is not None]  # fmt: skip
            equal = sum(one == other for one, other in known)
            ranges = [fusible_ranges([pair[side] for pair in known]) for side in (0, 1)]
            found.update(
                graphs=1,
                prefixes=len(known),
                counts=equal,
                whole=int(equal == len(known)),
                ranges=int(ranges[0] == ranges[1]),
            )
            found["plan_us"] += int(1e6 * (middle - start))
            found["prefix_us"] += int(1e6 * (end - middle))
        total.update(found)
        table.rows.append(_row(task.name, found))
    table.rows.append(_row("all", total))
    return table


def _row(name: str, found: Counter[str]) -> tuple[str, ...]:
    ratio = found["prefix_us"] / found["plan_us"] if found["plan_us"] else 0.0
    return (
        name,
        str(found["graphs"]),
        str(found["prefixes"]),
        str(found["counts"]),
        str(found["whole"]),
        str(found["ranges"]),
        f"{found['plan_us'] / 1e6:.1f}",
        f"{found['prefix_us'] / 1e6:.1f}",
        f"{ratio:.1f}",
    )


if __name__ == "__main__":
    print_table(Console(width=150), fusion_table(*sys.argv[1:2]))
