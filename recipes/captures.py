"""The captured graphs: of every net of the catalog in use, and of the smaller ones in training.

Run it with `python recipes/captures.py RUNS captures`; it needs `pip install passnet[catalog]`,
takes a day on two cores, and can be resumed. RUNS has a folder for each library, and one for its
nets in training. Names of libraries after the two folders make these alone. `captures` gets the
graphs of nets in use, and `captures/training` the forward and gradient graphs found in training
alone. Graphs already in `captures` stay, so that a library can be added.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import make_folder
from passnet.core.terminal.progress import progress
from passnet.data.capture.catalog import HUB, resolve
from passnet.data.capture.record import CaptureSettings, NetRecord
from passnet.data.capture.run import graph_files, read_records, run_extract
from passnet.data.capture.store import merged_rows, write_set

IN_USE = CaptureSettings()
IN_TRAINING = CaptureSettings(train=True, backward=True, check=False)

MAX_TRAINED_OPS = 450
"""Nets with more ops in use are not captured in training. Their gradients have two to four times as
many, and with these most nets of the catalog, and all its families of layers, are there."""

TRAINING = "training"


def main(runs: Path, out: Path, libraries: Sequence[str] = (), num_workers: int = 2) -> None:
    """Make the sets `out` and `out/training` from the runs in a folder, after making these."""
    selected = libraries or [name for name in libraries() if name != HUB]
    for library in selected:
        _run(resolve([], [library]), IN_USE, runs / library, num_workers)
    for library in selected:
        records = read_records(runs / library).values()
        small = sorted(record.entry for record in records if _is_trained(record))
        if small:
            _run(small, IN_TRAINING, runs / f"{library}-{TRAINING}", num_workers)
    folders = [folder for folder in sorted(runs.iterdir()) if read_records(folder)]
    merge_kinds([*folders, *_sets(out)], out)


def merge_kinds(folders: Sequence[Path], out: Path) -> None:
    """Write the graphs of some runs and sets; graphs found in training alone get a set of their
    own.
    """
    files, versions = graph_files(folders)
    rows = merged_rows(files)
    for folder, are_used in ((out, True), (out / TRAINING, False)):
        make_folder(folder)
        part = [row for row in rows if (row.kind == "inference") == are_used]
        manifest = write_set(folder, part, versions)
        print(f"{folder}: {manifest.num_graphs} graphs, {manifest.kinds}, {manifest.num_ops} ops")


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


def _sets(out: Path) -> list[Path]:
    return [folder for folder in (out, out / TRAINING) if (folder / "manifest.json").exists()]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
