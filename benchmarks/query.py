"""How fast a dataset answers: `python -m benchmarks.query FOLDER [--rows 300000]`.

The rows of a dataset are repeated under other fingerprints, with a line of their own in the text,
so that texts do not shrink more than they would; then filters are timed, each several times.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from passnet.data.dataset.query import BRIEF, COLUMNS, Dataset
from passnet.data.dataset.store import SubgraphRow, write_dataset
from passnet.pages.tables.tables import Table, print_table

FILTERS = (
    "domain = 'cv' and 'fusible' in kinds and num_ops between 4 and 16",
    "num_ops between 4 and 16",
    "list_contains(op_sequence, 'torch.nn.functional.layer_norm') and num_places > 2",
    "\"full\" like '0a1b%'",
)
ANSWERS = ("count", "first 20 rows", "brief columns", "all columns")
REPEATS = 7
STRUCTURE_COPIES = 4


def repeated(rows: list[SubgraphRow], total: int) -> Iterator[SubgraphRow]:
    """So many rows, made of some by changing fingerprints and text."""
    for number in range(total):
        row = rows[number % len(rows)]
        copy = number // len(rows)
        yield replace(
            row,
            full=_other(row.full, copy),
            literals=_other(row.literals, copy),
            structure=_other(row.structure, copy // STRUCTURE_COPIES),
            program=f"{row.program}# {number}\n",
        )


def _other(fingerprint: str, number: int) -> str:
    return hashlib.sha256(f"{fingerprint}{number}".encode()).hexdigest()


def answer(dataset: Dataset, where: str, form: str) -> int:
    """The number of rows, asked for in one of the ways of `ANSWERS`."""
    if form == "count":
        return dataset.count(where)
    if form == "first 20 rows":
        return dataset.table(where, BRIEF, 20).num_rows
    return dataset.table(where, BRIEF if form == "brief columns" else COLUMNS).num_rows


def measure(folder: Path) -> Table:
    """A row for each filter and answer: how many rows, and milliseconds."""
    start = time.perf_counter()
    with Dataset(folder) as dataset:
        opened_ms = 1e3 * (time.perf_counter() - start)
        total = dataset.manifest.num_subgraphs
        table = Table(
            f"{total} rows, {opened_ms:.0f} ms to open",
            ("filter", "answer", "rows", "first ms", "median ms", "least ms"),
            note=f"First: the first of {REPEATS} runs. Each is in a process of its own.",
        )
        for where in FILTERS:
            for form in ANSWERS:
                table.rows.append(_row(dataset, where, form))
    return table


def _row(dataset: Dataset, where: str, form: str) -> tuple[str, ...]:
    times = []
    num_rows = 0
    for _ in range(REPEATS):
        start = time.perf_counter()
        num_rows = answer(dataset, where, form)
        times.append(1e3 * (time.perf_counter() - start))
    values = (times[0], statistics.median(times), min(times))
    return where, form, str(num_rows), *(f"{value:.1f}" for value in values)


def main() -> None:
    """Make the rows in a folder that goes away, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=300_000)
    options = parser.parse_args()
    with Dataset(options.folder) as dataset:
        rows = list(dataset.rows())
    with tempfile.TemporaryDirectory(prefix="passnet-query-") as out:
        copies = sorted(repeated(rows, options.rows), key=lambda row: (row.structure, row.full))
        manifest = write_dataset(Path(out), copies, {})
        size = sum((Path(out) / shard.file).stat().st_size for shard in manifest.shards)
        del copies
        table = measure(Path(out))
        console = Console(width=160)
        print_table(console, table)
        console.print(f"{len(manifest.shards)} files, {size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
