"""A run on a Ray cluster, with judges as actors that own their processors or GPU."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from passnet.bench.environment import Environment
from passnet.bench.run import HERE, JudgeOrder, Judges, Recorder, environment_here
from passnet.bench.run_record import SAME_ENVIRONMENT, environment_difference
from passnet.core.jobs.actors import ActorDevice, on_each_machine, run_actors, this_machine
from passnet.errors import InputError, PassFolderError
from passnet.judge.desk.candidates import CandidateEntry
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.protocol.device import kind_of
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import held_out_graphs
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.passes.files import write_files
from passnet.passes.folder import LIST_FILE, is_pass_folder, packed_folder, unpack_folder


def device_of(settings: RunSettings) -> ActorDevice:
    """Return the resources of one judge: a processor for each thread, and its GPU."""
    return ActorDevice(settings.num_threads, int(kind_of(settings.judge.device) == "cuda"))


def environment_on_ray(settings: RunSettings) -> Environment:
    """Return the environment of most machines of the cluster."""
    return most_common(on_each_machine(partial(environment_here, settings), device_of(settings)))


def most_common(environments: Sequence[Environment]) -> Environment:
    """Return the first environment of the most frequent kind of machine."""
    kinds = [tuple(getattr(each, name) for name in SAME_ENVIRONMENT) for each in environments]
    [(kind, _)] = Counter(kinds).most_common(1)
    return environments[kinds.index(kind)]


def check_machine(environment: Environment, settings: RunSettings) -> None:
    """Raise InputError unless this machine is like those of a run."""
    if difference := environment_difference(environment, environment_here(settings)):
        name, run_value, value = difference
        raise InputError(f"it has {name} {value}, and the run is measured with {run_value}")


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """One task for a judge on another machine, with all that its judging needs."""

    task: Task
    entries: tuple[CandidateEntry, ...]
    folders: tuple[bytes | str | None, ...]
    """The packed pass folder of each candidate, or the reason why it cannot be read."""

    unseen: tuple[TaskGraph, ...]
    finished: frozenset[tuple[str, str]]
    machines: frozenset[str]
    """The machines that judged parts of the task before."""


def judge_on_ray(
    order: JudgeOrder, tasks: Sequence[Task], num_workers: int, record: Recorder
) -> None:
    """Judge tasks on the machines of a Ray cluster, one at a time by each judge.

    A task's trials are recorded together, so that another judge can repeat the task of a lost one.
    A task that another machine has judged in part is judged anew under all candidates. Machines
    that differ from the run's are left out.

    Raises:
        InputError: no machine is left.
        MeasureError: our own machinery fails again and again, or judges are lost over one task.
    """
    missing = []
    for task in tasks:
        keys = [(graph.name, entry.name) for graph in task.graphs for entry in order.entries]
        if not all(key in order.finished for key in keys):
            missing.append(task_order(order, task))
            continue
        for graph in task.graphs:
            record(graph.name, [])
    results = run_actors(
        missing,
        partial(_open_judge, order.environment, order.settings),
        num_workers,
        device_of(order.settings),
        lambda item: next(iter(item.machines), None),
    )
    for trials_by_graph in results:
        for graph, trials in trials_by_graph:
            record(graph, trials)


def task_order(order: JudgeOrder, task: Task) -> TaskOrder:
    """Return the part of an order that is about one task."""
    names = {graph.name for graph in task.graphs}
    finished = {key: at for key, at in order.finished.items() if key[0] in names}
    return TaskOrder(
        task,
        order.entries,
        tuple(_packed(entry, task.name) for entry in order.entries),
        tuple(held_out_graphs(order.held_out, task.name)),
        frozenset(finished),
        frozenset(machine for machine in finished.values() if machine is not None),
    )


def _packed(entry: CandidateEntry, task: str) -> bytes | str | None:
    """Return a candidate's files for a task as an archive, or why they cannot be read."""
    if entry.folder is None or entry.for_task(task) is None:
        return None
    path = entry.folder if is_pass_folder(entry.folder) else entry.folder / task
    try:
        return packed_folder(path, entry.folder.parent)
    except PassFolderError as cause:
        return str(cause)


Judge: TypeAlias = Callable[[TaskOrder], list[tuple[str, list[Trial]]]]


def _open_judge(environment: Environment, settings: RunSettings) -> Judge:
    """Return a judge of tasks on this machine, which must be like the run's."""
    check_machine(environment, settings)
    desk = JudgeDesk(settings, None).__enter__()  # its processes end with the actor

    def judge(order: TaskOrder) -> list[tuple[str, list[Trial]]]:
        finished = order.finished if order.machines <= {this_machine()} else ()
        entries = [
            _unpacked(entry, packed, Path(desk.root), order.task.name)
            for entry, packed in zip(order.entries, order.folders, strict=True)
        ]
        judged = desk.judge_entries(order.task, entries, order.unseen, finished)
        return [(graph.name, trials) for graph, trials in judged]

    return judge


def _unpacked(
    entry: CandidateEntry, packed: bytes | str | None, root: Path, task: str
) -> CandidateEntry:
    """Return a candidate with its files for a task on this machine, unpacked if it lacks them."""
    if entry.folder is None or _packed(entry, task) == packed:
        return entry
    above = root / hashlib.sha256(entry.name.encode()).hexdigest()[:16]
    folder = above / entry.folder.name
    if isinstance(packed, bytes):
        unpack_folder(packed, above)
    elif packed is not None:  # it fails here as it would there: its list is no list
        write_files({LIST_FILE: packed}, folder / task)
    template = replace(entry.template, passes=str(folder), root=str(folder))
    return replace(entry, folder=folder, template=template)


JUDGES = {"local": HERE, "ray": Judges(environment_on_ray, judge_on_ray)}
"""Judges by the name of their executor."""
