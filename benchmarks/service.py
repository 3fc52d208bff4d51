"""How many submissions a minute the reward service judges, and what becomes of them when judges are
killed: `python -m benchmarks.service [SUBMISSIONS] [CLIENTS] [JUDGES]`.

Submissions are the passes of `examples/passes`, each told apart by a comment in its Python, so that
none is answered from the cache and all but the first of a kernel find it compiled; then all are
asked for again, from the cache. They are compared and not timed, and a tenth more is timed. During
the first part a judge is killed, and one client asks and never reads.
"""

import asyncio
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console

from passnet.judge.suite.suite import load_suite, row_of_graph
from passnet.pages.tables.tables import Table, print_table
from passnet.passes.files import read_files
from passnet.train.service.client import ServiceAddress, judge_all
from passnet.train.service.submission import JudgeReport, Submission
from tests.train.service.running import http_request, judge_pids, serving

PASSES = Path(__file__).parents[1] / "examples" / "passes"


def submissions(number: int, start: int = 0, is_timed: bool = False) -> list[Submission]:
    """Passes of the examples in turn, for the first graph of their task, each with other files."""
    tasks = load_suite("demo").tasks
    made = []
    for index in range(start, start + number):
        task = tasks[index % len(tasks)]
        files = read_files(PASSES / task.name)
        first = next(name for name in files if name.startswith("Fuse"))
        files[first] += f"\n# {index}\n"
        graphs = (row_of_graph(task.graphs[0]),)
        made.append(Submission(task.name, files, graphs=graphs, is_timed=is_timed))
    return made


async def _by_clients(
    address: ServiceAddress, asked: Sequence[Submission], num_clients: int
) -> list[JudgeReport]:
    """The reports on submissions that clients with their own connections share."""
    parts = [asked[start::num_clients] for start in range(num_clients)]
    return [
        report
        for reports in await asyncio.gather(*(judge_all(address, part) for part in parts))
        for report in reports
    ]


def _row(name: str, reports: list[JudgeReport], seconds: float) -> tuple[str, ...]:
    """What one part of the benchmark shows; of the time with judges, the share spent waiting for
    the turn to measure.
    """
    trials = [trial for report in reports if report.judged for trial in report.judged.trials]
    statuses = Counter(trial.status for trial in trials)
    judged_s = sum(report.judged_s or 0.0 for report in reports)
    turns_s = sum(trial.phases_s.get("waiting", 0.0) for trial in trials)
    faults = sum(report.judged is None or report.judged.fault is not None for report in reports)
    return (
        name,
        str(len(reports)),
        str(len({report.id for report in reports})),
        ", ".join(f"{count} {status}" for status, count in statuses.items()),
        str(faults),
        f"{60 * len(reports) / seconds:.0f}",
        f"{statistics.median(report.judged_s or 0.0 for report in reports):.2f}",
        f"{statistics.median(report.waited_s or 0.0 for report in reports):.1f}",
        f"{turns_s / judged_s:.0%}" if judged_s else "–",
    )


def main(num_submissions: int = 500, num_clients: int = 16, num_judges: int = 2) -> None:
    """Print a table."""
    devices = ",".join(f"cpu:{number}" for number in range(num_judges))
    table = Table(
        f"{num_submissions} submissions, {num_clients} clients, {num_judges} judges",
        ("part", "asked", "answered", "trials", "faults", "a minute", "judged s", "queued s",
         "waits to measure"),
    )  # fmt: skip
    compared = submissions(num_submissions)
    timed = submissions(num_submissions // 10, start=num_submissions, is_timed=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "out", "--device", devices, "--max-waiting", 64) as (
            service, address,
        ),
        socket.create_connection(("127.0.0.1", urlsplit(address.url).port or 0)) as silent,
    ):  # fmt: skip
        address = replace(address, timeout_s=3600.0)
        silent.setblocking(False)
        silent.send(http_request(address, compared[0]) * 8)

        async def with_a_kill() -> list[JudgeReport]:
            asked = asyncio.create_task(_by_clients(address, compared, num_clients))
            await asyncio.sleep(30)
            os.kill(judge_pids(service.pid)[0], signal.SIGKILL)
            return await asked

        parts = (
            ("compared, a judge killed", with_a_kill()),
            ("the same, from the cache", _by_clients(address, compared, num_clients)),
            ("timed", _by_clients(address, timed, num_clients)),
        )
        for name, part in parts:
            start = time.monotonic()
            reports = asyncio.run(part)
            table.rows.append(_row(name, reports, time.monotonic() - start))
            cached = sum(report.is_cached for report in reports)
            print(f"{name}: {cached} of {len(reports)} from the cache", flush=True)
            lost = sum(report.num_losses for report in reports)
            print(f"{name}: {lost} submissions lost a judge", flush=True)
            print(f"{name}: {_cost_order(reports)}", flush=True)
    print_table(Console(width=150), table)


def _cost_order(reports: Sequence[JudgeReport]) -> str:
    """Where the time with judges went, the most expensive first."""
    phases_s: Counter[str] = Counter()
    for report in reports:
        for trial in report.judged.trials if report.judged else ():
            phases_s.update(trial.phases_s)
    judged_s = sum(report.judged_s or 0.0 for report in reports)
    phases_s["all else"] = max(judged_s - phases_s.total(), 0.0)  # type: ignore[assignment]
    return ", ".join(
        f"{phase} {seconds / judged_s:.0%}" for phase, seconds in phases_s.most_common()
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
