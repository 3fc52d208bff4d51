"""Shares of the time of nets that the tasks of a suite take, measured once and shipped with it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from passnet.bench.environment import hardware_text
from passnet.bench.in_nets import ALONE, TaskInNet, as_suite
from passnet.bench.run import run_suite
from passnet.bench.run_record import hash_of_run, run_folder
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import read_json
from passnet.errors import InputError
from passnet.judge.candidate import Candidate
from passnet.judge.desk.candidates import CandidateEntry
from passnet.judge.settings import RunSettings
from passnet.judge.suite.shipped import suites_folder
from passnet.judge.suite.suite import Suite

SHARES_FILE = "shares.json"


@dataclass(frozen=True, slots=True)
class NetShare:
    """The share of one task in the time of one net; both are compiled by Inductor.

    Attributes:
        task: name of the task.
        net: name of the net.
        places: places of the net's op sequence that hold the task's, without overlap.
        share: places times the time of the task there, over the time of the net; at most 1.
    """

    task: str
    net: str
    places: int
    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InputError(f"task {self.task}: its share is {self.share}, and not in (0, 1]")


@dataclass(frozen=True, slots=True)
class SuiteShares:
    """The shares of the tasks of a suite, as they were measured on one machine."""

    suite: str
    suite_hash: str
    hardware: str
    torch: str
    nets: tuple[NetShare, ...]

    @property
    def tasks(self) -> dict[str, float]:
        """The share of each task: the arithmetic mean over its nets."""
        by_task: dict[str, list[float]] = defaultdict(list)
        for each in self.nets:
            by_task[each.task].append(each.share)
        return {task: fmean(shares) for task, shares in by_task.items()}


def time_in_nets(
    sites: Sequence[TaskInNet], out: Path, settings: RunSettings, plan: RunPlan
) -> None:
    """Judge and time Inductor on each task and in each net; `out` is a run of these places."""
    entry = CandidateEntry(Candidate(ALONE, "inductor"))
    run_suite(as_suite(sites), [entry], settings, out, plan)


def shares_in_run(suite: Suite, sites: Sequence[TaskInNet], run: Path) -> SuiteShares:
    """Return the shares of a suite's tasks, as far as a run has timed Inductor in their nets.

    Args:
        suite: the tasks.
        sites: tasks in nets, of which the run may lack some.
        run: a run folder of `time_in_nets` or `in_nets.apply_in_nets`.

    Raises:
        InputError: the run has no times of Inductor for a task and its net.
    """
    folder = run_folder(run)
    info, trials = folder.read_info(), folder.records()
    times_ms = {
        graph: trial.candidate_ms
        for (graph, candidate), trial in trials.items()
        if candidate == ALONE and trial.status == "ok" and trial.candidate_ms
    }
    nets = []
    for site in sites:
        task_ms, net_ms = (times_ms.get(each.name) for each in (site.on_task, site.in_net))
        if task_ms and net_ms and site.num_places:
            share = min(1.0, site.num_places * task_ms / net_ms)
            nets.append(NetShare(site.task, site.net, site.num_places, share))
    if not nets:
        raise InputError(f"{run}: has not timed Inductor on a task of {suite.name} and in its net")
    hardware = hardware_text(info.environment, info.settings)
    return SuiteShares(
        suite.name, suite.content_hash, hardware, info.environment.torch, tuple(nets)
    )


def shipped_shares(suite_hash: str | None) -> dict[str, float]:
    """Return the share of each task of a suite with this content; empty if none ship."""
    for path in sorted(suites_folder().glob(f"*.{SHARES_FILE}")):
        found = read_json(path, SuiteShares)
        if found.suite_hash == suite_hash:
            return found.tasks
    return {}


def shares_for(run: Path, suite: Suite | None = None, file: Path | None = None) -> dict[str, float]:
    """Return the share of each task of a run, from a file or as shipped; empty if unknown.

    Args:
        run: a run folder, or a file of rows.
        suite: its suite; by default the one that the run folder names.
        file: shares to take instead of the shipped ones.

    Raises:
        InputError: the file cannot be read, or is of another suite than the run.
    """
    suite_hash = suite.content_hash if suite else hash_of_run(run)
    if file is None:
        return shipped_shares(suite_hash)
    found = read_json(file, SuiteShares)
    if suite_hash not in (None, found.suite_hash):
        raise InputError(f"{file}: holds shares of another suite or version, {found.suite}")
    return found.tasks
