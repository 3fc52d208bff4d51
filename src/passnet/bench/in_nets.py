"""Passes in the nets that their tasks came from.

Each pass folder is judged twice: on its task's graph, and on the whole graph of a net that holds
it. In both, the passes are inside Inductor as `passnet.inductor_pass` puts them there, and Inductor
alone is measured beside it, twice, so that the difference of two equal programs is known. Like
every candidate, a pass runs in the judge's sandbox, and is timed from outside.
"""

import hashlib
import math
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean

from passnet.bench.run import run_suite
from passnet.bench.run_record import RUN_FILE, run_folder, suite_of_run
from passnet.core.jobs.folder_lock import folder_lock
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.folders import atomic_folder, below
from passnet.core.records.serialise import decode, read_json, write_json
from passnet.data.capture.store import GRAPHS, GraphRow, read_set
from passnet.data.mine.cut import cut_range, inferred_specs, parent_of, single_assignment
from passnet.errors import CutError, InputError
from passnet.graph.canonical import op_sequence
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.files import graph_from_row
from passnet.graph.text.meta import input_mib
from passnet.judge.candidate import Candidate
from passnet.judge.desk.candidates import CandidateEntry, parse_candidate
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import Suite, make_suite
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.passes.folder import hash_folders

ALONE, AGAIN = "inductor", "inductor again"
"""Inductor alone, by its names in the run."""

PASSES_FOLDER, IN_NETS_FILE = "passes", "in_nets.json"
KEEP_WAIT_S = 30.0
"""Seconds to wait for another process that works in the folder of records."""


@dataclass(frozen=True, slots=True)
class InNet:
    """A pass folder in one net; None where nothing was measured.

    Attributes:
        task: name of its task.
        net: name of the net.
        status: `ok`, `wrong values`, or why the net with passes was not timed.
        num_matches: places of the net where it applies.
        task_speedup: of the task, over Inductor alone.
        share: of the net's time, spent at these places by Inductor alone, as the task tells, at the
            place of median size; it counts what a small graph costs to be called. None, as is
            `predicted`, where that is more than the net's time: the places take less in the net.
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

    def __post_init__(self) -> None:
        if self.share is not None and self.share > 1:
            object.__setattr__(self, "share", None)
            object.__setattr__(self, "predicted", None)

    @property
    def is_won_on_task(self) -> bool:
        """Whether it is faster than Inductor alone on its task."""
        return self.task_speedup is not None and self.task_speedup > 1

    @property
    def is_won_in_net(self) -> bool:
        """Whether all of its interval in the net is above 1."""
        return self.low is not None and self.low > 1


@dataclass(frozen=True, slots=True)
class PassesInNets:
    """What the passes of a candidate did in nets; `code_hash` is of all its pass folders."""

    code_hash: str
    places: tuple[InNet, ...]
    candidate: str = ""

    @property
    def speedups(self) -> list[float]:
        """The nets' speedups over Inductor alone, where they were timed."""
        return [site.speedup for site in self.places if site.speedup and site.speedup > 0]

    @property
    def score(self) -> float | None:
        """The geometric mean of `speedups`; nets that failed with the passes are not in it."""
        return geometric_mean(self.speedups) if self.speedups else None

    @property
    def score_text(self) -> str:
        """The score, and the number of nets that it is of."""
        mean = "" if self.score is None else f"{self.score:.3f}, "
        return f"{mean}{len(self.speedups)} of {len(self.places)} nets"


@dataclass(frozen=True, slots=True)
class TaskInNet:
    """A task in a net: its graph and the net's, as tasks of their own."""

    task: str
    net: str
    on_task: TaskGraph
    in_net: TaskGraph

    @property
    def num_places(self) -> int:
        """The number of times that the net's op sequence holds the task's, without overlap."""
        whole, part = (op_sequence(g.graph.program) for g in (self.in_net, self.on_task))
        return sum(1 for _ in starts_of(whole, part))


def candidate_in(path: Path, suite: Suite, name: str | None = None) -> CandidateEntry:
    """Return the candidate of a folder with a pass folder for each task, or one of a run folder.

    Raises:
        InputError: the run has no such candidate, or several of other passes and `name` is None;
            it is of another suite, or its passes are gone or were changed since.
        PassFolderError: there is no pass folder.
    """
    if not (path / RUN_FILE).is_file():
        if name is not None:
            raise InputError(f"{path} is no run folder, so there is no candidate {name} in it")
        return parse_candidate(str(path), suite.tasks)
    info = run_folder(path).read_info()
    if info.suite != suite.name:
        raise InputError(f"{path} is a run of {info.suite}, and not of {suite.name}: name that")
    with_passes = [each for each in info.candidates if each.root and name in (None, each.name)]
    roots = {each.root: each.name for each in reversed(with_passes)}
    if len(roots) != 1:
        names = ", ".join(each.name for each in info.candidates if each.root) or "none"
        advice = "choose one by --candidate" if name is None else f"{name} is not among them"
        raise InputError(f"{path}: of its candidates, these have passes: {names}; {advice}")
    [(root, own)] = roots.items()
    entry = parse_candidate(str(path / str(root)), (suite_of_run(path) or suite).tasks)
    if entry.code_hash != info.code_hashes.get(own):
        raise InputError(f"{root}: the passes of {own} were changed since the run {path}")
    return entry


def candidates_in(
    paths: Sequence[Path], suite: Suite, name: str | None = None
) -> dict[str, tuple[Path, CandidateEntry]]:
    """Return each path and its candidate, as `candidate_in` reads it, by name.

    The name is that of the folder, or of what holds it if it is called `passes`.

    Raises:
        InputError: two have one name, or one that Inductor alone has.
    """
    entries: dict[str, tuple[Path, CandidateEntry]] = {}
    for path in paths:
        whole = path.resolve()
        own = whole.parent.name if whole.name == PASSES_FOLDER else whole.name
        if own in entries or own in (ALONE, AGAIN):
            raise InputError(f"{path}: another candidate is called {own} too; rename the folder")
        entries[own] = path, candidate_in(path, suite, name)
    return entries


def pass_folders(suite: Suite, candidate: CandidateEntry) -> dict[str, Path]:
    """Return a candidate's pass folder by task; raise InputError if there is none."""
    candidates = {task.name: candidate.for_task(task.name) for task in suite.tasks}
    folders = {name: Path(each.passes) for name, each in candidates.items() if each and each.passes}
    if not folders:
        raise InputError(f"{candidate.name} has no pass folder for a task of {suite.name}")
    return folders


def find_places(
    tasks: Sequence[Task],
    graphs: Path,
    num_nets: int = 1,
    max_mib: float = 64,
    is_held: bool = False,
) -> tuple[list[TaskInNet], list[str]]:
    """Return tasks, each in some nets that hold it, the net of the fewest ops first, and notes.

    Args:
        tasks: tasks, whose graphs name the nets that they came from.
        graphs: captured graphs of whole nets, as `passnet capture` writes them.
        num_nets: nets for each task, in the order of its graphs; where none of them is there,
            nets whose ops hold the task's, one after another, in an order drawn by their names.
        max_mib: leave out nets whose arguments, weights among them, are larger, in MiB.
        is_held: leave out nets whose op sequence does not hold the task's in one piece.

    Raises:
        InputError: no net of theirs is among the graphs.
    """
    nets = _captured_nets(graphs, tasks)
    nets_of_task: dict[Task, list[str]] = {}
    notes = []
    for task in tasks:
        names = [net for net in _nets_of(task) if net in nets]
        names = [net for net in names if not is_held or task.name in nets[net].tasks]
        if not names:
            names = _drawn([net for net, own in nets.items() if task.name in own.tasks])
            hint = f"; {len(names)} others hold its ops" if names else ""
            piece = ", with its ops in one piece" if is_held else ""
            notes.append(f"task {task.name}: none of its nets is in {graphs}{piece}{hint}")
        small = [net for net in names if (nets[net].mib or 0) <= max_mib]
        if names and not small:
            notes.append(f"task {task.name}: all of its nets are larger than {max_mib:g} MiB")
        nets_of_task[task] = small[:num_nets]
    read = _read_graphs({nets[net] for own in nets_of_task.values() for net in own})
    sites = []
    for task, own in nets_of_task.items():
        for net in own:
            of_net = (each for each in task.graphs if each.source and each.source.net == net)
            graph, whole = next(of_net, None), read[nets[net]]
            small = _cut_out(task, graph or task.graphs[0], whole)
            source = graph.source if graph else None
            name = f"{task.name}--{net.replace('/', '.')}"
            on_task = TaskGraph(f"{name}--task", f"{name}--task", small, source)
            in_net = TaskGraph(name, name, whole, source)
            sites.append(TaskInNet(task.name, net, on_task, in_net))
    if not sites:
        raise InputError(
            f"{graphs} has no net of at most {max_mib:g} MiB that holds the ops of one of these "
            "tasks"
        )
    sites.sort(key=lambda site: len(site.in_net.graph.program.ops))
    return sites, notes


def apply_in_nets(
    sites: Sequence[TaskInNet],
    candidates: Mapping[str, Mapping[str, Path]],
    out: Path,
    settings: RunSettings,
    plan: RunPlan,
) -> dict[str, list[InNet]]:
    """Return each candidate's record of each place where it has a pass folder, judged now or, with
    `plan.resume`, before.

    Args:
        sites: tasks in nets.
        candidates: pass folder of each task, by name of the candidate; a name is one of a folder,
            and not that of Inductor alone.
        out: the run folder.
        settings: settings of the judge.
        plan: a plan whose items are two graphs for each place.

    Raises:
        InputError: `out` holds another run.
    """
    whole = as_suite(sites)
    entries = [CandidateEntry(Candidate(name, "inductor")) for name in (ALONE, AGAIN)]
    for name, folders in candidates.items():
        _copy_passes(out / PASSES_FOLDER / name, sites, folders)
        with_passes = parse_candidate(f"{out / PASSES_FOLDER / name}@inlined", whole.tasks)
        entries.append(replace(with_passes, template=replace(with_passes.template, name=name)))
    trials = run_suite(whole, entries, settings, out, plan)
    by_name = {(trial.graph, trial.candidate): trial for trial in trials}
    return {
        name: [record_of(site, by_name, name) for site in sites if site.task in folders]
        for name, folders in candidates.items()
    }


def as_suite(sites: Sequence[TaskInNet]) -> Suite:
    """Return the graphs of tasks and of nets as a suite."""
    both = [graph for site in sites for graph in (site.on_task, site.in_net)]
    return make_suite("in nets", both)


def _nets_of(task: Task) -> list[str]:
    return list(dict.fromkeys(graph.source.net for graph in task.graphs if graph.source))


def _drawn(nets: Sequence[str]) -> list[str]:
    return sorted(nets, key=lambda net: hashlib.sha256(net.encode()).digest())


@dataclass(frozen=True, slots=True)
class _CapturedNet:
    """The largest graph of a net: its number of ops, its place in a file, the size of its
    arguments, and the tasks that it holds; no size if it is the net of no task and holds none.
    """

    size: int
    path: Path
    index: int
    mib: float | None
    tasks: frozenset[str]


def _captured_nets(folder: Path, tasks: Sequence[Task]) -> dict[str, _CapturedNet]:
    """Return the nets of some tasks, and other nets that hold one, by name."""
    net_names = {net for task in tasks for net in _nets_of(task)}
    sequences = {task.name: ops_text(op_sequence(task.graphs[0].graph.program)) for task in tasks}
    captured: dict[str, _CapturedNet] = {}
    for path in read_set(folder)[1]:
        for index, row in enumerate(GRAPHS.read(path)):
            size, ops = len(row.op_sequence), ops_text(row.op_sequence)
            nets = {each.entry for each in row.sources if each.kind == "inference"}
            larger = [net for net in nets if net not in captured or size > captured[net].size]
            held = frozenset(name for name, own in sequences.items() if own in ops)
            mib = row_mib(row) if larger and (held or net_names & nets) else None
            captured |= dict.fromkeys(larger, _CapturedNet(size, path, index, mib, held))
    return {net: own for net, own in captured.items() if own.mib is not None}


def row_mib(row: GraphRow) -> float:
    """Return the memory of a captured graph's arguments in MiB."""
    return input_mib(decode(row.tensors, tuple[TensorSpec, ...], row.full))


def _cut_out(task: Task, graph: TaskGraph, net: Graph) -> Graph:
    """Return the ops of a task as they stand in a net, at the place of median size.

    Where none can be cut out, it is one of the task's graphs, which may have other sizes and
    dtypes.
    """
    ops = op_sequence(task.graphs[0].graph.program)
    program = single_assignment(net.program)
    parent = parent_of(program, inferred_specs(Graph(program, net.tensors)))
    cuts: list[Graph] = []
    for start in starts_of(op_sequence(program), ops):
        with suppress(CutError):
            cuts.append(cut_range(parent, start, start + len(ops)))
    cuts.sort(key=lambda cut: sum(spec.num_elements for spec in cut.tensors))
    return cuts[len(cuts) // 2] if cuts else graph.graph


def _read_graphs(nets: Iterable[_CapturedNet]) -> dict[_CapturedNet, Graph]:
    """Return the graphs of some nets."""
    graphs: dict[_CapturedNet, Graph] = {}
    by_place = {(net.path, net.index): net for net in nets}
    for path in {path for path, _ in by_place}:
        for index, row in enumerate(GRAPHS.read(path)):
            if net := by_place.get((path, index)):
                graphs[net] = graph_from_row(row.program, row.tensors, f"{path}: {row.full}")
    return graphs


def starts_of(whole: Sequence[str], part: Sequence[str]) -> Iterator[int]:
    """Yield where an op sequence holds another one, without overlap."""
    start = 0
    while start + len(part) <= len(whole):
        is_here = whole[start : start + len(part)] == part
        if is_here:
            yield start
        start += len(part) if is_here else 1


def ops_text(ops: Sequence[str]) -> str:
    """Return an op sequence as text; a part of the sequence is a substring."""
    return "".join(f" {op} " for op in ops)


def _copy_passes(out: Path, sites: Sequence[TaskInNet], folders: Mapping[str, Path]) -> None:
    """Copy the pass folder of each task to the names of its graphs; a sandbox shows `out` alone.

    Raises:
        InputError: other passes are there.
    """
    for site in sites:
        for graph in (site.on_task, site.in_net) if site.task in folders else ():
            source, target = folders[site.task], below(out, graph.task)
            if not target.exists():
                with atomic_folder(target) as partial:
                    shutil.copytree(source, partial, symlinks=True, dirs_exist_ok=True)
            elif hash_folders([target]) != hash_folders([source]):
                raise InputError(
                    f"{target}: holds other passes than {source}; choose another --out"
                )


def keep_in_nets(passes: PassesInNets, folder: Path) -> None:
    """Merge records of passes in nets into the file of a folder.

    They replace its records of the same passes, task and net.

    Raises:
        InputError: another process works in the folder, or the records there cannot be read.
    """
    with folder_lock(folder, KEEP_WAIT_S):
        earlier = {each.code_hash: each for each in read_in_nets(folder)}
        before = earlier.pop(passes.code_hash, passes).places
        places = {(place.task, place.net): place for place in (*before, *passes.places)}
        merged = replace(passes, places=tuple(places.values()))
        write_json(folder / IN_NETS_FILE, [*earlier.values(), merged])


def read_in_nets(folder: Path) -> list[PassesInNets]:
    """Return a folder's records of passes in nets; raise InputError if they cannot be read."""
    path = folder / IN_NETS_FILE
    return read_json(path, list[PassesInNets]) if path.is_file() else []


def record_of(site: TaskInNet, trials: Mapping[tuple[str, str], Trial], candidate: str) -> InNet:
    """Return a candidate's figures of a place, from trials by name of graph and of candidate."""
    with_passes = trials[site.in_net.name, candidate]
    alone, again = (trials[site.in_net.name, name] for name in (ALONE, AGAIN))
    task_alone = trials[site.on_task.name, ALONE]
    num_matches = sum(with_passes.matches.values())
    failure = next((own.error for own in (with_passes, alone) if own.error), None)
    in_net = _ratio(with_passes, alone)
    is_wrong = in_net is None and with_passes.status == "ok" and alone.status == "ok"
    status = "wrong values" if is_wrong else with_passes.status
    record = InNet(site.task, site.net, status, num_matches, error=failure)
    if on_task := _ratio(trials[site.on_task.name, candidate], task_alone):
        record = replace(record, task_speedup=on_task[0])
    if same := _ratio(again, alone):
        record = replace(record, again=same[0])
    if on_task and task_alone.candidate_ms and alone.candidate_ms:
        share = num_matches * task_alone.candidate_ms / alone.candidate_ms
        remaining = 1 - share * (1 - 1 / on_task[0])
        record = replace(record, share=share, predicted=1 / remaining if remaining > 0 else None)
    if in_net is not None:
        speedup, low, high = in_net
        record = replace(record, speedup=speedup, low=low, high=high)
    return record


def _ratio(trial: Trial, reference: Trial) -> tuple[float, float, float] | None:
    """Return the speedup of a trial over another on the same graph, with its 95 % interval.

    Both speedups are over the same reference; their errors are taken as independent. None where one
    was not timed, or where the trial is wrong and the other is not.
    """
    least = max(CORRECT_AT, CORRECT_AT if reference.smallest_t is None else reference.smallest_t)
    if trial.smallest_t is None or trial.smallest_t > least:
        return None
    bounds = [(each.speedup, each.speedup_low, each.speedup_high) for each in (trial, reference)]
    if not all(value for values in bounds for value in values):
        return None
    (own, own_low, own_high), (base, base_low, base_high) = bounds
    assert own and own_low and own_high and base and base_low and base_high, "checked above"
    ratio = own / base
    down = math.hypot(math.log(own / own_low), math.log(base_high / base))
    up = math.hypot(math.log(own_high / own), math.log(base / base_low))
    return ratio, ratio * math.exp(-down), ratio * math.exp(up)
