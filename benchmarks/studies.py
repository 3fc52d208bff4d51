"""The studies of whole nets and of KernelBench, from their records, as pages for the site.

Run it with `python -m benchmarks.studies baselines/studies`; `passnet report` then shows the
folders `nets` and `kernelbench` in it. Nothing is measured.
"""

import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.optimize import table_of
from passnet.bench.run_record import run_folder
from passnet.bench.scores import is_correct, read_rows, score_rows
from passnet.core.records.serialise import read_lines
from passnet.judge.trial import Trial
from passnet.pages.figures.study_page import StudyPage, write_study_page
from passnet.pages.tables.cells import NOTHING, bounds, number, percent
from passnet.pages.tables.tables import Table

BASELINES = Path(__file__).parents[1] / "baselines"
RUNS_OF_NETS = {
    "batch 1, one thread": "records",
    "batch 4, one thread": "batch4",
    "batch 1, two threads": "two-threads-epyc",
    "batch 4, two threads": "two-threads-batch4-epyc",
}
"""The file of each run over the 40 nets on an AMD EPYC."""


def nets_page() -> StudyPage:
    """Return the page of whole nets, with two tables a run."""
    tables = [
        replace(table, title=f"{name}: {'weights will not change' if n else 'weights may change'}")
        for name, file in RUNS_OF_NETS.items()
        for n, table in enumerate(
            table_of([*read_lines(BASELINES / "optimize" / f"{file}.jsonl", dict[str, Any])])
        )
    ]
    rows = dict(zip(RUNS_OF_NETS, (table.rows[-1] for table in tables[::2]), strict=True))
    means = ", ".join(f"{row[-3]} ({name})" for name, row in rows.items())
    return StudyPage(
        "Whole nets",
        f"passnet.optimize makes whole nets faster than eager PyTorch by these factors: {means}.",
        (
            "40 nets of timm, torchvision and transformers, drawn before the first measurement. "
            "Columns are speedups over eager PyTorch; the mean is geometric. over best: the "
            "time of the fastest other column over that of optimize.",
        ),
        tuple(tables),
        measured_on="AMD EPYC (the first run Genoa, the others Turin; AVX-512), torch 2.13, "
        "OpenVINO 2026.4, ONNX Runtime 1.32",
    )


def kernelbench_page() -> StudyPage:
    """Return the page of KernelBench, with candidates, levels and every problem."""
    folder = BASELINES / "kernelbench"
    scores = score_rows(read_rows(folder))
    trials = list(run_folder(folder).records().values())
    names = [score.candidate for score in scores]
    total = Table("Candidates", ("candidate", "AS", "95 % interval", "correct %", "not slower %"))
    for score in scores:
        interval, columns = score.intervals["both"], score.suite.columns
        shown = (percent(columns.subgraph_correct), percent(columns.fast_1))
        scored = (number(score.suite.score), bounds(interval.low, interval.high))
        total.rows.append((score.candidate, *scored, *shown))
    best = max(scores, key=lambda score: score.suite.score)
    return StudyPage(
        "KernelBench",
        f"The best of {len(scores)} candidates on levels 1 and 2 of KernelBench is "
        f"{best.candidate}, with an AS of {number(best.suite.score)}.",
        (
            "Levels 1 and 2 at commit 423217d, reduced to 4 MiB of arguments and outputs: 200 "
            "problems. A trial is correct if its outputs agree at t = -5.",
        ),
        (total, _by_level(trials, names), _by_problem(trials, names)),
        measured_on="Intel Xeon with AVX-512, BF16 and VNNI, one thread, torch 2.13",
    )


def _by_level(trials: Sequence[Trial], names: Sequence[str]) -> Table:
    note = "Geometric mean of the speedup over correct trials."
    table = Table("Speedup by level", ("level", *names), note=note)
    correct = [each for each in trials if is_correct(each) and each.speedup]
    for level in sorted({trial.task.partition("-")[0] for trial in trials}):
        speedups: dict[str, list[float]] = {name: [] for name in names}
        for each in correct:
            if each.task.startswith(f"{level}-"):
                speedups[each.candidate].append(each.speedup or 1.0)
        means = (statistics.geometric_mean(speedups[name]) for name in names)
        table.rows.append((level.removeprefix("level"), *map(number, means)))
    return table


def _by_problem(trials: Sequence[Trial], names: Sequence[str]) -> Table:
    note = f"Speedup over eager PyTorch; {NOTHING} if the outputs are not correct."
    table = Table("Speedup by problem", ("problem", *names), note=note)
    found = {(each.task, each.candidate): each for each in trials}
    for task in dict.fromkeys(trial.task for trial in trials):
        cells = (found.get((task, name)) for name in names)
        speeds = (each.speedup if each and is_correct(each) else None for each in cells)
        table.rows.append((task.removesuffix("-reduced"), *map(number, speeds)))
    return table


PAGES = {"nets": nets_page, "kernelbench": kernelbench_page}


def main(out: Path) -> None:
    """Write the folder of each study."""
    for name, page in PAGES.items():
        (out / name).mkdir(parents=True, exist_ok=True)
        write_study_page(out / name, page())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
