"""The training suite: 1,200 tasks that share no op sequence and no structure with a benchmark.

Run it with `python -m recipes.train_v1 captures FOLDER [--jobs N]`; it takes hours, and goes on
where it was stopped. FOLDER gets the suite, and in `work` what it is made of:

1. a sample of the captured graphs, of each domain in its share, by turns from each library;
2. a dataset of its fusible subgraphs, as captured and in other dtypes;
3. its rows apart from all suites that ship, earlier versions too;
4. tasks selected and their subgraphs admitted, as for PassBench (docs/suites.md).
"""

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import make_folder
from passnet.core.terminal.progress import late_progress, progress
from passnet.data.capture.store import GRAPHS, read_set, write_set
from passnet.data.dataset.build import BuildSettings, build_dataset
from passnet.data.dataset.splits import SuiteKeys
from passnet.data.dataset.store import MANIFEST_FILE, SUBGRAPHS, read_dataset, write_dataset
from passnet.judge.suite.balance import Shares
from passnet.judge.suite.selection import SelectionPlan
from passnet.judge.suite.suite import read_suite_keys, shipped_suites
from passnet_audit.suites.assembly import AssemblyPlan, AssemblyWork, assemble
from recipes.passbench_v1 import balanced_sample, describe, domain_shares

SUITE = "train-v1"
NUM_TASKS = 1200
NUM_GRAPHS = 400
MAX_OPS = 250
"""Graphs of the sample, and the most ops of one."""

PLAN = AssemblyPlan(
    SelectionPlan(
        "fusible", NUM_TASKS, min_graphs=3, max_graphs=4, min_ops=2, max_mib=8.0, levels_a_bucket=2
    ),
    max_gflops=0.3,
    compiles=False,
)
"""Fewer and smaller graphs a task than a benchmark's, as each is judged many times."""


def main(captures: Path, folder: Path, num_workers: int) -> None:
    """Make the suite."""
    manifest, files = read_set(captures)
    corpus = [row for file in files for row in GRAPHS.read(file)]
    domains = domain_shares(corpus)
    work = folder / "work"
    run = RunPlan(num_workers=num_workers, resume=True)
    make_folder(work / "graphs")
    sample = balanced_sample(corpus, domains, NUM_GRAPHS, MAX_OPS)
    write_set(work / "graphs", sample, manifest.versions)
    with late_progress() as start:
        build_dataset(
            [work / "graphs"],
            work / "data",
            BuildSettings(kinds=("fusible",)),
            run,
            announce=start,
        )
    benchmarks = [name for name in shipped_suites() if not name.startswith("train-")]
    apart(work / "data", work / "rows", [read_suite_keys([name]) for name in benchmarks])
    plan = AssemblyPlan(
        PLAN.selection, PLAN.max_gflops, shares=Shares(domains, fills=True), compiles=PLAN.compiles
    )
    suite = AssemblyWork(
        folder / f"{SUITE}.parquet",
        work / SUITE,
        run,
        partial(progress, "admitting subgraphs"),
    )
    describe(SUITE, assemble(work / "rows", plan, suite).tasks)


def apart(data: Path, out: Path, suites: Sequence[SuiteKeys]) -> None:
    """Write the rows of a dataset that share no op sequence and no structure with some suites."""
    manifest, files = read_dataset(data)
    if (out / MANIFEST_FILE).exists():
        return
    sequences = {ops for suite in suites for ops in suite.sequences}
    structures = {structure for suite in suites for structure in suite.structures}
    rows = [
        row
        for file in files
        for row in SUBGRAPHS.read(file)
        if row.op_sequence not in sequences and row.structure not in structures
    ]
    make_folder(out)
    write_dataset(out, rows, manifest.versions)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("captures", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    words = parser.parse_args()
    main(words.captures, words.folder, words.jobs)
