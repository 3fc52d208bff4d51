"""Passes in the nets that their tasks came from.

Each pass folder is judged twice: on its task's graph, and on the whole graph of a net that holds
it. In both, the passes are inside Inductor as `passnet.inductor_pass` puts them there, and Inductor
alone is measured beside it, twice, so that the difference of two equal programs is known. Like
every candidate, a pass runs in the judge's sandbox, and is timed from outside.
"""

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from passnet.bench.run import run_suite
from passnet.core.jobs.run_plan import RunPlan
from passnet.data.capture.store import GRAPHS, read_set
from passnet.errors import InputError
from passnet.graph.spec import Graph
from passnet.graph.text.files import graph_from_row
from passnet.judge.candidate import Candidate
from passnet.judge.desk.candidates import CandidateEntry, parse_candidate
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import Suite, make_suite
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.passes.folder import is_pass_folder

PASSES, ALONE, AGAIN = "passes", "inductor", "inductor again"
"""The candidates, by their names in the run."""

PASSES_FOLDER, IN_NETS_FILE = "passes", "in_nets.json"


@dataclass(frozen=True, slots=True)
class InNet:
    """A pass folder in one net; None where nothing was measured.

    Attributes:
        task: name of its task.
        net: name of the net.
        status: `ok`, or why the net with passes was not timed.
        num_matches: places of the net where it applies.
        task_speedup: of the task's graph, over Inductor alone.
        share: of the net's time, spent at these places by Inductor alone, as the task's graph
            tells; it counts what a small graph costs to be called.
        predicted: speedup of the net if that time changed as on the task (Amdahl's law).
        speedup, low, high: of the net over Inductor alone, with a 95 % interval.
        again: of Inductor alone over itself.
        error: the failure in words.
    """

    task: str
    net: str
    status: str
    num_matches: int
    task_speedup: float | None = None
    share: float | None = None
    predicted: float | None = None
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    again: float | None = None
    error: str | None = None

    @property
    def is_won_on_task(self) -> bool:
        """Whether it is faster than Inductor alone on its task."""
        return self.task_speedup is not None and self.task_speedup > 1

    @property
    def is_won_in_net(self) -> bool:
        """Whether all of its interval in the net is above 1."""
        return self.low is not None and self.low > 1


@dataclass(frozen=True, slots=True)
class TaskInNet:
    """A task in a net: its graph and the net's, as tasks of their own."""

    task: str
    net: str
    on_task: TaskGraph
    in_net: TaskGraph


def find_places(
    suite: Suite, passes: Path, graphs: Path, num_nets: int = 1
) -> tuple[list[TaskInNet], list[str]]:
    """Return the tasks that have passes, each in some nets that hold it, and notes.

    Args:
        suite: tasks, whose graphs name the nets that they came from.
        passes: a folder with one pass folder for each task under its name.
        graphs: captured graphs of whole nets, as `passnet capture` writes them.
        num_nets: nets for each task, in the order of its graphs.

    Raises:
        InputError: no task has a pass folder, or no net of theirs is among the graphs.
    """
    tasks = [task for task in suite.tasks if is_pass_folder(passes / task.name)]
    if not tasks:
        raise InputError(f"{passes} has no pass folder that is named after a task of {suite.name}")
    wanted = {net for task in tasks for net in _nets_of(task)}
    nets = _graphs_of(graphs, wanted)
    places, notes = [], []
    for task in tasks:
        found = [net for net in _nets_of(task) if net in nets][:num_nets]
        if not found:
            notes.append(f"task {task.name}: none of its nets is in {graphs}")
        for net in found:
            own = next(each for each in task.graphs if each.source and each.source.net == net)
            name = f"{task.name}--{net.replace('/', '.')}"
            on_task = TaskGraph(f"{name}--task", f"{name}--task", own.graph, own.source)
            in_net = TaskGraph(name, name, nets[net], own.source)
            places.append(TaskInNet(task.name, net, on_task, in_net))
    if not places:
        named = f", such as {min(wanted)}" if wanted else ""
        raise InputError(f"{graphs} has none of the nets of these tasks{named}")
    return places, notes


def apply_in_nets(
    places: Sequence[TaskInNet], passes: Path, out: Path, settings: RunSettings, plan: RunPlan
) -> list[InNet]:
    """Return a record for each place, judged now or, with `plan.resume`, before.

    Args:
        places: tasks in nets.
        passes: the folder of their passes.
        out: the run folder.
        settings: settings of the judge.
        plan: a plan whose items are two graphs for each place.

    Raises:
        InputError: `out` holds another run.
    """
    _copy_passes(passes, out / PASSES_FOLDER, places)
    both = [graph for place in places for graph in (place.on_task, place.in_net)]
    whole = make_suite("in nets", both)
    with_passes = parse_candidate(f"{out / PASSES_FOLDER}@inlined", whole.tasks)
    entries = [
        CandidateEntry(Candidate(ALONE, "inductor")),
        CandidateEntry(Candidate(AGAIN, "inductor")),
        replace(with_passes, template=replace(with_passes.template, name=PASSES)),
    ]
    trials = run_suite(whole, entries, settings, out, plan)
    by_name = {(trial.graph, trial.candidate): trial for trial in trials}
    return [record_of(place, by_name) for place in places]


def _nets_of(task: Task) -> list[str]:
    return list(dict.fromkeys(graph.source.net for graph in task.graphs if graph.source))


def _graphs_of(folder: Path, nets: set[str]) -> dict[str, Graph]:
    """Return the largest graph of some nets that a folder of captured graphs has, by net."""
    found: dict[str, tuple[int, Graph]] = {}
    for path in read_set(folder)[1]:
        for row in GRAPHS.read(path):
            for source in row.sources:
                size = len(row.op_sequence)
                is_wanted = source.entry in nets and source.kind == "inference"
                if is_wanted and size > found.get(source.entry, (0, None))[0]:
                    graph = graph_from_row(row.program, row.tensors, f"{path}: {source.entry}")
                    found[source.entry] = size, graph
    return {net: graph for net, (_, graph) in found.items()}


def _copy_passes(passes: Path, out: Path, places: Sequence[TaskInNet]) -> None:
    """Copy the pass folder of each task to the names of its graphs; a sandbox shows `out` alone."""
    shutil.rmtree(out, ignore_errors=True)
    for place in places:
        for graph in (place.on_task, place.in_net):
            shutil.copytree(passes / place.task, out / graph.task)


def record_of(place: TaskInNet, trials: Mapping[tuple[str, str], Trial]) -> InNet:
    """Return the figures of a place, from the trials of its graphs by name and candidate."""
    with_passes = trials[place.in_net.name, PASSES]
    alone, again = (trials[place.in_net.name, name] for name in (ALONE, AGAIN))
    task_alone = trials[place.on_task.name, ALONE]
    num_matches = sum(with_passes.matches.values())
    failure = next((own.error for own in (with_passes, alone) if own.error), None)
    record = InNet(place.task, place.net, with_passes.status, num_matches, error=failure)
    if on_task := _ratio(trials[place.on_task.name, PASSES], task_alone):
        record = replace(record, task_speedup=on_task[0])
    if same := _ratio(again, alone):
        record = replace(record, again=same[0])
    if on_task and task_alone.candidate_ms and alone.candidate_ms:
        share = num_matches * task_alone.candidate_ms / alone.candidate_ms
        left = 1 - share * (1 - 1 / on_task[0])
        record = replace(record, share=share, predicted=1 / left if left > 0 else None)
    if in_net := _ratio(with_passes, alone):
        speedup, low, high = in_net
        record = replace(record, speedup=speedup, low=low, high=high)
    return record


def _ratio(trial: Trial, other: Trial) -> tuple[float, float, float] | None:
    """Return the speedup of a trial over another on the same graph, with its 95 % interval.

    Both speedups are over the same reference; their errors are taken as independent.
    """
    bounds = [(each.speedup, each.speedup_low, each.speedup_high) for each in (trial, other)]
    if not all(value for values in bounds for value in values):
        return None
    (own, own_low, own_high), (base, base_low, base_high) = bounds
    assert own and own_low and own_high and base and base_low and base_high, "checked above"
    ratio = own / base
    down = math.hypot(math.log(own / own_low), math.log(base_high / base))
    up = math.hypot(math.log(own_high / own), math.log(base / base_low))
    return ratio, ratio * math.exp(-down), ratio * math.exp(up)
