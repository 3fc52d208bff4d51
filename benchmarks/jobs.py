"""Whether getting tasks ready side by side changes what is timed: runs with one job and with two.

Run it with `python -m benchmarks.jobs [SUITE [NUM_ROUNDS]]`, by default `demo-small` and two. Runs
of both kinds follow each other in turn, of the same candidates, so that the ratio of their speedups
is an A/A comparison.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from rich.console import Console

from passnet.bench.run import run_suite
from passnet.core.jobs.run_plan import RunPlan
from passnet.judge.desk.candidates import parse_candidate
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.suite.suite import Suite, load_suite
from passnet.pages.tables.tables import Table, print_table

CANDIDATES = ("null", "null@direct")
JOBS = (1, 2)
SECONDS = 0.2


def timed_run(suite: Suite, num_jobs: int, out: Path) -> tuple[dict[tuple[str, str], float], float]:
    """The logarithm of every speedup by graph and candidate, and the seconds that the run took."""
    settings = RunSettings(JudgeSettings(timing=TimingPlan(seconds=SECONDS)))
    entries = [parse_candidate(name, suite.tasks) for name in CANDIDATES]
    start = time.perf_counter()
    trials = run_suite(suite, entries, settings, out, RunPlan(num_workers=num_jobs))
    wall_s = time.perf_counter() - start
    return {(trial.graph, trial.candidate): math.log(trial.speedup)
            for trial in trials if trial.speedup is not None}, wall_s  # fmt: skip


def main() -> None:
    """Print the table."""
    suite = load_suite(sys.argv[1] if len(sys.argv) > 1 else "demo-small")
    num_rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    logs: dict[int, list[dict[tuple[str, str], float]]] = defaultdict(list)
    seconds: dict[int, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        for number in range(num_rounds):
            for jobs in JOBS:
                run_logs, wall_s = timed_run(suite, jobs, Path(name) / f"{number}-{jobs}")
                logs[jobs].append(run_logs)
                seconds[jobs].append(wall_s)
    table = Table(
        f"Speedups of {suite.name} with two jobs over those with one, {num_rounds} runs of each",
        ("candidate", "graphs", "ratio", "± %", "scatter with one %", "scatter with two %"),
        note="Ratio: geometric mean over graphs; ±: twice its standard error. Scatter: between "
        "runs of the same kind, median over graphs of the range of the logarithm.",
    )
    for candidate in CANDIDATES:
        keys = [key for key in logs[1][0] if key[1] == candidate]
        keys = [key for key in keys if all(key in run for runs in logs.values() for run in runs)]
        means = {
            jobs: [statistics.fmean(run[key] for run in runs) for key in keys]
            for jobs, runs in logs.items()
        }
        ratios = [second - first for first, second in zip(means[1], means[2], strict=True)]
        error = statistics.stdev(ratios) / math.sqrt(len(ratios))
        scatter = [
            statistics.median(
                max(run[key] for run in runs) - min(run[key] for run in runs) for key in keys
            )
            for runs in (logs[1], logs[2])
        ]
        table.rows.append(
            (
                candidate,
                str(len(keys)),
                f"{math.exp(statistics.fmean(ratios)):.4f}",
                f"{200 * error:.2f}",
                *(f"{100 * value:.1f}" for value in scatter),
            )
        )
    console = Console(width=130)
    print_table(console, table)
    for jobs in JOBS:
        console.print(f"{jobs} job(s): {statistics.fmean(seconds[jobs]):.0f} s a run")


if __name__ == "__main__":
    main()
