"""A run: every candidate on every graph of a suite, each trial on disk as soon as it is known."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TypeAlias

from passnet.bench.environment import Environment, describe_environment
from passnet.bench.run_record import continued, run_folder, run_info, trials_of_part
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan, RunShard
from passnet.errors import InputError
from passnet.judge.desk.candidates import CandidateEntry
from passnet.judge.protocol.device import find_device, kind_of
from passnet.judge.score.status import MACHINES_FAULT
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import Suite, held_out_graphs
from passnet.judge.task import Task
from passnet.judge.trial import Trial


@dataclass(frozen=True)
class JudgeOrder:
    """The order to the judges of a run."""

    entries: tuple[CandidateEntry, ...]
    settings: RunSettings
    held_out: Suite | None
    finished: Mapping[tuple[str, str], str | None]
    """The machine of every recorded trial, by graph and candidate."""

    environment: Environment


Recorder: TypeAlias = Callable[[str, list[Trial]], None]
"""Records the new trials of a finished graph, by its name."""


@dataclass(frozen=True)
class Judges:
    """The judges of this machine, or of a cluster."""

    environment: Callable[[RunSettings], Environment]
    judge: Callable[[JudgeOrder, Sequence[Task], int, Recorder], None]
    """Judges a number of tasks at a time, and records their trials."""


def environment_here(settings: RunSettings) -> Environment:
    """Return the environment of this process; raise InputError if it lacks the judge's device."""
    find_device(settings.judge.device)
    return describe_environment(kind_of(settings.judge.device) == "cuda")


def judge_here(
    order: JudgeOrder, tasks: Sequence[Task], num_workers: int, record: Recorder
) -> None:
    """Judge tasks in processes of this machine; nothing else runs while one is timed."""
    from passnet.judge.desk.desk import JudgeDesk  # needs Linux, which reading a run does not

    idle_desks: SimpleQueue[JudgeDesk] = SimpleQueue()

    def work_on(task: Task) -> None:
        desk = idle_desks.get()
        unseen = held_out_graphs(order.held_out, task.name)
        try:
            for graph, trials in desk.judge_entries(task, order.entries, unseen, order.finished):
                record(graph.name, trials)
        finally:  # other tasks wait for a desk, even those that are about to be given up
            idle_desks.put(desk)

    with ExitStack() as stack:
        desks = [stack.enter_context(JudgeDesk(order.settings, None)) for _ in range(num_workers)]
        for desk in desks:
            idle_desks.put(desk)
        threads = stack.enter_context(ThreadPoolExecutor(num_workers))
        try:
            for future in as_completed(threads.submit(work_on, task) for task in tasks):
                future.result()
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for desk in desks:
                desk.close()
            raise


HERE = Judges(environment_here, judge_here)


def run_suite(
    suite: Suite,
    entries: Sequence[CandidateEntry],
    settings: RunSettings,
    out: Path,
    plan: RunPlan = DEFAULT_PLAN,
    held_out: Suite | None = None,
    judges: Judges = HERE,
) -> list[Trial]:
    """Return all trials of a suite under some candidates, measured or read from `out`.

    Every trial is written to `out/trials.jsonl` and flushed at once, so that a killed run can be
    resumed. Nothing else runs while a task is timed.

    Args:
        suite: the graphs.
        entries: the candidates.
        settings: settings of the judge.
        out: the run folder.
        plan: a plan whose items are tasks; `progress` gets the name of every finished graph.
        held_out: shapes of the same tasks that no author has seen; see `judge.held_out`.
        judges: the judges, here or on a Ray cluster; see `bench.cluster`.

    Raises:
        InputError: `out` holds a run and `plan.resume` is off; it or one of `plan.parts` holds
            another run than this one; or the part has no task.
        MeasureError: our own machinery fails again and again.
    """
    settings = replace(settings, held_out=held_out.content_hash if held_out else None)
    tasks = tasks_of_part(suite, plan.shard)
    run = run_folder(out)
    recording = threading.Lock()
    with ExitStack() as stack:
        info = run_info(suite, entries, settings, judges.environment(settings))
        part_trials = [trial for folder in plan.parts for trial in trials_of_part(folder, info)]
        stack.enter_context(run.begin(info, plan.resume, partial(continued, suite, out)))
        if plan.retry:  # trials of other candidates and parts are not measured here
            part_graphs = {graph.name for task in tasks for graph in task.graphs}
            names = {entry.name for entry in entries}
            run.forget(
                lambda trial: (
                    trial.status in MACHINES_FAULT
                    and trial.graph in part_graphs
                    and trial.candidate in names
                )
            )
        graphs = {graph.name for task in suite.tasks for graph in task.graphs}
        trials = {key: trial for key, trial in run.records().items() if trial.graph in graphs}
        run.take(part_trials, trials, lambda trial: trial.status not in MACHINES_FAULT)
        write = stack.enter_context(run.recorder(len(trials)))
        finished = {key: trial.machine for key, trial in trials.items()}
        order = JudgeOrder(tuple(entries), settings, held_out, finished, info.environment)

        def record(graph: str, new_trials: list[Trial]) -> None:
            with recording:
                for trial in new_trials:
                    write(trial)
                    trials[trial.graph, trial.candidate] = trial
                if all((graph, entry.name) in trials for entry in entries):
                    plan.progress(graph)

        judges.judge(order, tasks, plan.num_workers, record)
    return list(trials.values())


def tasks_of_part(suite: Suite, shard: RunShard) -> list[Task]:
    """Return the tasks of a part of a run; raise InputError if there are none."""
    tasks = [task for task in suite.tasks if shard.has(task.name)]
    if not tasks:
        raise InputError(
            f"part {shard.number} of {shard.total} has no task of {suite.name}; take fewer parts"
        )
    return tasks
