"""The captured graphs: of every net of the catalog in use, and of the smaller ones in training.

Run it with `python recipes/captures.py RUNS captures`; it needs `pip install passnet[catalog]`,
takes some days on two cores, and can be resumed. RUNS has a folder for each library, and one for
its nets in training. Names of libraries after the two folders make these alone. `--merge` in their
place captures nothing, and `--repack` writes the files of both sets anew.

`captures` gets the graphs of nets in use, `captures/training` the forward and gradient graphs found
in training alone. Shards that are there stay as they are: new graphs go into further ones.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.parquet import write_shards
from passnet.core.records.serialise import make_folder, write_json
from passnet.core.terminal.progress import progress
from passnet.data.capture.catalog import HUB, libraries, resolve
from passnet.data.capture.record import CaptureSettings, NetRecord
from passnet.data.capture.run import graph_files, read_records, run_extract
from passnet.data.capture.store import (
    GRAPHS,
    MANIFEST_FILE,
    SHARD_NAME,
    GraphRow,
    Manifest,
    merged_rows,
    read_set,
    text_bytes,
    write_set,
)

IN_USE = CaptureSettings()
IN_TRAINING = CaptureSettings(train=True, backward=True, check=False)

MAX_TRAINED_OPS = 450
"""Nets with more ops in use are not captured in training. Their gradients have two to four times as
many, and with these most nets of the catalog, and all its families of layers, are there."""

TRAINING = "training"
MERGE, REPACK = "--merge", "--repack"


def main(runs: Path, out: Path, names: Sequence[str] = (), num_workers: int = 2) -> None:
    """Capture libraries into runs in a folder, and add their graphs to the sets of `out`."""
    for library in selected(names):
        _run(resolve([], [library]), IN_USE, runs / library, num_workers)
    for library in selected(names):
        records = read_records(runs / library).values()
        small = sorted(record.entry for record in records if _is_trained(record))
        if small:
            _run(small, IN_TRAINING, runs / f"{library}-{TRAINING}", num_workers)
    merge_kinds([folder for folder in sorted(runs.glob("*/")) if read_records(folder)], out)
    if REPACK in names:
        repack(out)
        repack(out / TRAINING)


def selected(names: Sequence[str]) -> list[str]:
    """Return the libraries to capture: those named, none to merge only, else the whole catalog."""
    if {MERGE, REPACK} & {*names}:
        return []
    return list(names) or [name for name in libraries() if name != HUB]


def merge_kinds(folders: Sequence[Path], out: Path) -> None:
    """Add the graphs of some runs to the set of nets in use, and to the set of those found in
    training alone; graphs that either set has stay where they are.
    """
    files, versions = graph_files(folders)
    sets = (out, out / TRAINING)
    known = {full for folder in sets for full, _ in _fingerprints(folder)}
    rows = [row for row in merged_rows(files) if row.full not in known]
    for folder in sets:
        part = [row for row in rows if (row.kind == "inference") == (folder == out)]
        manifest = add_rows(folder, part, versions)
        print(f"{folder}: {manifest.num_graphs} graphs, {manifest.kinds}, {manifest.num_ops} ops")


def add_rows(folder: Path, rows: Sequence[GraphRow], versions: dict[str, list[str]]) -> Manifest:
    """Add new graphs to a set as further shards, similar ones side by side."""
    make_folder(folder)
    if not (folder / MANIFEST_FILE).exists():
        return write_set(folder, sorted(rows, key=_likeness), versions)
    manifest, _ = read_set(folder)
    if not rows:
        return manifest
    structures = {structure for _, structure in _fingerprints(folder)}
    rows = sorted(rows, key=_likeness)
    shards = write_shards(folder, SHARD_NAME, rows, GRAPHS, text_bytes, manifest.shards)
    known = manifest.versions
    manifest = replace(
        manifest,
        num_graphs=manifest.num_graphs + len(rows),
        num_structures=len(structures | {row.structure for row in rows}),
        num_ops=manifest.num_ops + sum(len(row.op_sequence) for row in rows),
        num_sources=manifest.num_sources + sum(len(row.sources) for row in rows),
        versions={
            name: sorted({*known.get(name, ()), *versions.get(name, ())})
            for name in sorted({*known, *versions})
        },
        shards=shards,
        kinds=dict(sorted((Counter(manifest.kinds) + Counter(r.kind for r in rows)).items())),
    )
    write_json(folder / MANIFEST_FILE, manifest)
    return manifest


def repack(folder: Path) -> Manifest:
    """Write the files of a set anew, with similar graphs side by side."""
    manifest, files = read_set(folder)
    rows = [row for file in files for row in GRAPHS.read(file)]
    return write_set(folder, sorted(rows, key=_likeness), manifest.versions)


def _likeness(row: GraphRow) -> tuple[str, str, int]:
    """Order graphs so that similar texts are neighbours, which shrinks files by a third."""
    source = row.sources[0]
    return source.part, source.entry, source.number


def _fingerprints(folder: Path) -> list[tuple[str, str]]:
    """Return the fingerprints of a set's graphs, with and without sizes; none before it exists."""
    if not (folder / MANIFEST_FILE).exists():
        return []
    columns = ["full", "structure"]
    tables = [pq.read_table(file, columns=columns) for file in read_set(folder)[1]]
    return [(row["full"], row["structure"]) for table in tables for row in table.to_pylist()]


def _run(entries: Sequence[str], settings: CaptureSettings, folder: Path, num_workers: int) -> None:
    with progress(f"capturing nets for {folder.name}", len(entries)) as step:
        run_extract(
            entries,
            settings,
            folder,
            RunPlan(num_workers=num_workers, resume=True, progress=lambda net: step(net.entry)),
        )


def _is_trained(record: NetRecord) -> bool:
    num_ops = sum(graph.num_ops for graph in record.graphs)
    return record.status == "captured" and num_ops <= MAX_TRAINED_OPS


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
