"""The smallest captured graphs by eager torch, torch.compile, AOTInductor and `passnet.optimize`.

Run it with `python -m benchmarks.small_graphs [RECORDS [NUM_GRAPHS]]`, 60 graphs by default. Of the
smallest forward graphs of `captures/` (by the elements of their arguments, each structure once)
that take at most 1 ms in eager torch some are drawn, with a seed; on one thread. What is done is
kept in the file RECORDS and not done again. Where guards take longer than the kernels, what is
gained is most of all the guards.
"""

import json
import logging
import math
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from benchmarks.cutting import graph_of
from passnet.api import optimize_calls
from passnet.core.terminal.progress import progress
from passnet.data.capture.store import GRAPHS, GraphRow
from passnet.graph.fx.build import build
from passnet.graph.values.cost import torch_arguments
from passnet.optimizer.settings import OptimizeSettings
from passnet.pages.tables.tables import Table, markdown, print_table

NUM_SMALLEST = 450
"""Of which about 300 take at most `MAX_MS`."""

NUM_GRAPHS = 60
MAX_MS = 1.0
SEED = 20261123
WAYS = ("compile", "graph", "aot")


def smallest() -> list[GraphRow]:
    """The smallest graphs, each structure once, of which some are drawn."""
    rows: dict[str, tuple[int, GraphRow]] = {}
    for path in sorted(Path("captures").glob("*.parquet")):
        for row in GRAPHS.read(path):
            source = row.sources[0]
            if source.part == "forward" and not source.train and len(row.op_sequence) >= 2:
                size = sum(math.prod(spec["shape"]) for spec in json.loads(row.tensors))
                if row.structure not in rows or size < rows[row.structure][0]:
                    rows[row.structure] = (size, row)
    return [row for _, row in sorted(rows.values(), key=lambda each: (each[0], each[1].full))]


def measure(row: GraphRow) -> dict[str, object]:
    """The milliseconds of each way for one graph; or why there are none: it takes longer than
    `MAX_MS` ("slow"), or cannot run.
    """
    graph = graph_of(row)
    try:
        module = build(graph.program)
        arguments = torch_arguments(graph, "fresh", SEED)
        with torch.no_grad():
            module(*arguments)
            start = time.perf_counter()
            module(*arguments)
            if (time.perf_counter() - start) * 1e3 > MAX_MS:
                return {"full": row.full, "slow": True}
        settings = OptimizeSettings(backends=WAYS, threads=1, seconds=0.4)
        [form] = optimize_calls(module.eval(), [(arguments, {})], settings).record.forms
    except Exception as error:  # noqa: BLE001 (boundary: graphs of others may raise anything)
        return {"full": row.full, "error": str(error)[:200]}
    times = {engine.engine: engine.plain_ms or engine.ms for engine in form.engines}
    return {"full": row.full, "entry": row.sources[0].entry, "num_ops": len(row.op_sequence),
            "chosen": form.chosen, "optimize": form.ms, **times}  # fmt: skip


def table_of(records: list[dict[str, object]]) -> Table:
    """Geometric means of the speedups."""
    table = Table("The smallest captured graphs, one thread", ("over", "graphs", "geometric mean",
                  "worst", "slower by 2 %"))  # fmt: skip
    done = [record for record in records if "optimize" in record]
    for name in ("eager", *WAYS):
        shares = [record[name] / record["optimize"] for record in done if record.get(name)]  # type: ignore[operator]
        if shares:
            table.rows.append((
                name,
                str(len(shares)),
                f"{math.exp(statistics.fmean(map(math.log, shares))):.2f}",
                f"{min(shares):.2f}",
                str(sum(share < 0.98 for share in shares)),
            ))  # fmt: skip
    failed = len(records) - len(done)
    chosen = {name: sum(record["chosen"] == name for record in done) for name in ("eager", *WAYS)}
    note = ", ".join(f"{name} chosen for {count}" for name, count in chosen.items())
    return Table(table.title, table.heads, table.rows, f"{note}; {failed} could not be run.")


def main(records: Path, count: int) -> None:
    """Measure what is not yet measured, and print the table."""
    logging.disable(logging.WARNING)
    rows = smallest()[:NUM_SMALLEST]
    done = {}
    if records.exists():
        for line in records.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            done[record["full"]] = record
    order = np.random.default_rng(SEED).permutation(len(rows)).tolist()
    chosen: list[dict[str, object]] = []
    with progress("small graphs", count) as step, records.open("a", encoding="utf-8") as file:
        for row in (rows[number] for number in order):
            if len(chosen) == count:
                break
            if row.full not in done:
                done[row.full] = measure(row)
                file.write(json.dumps(done[row.full]) + "\n")
                file.flush()
            if "slow" not in done[row.full]:
                chosen.append(done[row.full])
                step(row.sources[0].entry)
    table = table_of(chosen)
    print_table(Console(width=120), table)
    records.with_suffix(".md").write_text(markdown([table]), encoding="utf-8")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        Path(given[0] if given else "runs/small_graphs.jsonl"),
        int(given[1]) if len(given) > 1 else NUM_GRAPHS,
    )
