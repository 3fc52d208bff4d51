"""What an agent costs beside its llm, and whether attempts side by side change scores.

Run it with `python -m benchmarks.agent [NUM_ATTEMPTS [FOLDER]]`; the runs are kept in FOLDER, where
one that is there already is not made again. The scripted llm plays its trajectory on one task of
the suite `demo` some times one after the other, then as often at once; both runs judge the same
passes, so that their scores are an A/A comparison. Needs the extra agent.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from passnet.agent.attempts.attempt import Attempt
from passnet.agent.run import run_agent
from passnet.agent.settings import AgentSettings, LlmSettings
from passnet.agent.trajectories.stats import summarise
from passnet.core.jobs.run_plan import RunPlan
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.suite.suite import load_suite, only_tasks
from passnet.pages.tables.attempt_tables import overhead_tables
from passnet.pages.tables.tables import Table, print_table

TASK = "gelu_tanh"
NUM_ATTEMPTS = 8
SECONDS = 0.2


def timed_attempts(num_attempts: int, num_workers: int, out: Path) -> tuple[list[Attempt], float]:
    """The attempts of a run, and its wall time in seconds."""
    judge = JudgeSettings(timing=TimingPlan(seconds=SECONDS), rules="strict")
    settings = AgentSettings(
        author="llm",
        llm=LlmSettings("scripted"),
        run=RunSettings(judge, 1, find_sandbox("auto").name),
        num_attempts=num_attempts,
    )
    suite = only_tasks(load_suite("demo"), [TASK])
    start = time.perf_counter()
    attempts = run_agent(suite, settings, out, RunPlan(resume=True, num_workers=num_workers))
    return attempts, time.perf_counter() - start


def state_scores(attempts: list[Attempt], number: int) -> list[float]:
    """The score of the same state, evaluation `number`, in every attempt."""
    states = [attempt.evaluations[number].score for attempt in attempts]
    return [value for value in states if value is not None]


def comparison_table(serial: list[Attempt], parallel: list[Attempt]) -> Table:
    """The score of each evaluated state in both runs, with how far attempts scatter."""
    table = Table(
        f"The same passes, {len(serial)} attempts one by one and {len(parallel)} at once",
        ("state", "one by one", "scatter %", "at once", "scatter %", "ratio", "± %"),
        note="AS, geometric mean over attempts. Scatter: of one attempt, as the standard deviation "
        "of its logarithm; ±: twice the standard error of the ratio.",
    )
    for number in range(min(len(attempt.evaluations) for attempt in (*serial, *parallel))):
        logs = [
            [math.log(value) for value in state_scores(run, number)] for run in (serial, parallel)
        ]
        means = [statistics.fmean(run_logs) for run_logs in logs]
        spread = [statistics.stdev(run_logs) for run_logs in logs]
        error = math.hypot(
            *(
                deviation / math.sqrt(len(run_logs))
                for deviation, run_logs in zip(spread, logs, strict=True)
            )
        )
        table.rows.append(
            (
                f"evaluation {number}",
                f"{math.exp(means[0]):.3f}",
                f"{100 * spread[0]:.1f}",
                f"{math.exp(means[1]):.3f}",
                f"{100 * spread[1]:.1f}",
                f"{math.exp(means[1] - means[0]):.3f}",
                f"{200 * error:.1f}",
            )
        )
    return table


def main() -> None:
    """Print the tables."""
    num_attempts = int(sys.argv[1]) if len(sys.argv) > 1 else NUM_ATTEMPTS
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(name)
        serial, serial_s = timed_attempts(num_attempts, 1, folder / "serial")
        parallel, parallel_s = timed_attempts(num_attempts, num_attempts, folder / "parallel")
    for table in overhead_tables(summarise(serial)):
        print_table(console, table)
    print_table(console, comparison_table(serial, parallel))
    console.print(f"{serial_s:.0f} s one by one, {parallel_s:.0f} s at once")


if __name__ == "__main__":
    main()
