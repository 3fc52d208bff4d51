"""What the judge costs: core-seconds a graph, wall time by phase, and eager torch against itself.

Run it with `make bench`, or `python -m benchmarks.judge_cost [--suite S] [--tasks N] [--seconds S]
[--load K] [--halting]`. Graphs are judged under one candidate and under twelve: those of
`recipes/baselines`, with the passes of the compiler as author in place of the search's too.
Core-seconds are those of this process and of all that it starts, as Linux counts them once they
have ended. With `--load`, so many other processes spin beside it. With `--halting`, nothing keeps
the processors awake; the difference is time that any other program would have got.
"""

import argparse
import resource
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from passnet.core.jobs.children import spinning
from passnet.core.jobs.process import JobRunner
from passnet.core.terminal.progress import progress
from passnet.graph.spec import Graph
from passnet.judge.candidate import Candidate
from passnet.judge.inspection.inspected_folders import InspectedFolders
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.settings import JudgeSettings, TimingPlan
from passnet.judge.suite.suite import load_suite
from passnet.judge.task import Task
from passnet.judge.trial import Trial
from passnet.pages.tables.tables import Table, print_table
from passnet.passes.codegen.cpp_source import cpp_source
from passnet.passes.codegen.folder_text import RangeSource, pass_folder
from passnet.passes.codegen.lowered_ranges import GraphLowering
from passnet.passes.files import write_files

BUILT_IN = ("eager", "null", "inductor", "inductor@guarded", "inductor-precise", "aoti")
AUTHORS = ("compiler", "search")
CALLS = ("", "@guarded", "@direct")


@dataclass(frozen=True)
class Cost:
    """The cost of judging graphs under some candidates: core-seconds and wall time by phase."""

    trials: list[Trial]
    num_graphs: int
    core_s: float

    def phases_s(self) -> Counter[str]:
        """Return the wall time of a graph by phase; each trial has the sum over its graph."""
        largest: dict[tuple[str, str], float] = {}
        for trial in self.trials:
            for phase, seconds in trial.phases_s.items():
                key = (trial.graph, phase)
                largest[key] = max(seconds, largest.get(key, 0.0))
        total: Counter[str] = Counter()
        for (_, phase), seconds in largest.items():
            total[phase] += seconds / self.num_graphs
        return total


def used_s() -> float:
    """Return the CPU time of this process and of its ended descendants."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def write_passes(graph: Graph, folder: Path) -> bool:
    """Write the compiler's passes for a graph; return whether there are any."""
    lowering = GraphLowering(graph, "graph")
    lowered = [lowering.lowered(span, ()) for span in lowering.largest(())]
    sources = [RangeSource(each, cpp_source(each.code)) for each in lowered if each]
    if sources:
        write_files(pass_folder(sources), folder)
    return bool(sources)


def candidates_of(folder: Path, task: str) -> list[Candidate]:
    """Return all twelve candidates of a task, whose passes lie below the author's folder."""
    candidates = []
    for name in (*BUILT_IN, *(f"{author}{call}" for author in AUTHORS for call in CALLS)):
        kind, _, call = name.partition("@")
        call = call or ("direct" if kind == "eager" else "compiled")
        if kind in AUTHORS:
            root = folder / kind
            candidates.append(Candidate(name, "passes", str(root / task), call, root=str(root)))
        else:
            candidates.append(Candidate(name, kind, call=call))
    return candidates


def cost_of(
    tasks: Sequence[Task], folder: Path, chosen: Sequence[str], settings: JudgeSettings
) -> Cost:
    """Judge the first graph of each task under the chosen candidates, in one run."""
    trials: list[Trial] = []
    before_s = used_s()
    with (
        progress(f"judging under {len(chosen)}", len(tasks)) as step,
        JobRunner() as runner,
        ParentPool(sandbox=find_sandbox()) as parents,
    ):
        inspected = InspectedFolders(settings.rules, runner)
        for task in tasks:
            every = candidates_of(folder, task.name)
            candidates = [each for each in every if each.name in chosen]
            trials += judge_graph(parents, task.graphs[0], candidates, settings, inspected)
            step(task.name)
    return Cost(trials, len(tasks), used_s() - before_s)


def main(suite: str, num_tasks: int, seconds: float, load: int, is_halting: bool) -> None:
    """Print the cost of one and of twelve candidates, and the spread of eager torch."""
    plan = replace(TimingPlan(), seconds=seconds, keeps_awake=not is_halting)
    settings = JudgeSettings(timing=plan)
    heads = ("candidates", "core-s a graph", "asked for", "wall s a graph by phase")
    table = Table(f"Judging {num_tasks} graphs of {suite}", heads)
    with tempfile.TemporaryDirectory() as name, spinning(load):
        folder, tasks = Path(name), []
        for task in load_suite(suite).tasks:
            passes = folder / AUTHORS[0] / task.name
            if len(tasks) < num_tasks and write_passes(task.graphs[0].graph, passes):
                tasks.append(task)
        shutil.copytree(folder / AUTHORS[0], folder / AUTHORS[1])
        for chosen in (["compiler@direct"], [each.name for each in candidates_of(folder, "")]):
            cost = cost_of(tasks, folder, chosen, settings)
            phases = ", ".join(f"{phase} {s:.2f}" for phase, s in cost.phases_s().most_common())
            core_s, asked_s = cost.core_s / len(tasks), seconds * (len(chosen) + 1)
            table.rows.append((f"{len(chosen)}", f"{core_s:.2f}", f"{asked_s:.2f}", phases))
    print_table(Console(), table)
    strays = [t.speedup for t in cost.trials if t.candidate == "eager" and t.speedup is not None]
    off = np.quantile(np.abs(np.array(strays) - 1), 0.9)
    print(
        f"eager against itself on {len(strays)} graphs, {load} other processes beside: "
        f"{min(strays):.3f} to {max(strays):.3f}, in 90 % off by {off:.1%} at most"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="passbench-v1-small")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.15)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--halting", action="store_true")
    options = parser.parse_args()
    main(options.suite, options.tasks, options.seconds, options.load, options.halting)
