"""What is left to gain in whole nets: their times beside those of their products alone.

Run it with `python -m benchmarks.optimize_bounds RECORDS`, the records of `benchmarks.optimize`,
on the machine and with the threads of those. Of each net the floating-point operations of products,
convolutions and attention are counted, and divided by the rate of the fastest product of two
matrices of float32 (the best of some sizes, by eager torch and by oneDNN with a matrix packed). A
net that does all of them at that rate, and all else in no time, is as many times as fast as eager
torch as the column `bound` says. An algorithm that needs fewer operations (Winograd's, for
convolutions of 3 x 3) can be faster than that.
"""

import json
import math
import statistics
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.optimize import returned_ms
from passnet.core.records.serialise import decode
from passnet.data.capture.catalog import build_entry
from passnet.data.capture.net import input_values
from passnet.data.capture.recapture import resized_value
from passnet.optimizer.record import OptimizedRecord
from passnet.pages.tables.tables import Table, markdown, print_table

SIZES = (512, 1024, 1536, 2048)
SECONDS = 2.0
"""Sides of the products, and how long each is repeated."""


def fastest_rate() -> float:
    """Floating-point operations a second of the fastest product."""
    rates = []
    for size in SIZES:
        left, right = torch.randn(size, size), torch.randn(size, size)
        packed = torch.ops.mkldnn._reorder_linear_weight(right, size)
        by_onednn = partial(torch.ops.mkldnn._linear_pointwise, left, packed, None, "none", [], "")
        for product in (partial(torch.mm, left, right), by_onednn):
            shortest, until = math.inf, time.perf_counter() + SECONDS
            while time.perf_counter() < until:
                start = time.perf_counter()
                product()
                shortest = min(shortest, time.perf_counter() - start)
            rates.append(2 * size**3 / shortest)
    return max(rates)


def operations(entry: str, batch: int | None) -> int:
    """Floating-point operations of the products in one call of a net."""
    net = build_entry(entry)
    args, kwargs = input_values(
        net, partial(resized_value, sizes={"batch": batch} if batch else {})
    )
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        net.module(*args, **kwargs)
    return counter.get_total_flops()


def row(record: Mapping[str, object], rate: float) -> tuple[str, float, int, float, float]:
    """The net, its milliseconds in eager torch, its operations, its bound, and its speedup with
    weights that will not change.
    """
    entry, batch = str(record["entry"]), record.get("batch")
    [form] = decode(json.dumps(record["record"]), OptimizedRecord).forms
    times = [returned_ms(engine, is_frozen=True) for engine in form.engines]
    own = min(ms for ms in times if ms is not None)
    count = operations(entry, int(str(batch)) if batch else None)
    return entry, form.eager_ms, count, form.eager_ms / (1e3 * count / rate), form.eager_ms / own


def main(path: Path) -> None:
    """Print a row for each net, and the geometric means."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    measured = [record for record in records if "record" in record]
    torch.set_num_threads(measured[0]["threads"])
    rate = fastest_rate()
    rows = [row(record, rate) for record in measured]
    table = Table(
        f"What is left to gain, at {rate / 1e9:.0f} GFLOP/s",
        (
            "net",
            "eager ms",
            "GFLOP",
            "GFLOP/s in eager torch",
            "bound",
            "optimize, frozen",
            "share",
        ),
    )
    for entry, eager_ms, count, bound, speedup in rows:
        table.rows.append((
            entry, f"{eager_ms:.3f}", f"{count / 1e9:.2f}", f"{count / eager_ms / 1e6:.0f}",
            f"{bound:.2f}", f"{speedup:.2f}", f"{speedup / bound:.2f}",
        ))  # fmt: skip
    bounds, speedups = ([each[index] for each in rows] for index in (3, 4))
    means = [math.exp(statistics.fmean(map(math.log, values))) for values in (bounds, speedups)]
    below = sum(bound < 2 for bound in bounds)
    table.rows.append(("geometric mean", "", "", "", *(f"{mean:.2f}" for mean in means), ""))
    note = f"{len(rows)} nets, of {below} of which the bound is below 2."
    table = Table(table.title, table.heads, table.rows, note)
    print_table(Console(width=150), table)
    path.with_name(f"{path.stem}-bounds.md").write_text(markdown([table]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
