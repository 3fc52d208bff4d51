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
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.held_out import held_out_graphs
from passnet.judge.protocol.device import find_device, kind_of
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import Suite
from passnet.judge.task import Task
from passnet.judge.trial import Trial


@dataclass(frozen=True)
class JudgeOrder:
    """The order that the judges of a run get.

    `finished` has the machine of every trial that is known, by graph and candidate; `environment`
    is what the run is measured with.
    """

    entries: tuple[CandidateEntry, ...]
    settings: RunSettings
    held_out: Suite | None
    finished: Mapping[tuple[str, str], str | None]
    environment: Environment


Recorder: TypeAlias = Callable[[str, list[Trial]], None]
"""Takes the name of a finished graph, and its new trials."""


@dataclass(frozen=True)
class Judges:
    """A place that judges tasks: this machine, or a cluster.

    Args:
        environment: what is measured with there.
        judge: judges tasks as ordered, so many at a time, and hands over their trials.
    """

    environment: Callable[[RunSettings], Environment]
    judge: Callable[[JudgeOrder, Sequence[Task], int, Recorder], None]


def environment_here(settings: RunSettings) -> Environment:
    """The environment of this process.

    Raises:
        InputError: this machine lacks the device that is judged on.
    """
    find_device(settings.judge.device)
    return describe_environment(kind_of(settings.judge.device) == "cuda")


def judge_here(order: JudgeOrder, tasks: Sequence[Task], num_workers: int, done: Recorder) -> None:
    """Judge tasks in processes of this machine; nothing else runs while one is timed."""
    idle_desks: SimpleQueue[JudgeDesk] = SimpleQueue()

    def work_on(task: Task) -> None:
        desk = idle_desks.get()
        unseen = held_out_graphs(order.held_out, task.name)
        try:
            for graph, trials in desk.judge_entries(task, order.entries, unseen, order.finished):
                done(graph.name, trials)
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

    Every trial is written to `out/trials.jsonl` and flushed when it is known. A run that was killed
    goes on with `resume`; finished trials are neither lost nor repeated.

    Args:
        suite: the graphs.
        entries: the candidates.
        settings: how to measure.
        out: the run folder.
        plan: how the run is worked off: its items are tasks, and `progress` gets the name of every
            graph that is done. Nothing else runs while a task is timed.
        held_out: shapes of the same tasks that no author has seen; see `judge.held_out`.
        judges: the machine or Ray cluster that judges; see `bench.cluster`.

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
        others = [trial for folder in plan.parts for trial in trials_of_part(folder, info)]
        stack.enter_context(run.begin(info, plan.resume, partial(continued, out)))
        if plan.retry:
            run.forget(lambda trial: trial.status == "unstable")
        graphs = {graph.name for task in suite.tasks for graph in task.graphs}
        trials = {key: trial for key, trial in run.records().items() if trial.graph in graphs}
        run.take(others, trials, lambda trial: trial.status != "unstable")
        record = stack.enter_context(run.recorder(len(trials)))
        finished = {key: trial.machine for key, trial in trials.items()}
        order = JudgeOrder(tuple(entries), settings, held_out, finished, info.environment)

        def done(graph: str, new_trials: list[Trial]) -> None:
            with recording:
                for trial in new_trials:
                    record(trial)
                    trials[trial.graph, trial.candidate] = trial
                plan.progress(graph)

        judges.judge(order, tasks, plan.num_workers, done)
    return list(trials.values())


def tasks_of_part(suite: Suite, shard: RunShard) -> list[Task]:
    """Return the tasks of a part of a run.

    Raises:
        InputError: there are none.
    """
    tasks = [task for task in suite.tasks if shard.has(task.name)]
    if not tasks:
        raise InputError(
            f"part {shard.number} of {shard.total} has no task of {suite.name}; take fewer parts"
        )
    return tasks
