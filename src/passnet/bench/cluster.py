"""A run on a Ray cluster, with judges as actors that own their processors or GPU."""

from collections.abc import Callable, Sequence
from functools import partial

from passnet.bench.environment import Environment
from passnet.bench.run import HERE, JudgeOrder, Judges, Recorder, environment_here
from passnet.bench.run_record import environment_difference
from passnet.core.jobs.actors import ActorDevice, run_actors, this_machine
from passnet.errors import InputError
from passnet.judge.desk.candidates import CandidateEntry, parse_candidate
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.held_out import held_out_graphs
from passnet.judge.protocol.device import kind_of
from passnet.judge.settings import RunSettings
from passnet.judge.task import Task
from passnet.judge.trial import Trial


def device_of(settings: RunSettings) -> ActorDevice:
    """Return the resources of one judge: a processor for each thread, and its GPU."""
    return ActorDevice(settings.num_threads, int(kind_of(settings.judge.device) == "cuda"))


def environment_on_ray(settings: RunSettings) -> Environment:
    """Return the environment of a judge of the cluster."""
    [environment] = run_actors([settings], _describer, 1, device_of(settings))
    return environment


def _describer() -> Callable[[RunSettings], Environment]:
    return environment_here


def judge_on_ray(
    order: JudgeOrder, tasks: Sequence[Task], num_workers: int, record: Recorder
) -> None:
    """Judge tasks on the machines of a Ray cluster, one at a time by each judge.

    A task's trials are recorded together, so that another judge can repeat the task of a lost one.
    A task that another machine has judged in part is judged anew under all candidates.

    Raises:
        InputError: a machine differs from the others, or does not see the pass folders.
        MeasureError: our own machinery fails again and again, or judges are lost over one task.
    """
    missing = []
    for task in tasks:
        keys = [(graph.name, entry.name) for graph in task.graphs for entry in order.entries]
        if not all(key in order.finished for key in keys):
            missing.append(task)
            continue
        for graph in task.graphs:
            record(graph.name, [])
    homes = {task.name: next(iter(_machines(task, order)), None) for task in missing}
    results = run_actors(
        missing,
        partial(_open_judge, order, tuple(tasks)),
        num_workers,
        device_of(order.settings),
        lambda task: homes[task.name],
    )
    for trials_by_graph in results:
        for graph, trials in trials_by_graph:
            record(graph, trials)


def _machines(task: Task, order: JudgeOrder) -> set[str]:
    """Return the machines that judged parts of a task before."""
    names = {graph.name for graph in task.graphs}
    finished = order.finished.items()
    return {machine for (graph, _), machine in finished if graph in names and machine is not None}


def _open_judge(
    order: JudgeOrder, tasks: tuple[Task, ...]
) -> Callable[[Task], list[tuple[str, list[Trial]]]]:
    """Return a judge of tasks on this machine, which must be like the run's."""
    machine, settings = this_machine(), order.settings
    if difference := environment_difference(order.environment, environment_here(settings)):
        name, run_value, value = difference
        raise InputError(
            f"the run is measured with {name} {run_value}, and machine {machine} has {value}; "
            "times of both cannot be in one run, let the cluster have machines of one kind"
        )
    for entry in order.entries:
        _check_folder(entry, tasks)
    desk = JudgeDesk(settings, None).__enter__()  # its processes end with the actor

    def judge(task: Task) -> list[tuple[str, list[Trial]]]:
        finished = order.finished if _machines(task, order) <= {machine} else {}
        unseen = held_out_graphs(order.held_out, task.name)
        judged = desk.judge_entries(task, order.entries, unseen, finished)
        return [(graph.name, trials) for graph, trials in judged]

    return judge


def _check_folder(entry: CandidateEntry, tasks: tuple[Task, ...]) -> None:
    """Raise InputError unless this machine has the files of a candidate."""
    if entry.folder is None:
        return
    if not entry.folder.is_dir():
        raise InputError(
            f"candidate {entry.name}: machine {this_machine()} has no folder {entry.folder}; put "
            "it where all machines of the cluster see it"
        )
    if parse_candidate(str(entry.folder), tasks).code_hash != entry.code_hash:
        raise InputError(
            f"candidate {entry.name}: machine {this_machine()} has other files in {entry.folder}; "
            "let all machines of the cluster see the same"
        )


JUDGES = {"local": HERE, "ray": Judges(environment_on_ray, judge_on_ray)}
"""Judges by the name of their executor."""
