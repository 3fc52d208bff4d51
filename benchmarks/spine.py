"""Times of passnet, as tables: parsing, matching, folding, capturing, starting workers, judging.

Run it with `make bench`. The public graphs are read from the folder named in PASSNET_CORPUS, by
default `../shared/data` beside the checkout; what needs them is left out where they are absent. All
times are of this machine at this moment, single-threaded.
"""

from __future__ import annotations

import ast
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from benchmarks.capture import capture_tables
from benchmarks.clock import clock_table
from benchmarks.folding import folding_tables
from passnet.bench.run import run_suite
from passnet.graph.canonical import fingerprints
from passnet.graph.fx.build import build
from passnet.graph.text.files import find_graphs, read_sample
from passnet.graph.text.parse import parse_program
from passnet.judge.desk.candidates import parse_candidate
from passnet.judge.processes.sandbox import NO_SANDBOX, find_sandbox
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import load_suite
from passnet.pages.tables.tables import Table, print_table
from passnet.passes.folder import inspect_folder
from passnet.passes.load import load_passes
from passnet.passes.match.graph_index import GraphIndex
from passnet.passes.match.match import each_match
from passnet.passes.match.pattern import Pattern

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
CORPUS = Path(os.environ.get("PASSNET_CORPUS", ROOT.parent / "shared" / "data"))
NUM_PATTERNS = 20
NUM_OPS = 2000


def times_ms(action: Callable[[T], object], arguments: Iterable[T]) -> list[float]:
    """The time of an action on each argument, in milliseconds."""
    times = []
    for argument in arguments:
        start = time.perf_counter()
        action(argument)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def row(name: str, times: list[float], goal: str) -> tuple[str, ...]:
    """A line of the table: median, 90th percentile and maximum in milliseconds."""
    ordered = sorted(times)
    ninetieth = ordered[int(0.9 * (len(ordered) - 1))]
    cells = (statistics.median(ordered), ninetieth, ordered[-1])
    return (name, str(len(ordered)), *(f"{value:.2f}" for value in cells), goal)


def corpus_rows(folders: list[Path]) -> list[tuple[str, ...]]:
    """Reading and identifying the public graphs."""
    texts = [(folder / "model.py").read_text() for folder in folders]
    graphs = [read_sample(folder).graph for folder in folders]
    programs = [graph.program for graph in graphs]
    return [
        row("syntax tree of model.py alone", times_ms(ast.parse, texts), ""),
        row("parse model.py to a program", times_ms(parse_program, texts), "<= 25 median"),
        row("read a graph directory, all files", times_ms(read_sample, folders), ""),
        row("three fingerprints", times_ms(fingerprints, graphs), "< 10"),
        row("build a GraphModule", times_ms(build, programs), ""),
    ]


def example_patterns() -> list[Pattern]:
    """The patterns of the example passes, repeated up to the number that the benchmark needs."""
    patterns: list[Pattern] = []
    for folder in sorted((ROOT / "examples" / "passes").iterdir()):
        if folder.is_dir():
            patterns += [rule.pattern for rule in load_passes(inspect_folder(folder))]
    return (patterns * 2)[:NUM_PATTERNS]


def matching_rows(folders: list[Path]) -> list[tuple[str, ...]]:
    """Twenty patterns on the real graphs of about two thousand ops."""
    samples = [read_sample(folder) for folder in folders]
    large = sorted(samples, key=lambda sample: abs(len(sample.graph.program.ops) - NUM_OPS))[:5]
    patterns = example_patterns()
    rows = []
    for sample in large:
        module = build(sample.graph.program)

        def search(_: object, module: object = module) -> None:
            index = GraphIndex(module.graph)  # type: ignore[attr-defined]
            for pattern in patterns:
                each_match(pattern, index, lambda match: None)

        name = f"index and match {len(patterns)} patterns, {len(sample.graph.program.ops)} ops"
        rows.append(row(name, times_ms(search, range(5)), "< 100"))
    return rows


def process_rows() -> list[tuple[str, ...]]:
    """Starting the command line, the parent of workers, and workers."""
    command = [sys.executable, "-m", "passnet.cli", "--version"]
    starts = times_ms(lambda _: subprocess.run(command, capture_output=True), range(5))
    rows = [row("start the command line", starts, "< 150")]
    for sandbox in dict.fromkeys([NO_SANDBOX, find_sandbox()]):
        start = time.perf_counter()
        with WorkerParent(sandbox=sandbox) as parent:
            parent.wait_ready()
            parent_ms = (time.perf_counter() - start) * 1e3
            forks = times_ms(lambda _, at=parent: at.fork(WorkerLimits(512)).close(), range(20))
        rows.append(row(f"start the parent of workers ({sandbox.name})", [parent_ms], ""))
        rows.append(row(f"fork and end a worker ({sandbox.name})", forks, "< 150"))
    return rows


def judge_table() -> Table:
    """The demo suite under one candidate: seconds by phase."""
    suite = load_suite("demo")
    entry = parse_candidate(str(ROOT / "examples" / "passes"), suite.tasks)
    settings = RunSettings(sandbox=find_sandbox().name)
    with tempfile.TemporaryDirectory() as out:
        start = time.perf_counter()
        trials = run_suite(suite, [entry], settings, Path(out))
        wall_s = time.perf_counter() - start
    phases: dict[str, float] = {}
    for trial in trials:
        for name, seconds in trial.phases_s.items():
            phases[name] = phases.get(name, 0.0) + seconds
    table = Table(
        f"Demo suite, one candidate: {len(trials)} trials in {wall_s:.1f} s (goal: under 60)",
        ("phase", "seconds", "share %", "whose"),
    )
    whose = {"timing": "measured calls", "compile": "Dynamo and the passes", "run": "the graph"}
    for name, seconds in sorted(phases.items(), key=lambda phase: -phase[1]):
        share = f"{100 * seconds / wall_s:.0f}"
        table.rows.append((name, f"{seconds:.1f}", share, whose.get(name, "our own")))
    other_s = wall_s - sum(phases.values())
    share = f"{100 * other_s / wall_s:.0f}"
    table.rows.append(("start and rest", f"{other_s:.1f}", share, "our own"))
    own = other_s + sum(seconds for name, seconds in phases.items() if name not in whose)
    table.rows.append(("our own in all", f"{own:.1f}", f"{100 * own / wall_s:.0f}", "goal: < 50"))
    return table


def main() -> None:
    """Measure and print."""
    heads = ("what", "n", "median ms", "90 % ms", "max ms", "goal ms")
    console = Console(width=120)
    archive = CORPUS / "graphnet-375.tar.xz"
    if archive.exists():
        with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as stream:
            stream.extractall(folder, filter="data")
            folders = list(find_graphs(Path(folder)))
            title = f"The {len(folders)} public graphs"
            print_table(console, Table(title, heads, corpus_rows(folders)))
            print_table(console, Table("Matching", heads, matching_rows(folders)))
            programs = [read_sample(path).graph.program for path in folders]
            for table in folding_tables(programs):
                print_table(console, table)
    else:
        console.print(f"{archive} is not there: parsing and matching are left out")
    print_table(console, Table("Processes", heads, process_rows()))
    for table in capture_tables():
        print_table(console, table)
    print_table(console, clock_table())
    print_table(console, judge_table())


if __name__ == "__main__":
    main()
