"""A run of an author over a suite: every attempt on disk as soon as it has ended, and resumable."""

from __future__ import annotations

import errno
import importlib.util
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Attempt, best_state
from passnet.agent.attempts.attempt_record import attempt_record
from passnet.agent.attempts.session import Session, new_session
from passnet.agent.settings import AgentSettings, LlmSettings
from passnet.bench.cluster import device_of
from passnet.bench.run import tasks_of_part
from passnet.core.jobs.actors import run_actors
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.jobs.shards import WHOLE, RunShard
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.errors import AuthorError, InputError, boundary
from passnet.judge.desk.evaluator import Evaluator
from passnet.judge.protocol.device import find_device
from passnet.judge.suite.suite import Suite
from passnet.judge.task import Task
from passnet.passes.files import write_files

if TYPE_CHECKING:
    from inspect_ai import Task as InspectTask
    from inspect_ai.model import Model

PASSES_FOLDER = "passes"

Author: TypeAlias = Callable[[Session, int], None]
"""Writes passes in a session, with a seed, until it submits."""

AUTHORS = {
    "compiler": "passnet.agent.authors.compiler:compiler_author",
    "search": "passnet.agent.authors.search:search_author",
}
"""The authors that are programs, imported on use."""


def program_author(name: str, most_evaluations: int) -> Author:
    """The author of that name in `AUTHORS`; the search makes so many evaluations at most."""
    module, function = AUTHORS[name].split(":")
    author: Callable[..., None] = getattr(import_module(module), function)
    return partial(author, budget=most_evaluations) if name == "search" else author


@dataclass(frozen=True)
class AgentRun:
    """What a run was begun with."""

    schema_version: int
    suite: str
    suite_hash: str
    settings: AgentSettings


def run_agent(
    suite: Suite,
    settings: AgentSettings,
    out: Path,
    resume: bool = False,
    num_workers: int = 1,
    held_out: Suite | None = None,
    progress: Callable[[Attempt], None] | None = None,
    on_ray: bool = False,
    program: Author | None = None,
    shard: RunShard = WHOLE,
    taken: Sequence[Path] = (),
) -> list[Attempt]:
    """All attempts of an author at the tasks of a suite, made or found finished in `out`.

    The folder gets the attempts, the best pass folder of each task under `passes`, and for an llm
    Inspect's logs under `logs`. With `resume` a run goes on with what `out` holds; attempts that
    ended in an error are made again. An llm makes `num_workers` attempts at a time, but nothing
    else runs while one is timed. `held_out` are shapes of the same tasks that no author sees;
    `progress` is told about every attempt, first about those found finished. With `on_ray` a
    program makes its attempts on a Ray cluster, `num_workers` at a time, each with processors or a
    GPU of its own. `program` is the author where it is none of `AUTHORS`. `shard` is the part of
    the tasks to work on; what the folders of other parts, `taken`, hold is taken over.

    Raises:
        InputError: `out` holds a run and `resume` is off; it or one of `taken` holds another run;
            the part has no task; this machine lacks the device that is judged on; an llm is to work
            on Ray.
        AuthorError: the llm cannot be asked at all (no key, no such provider).
    """
    if on_ray and settings.author == "llm":
        raise InputError(
            "--executor ray is for authors that are programs; an llm's attempts run beside each "
            "other on this machine with --jobs"
        )
    if not on_ray:
        find_device(settings.run.judge.device)
    llm = open_author(settings.llm, settings.limits.cost) if settings.author == "llm" else None
    content_hash = held_out.content_hash if held_out else None
    settings = replace(settings, run=replace(settings.run, held_out=content_hash))
    key = attrgetter("task", "number")
    run = RunFolder(out, "agent.json", AgentRun, ATTEMPTS_FILE, Attempt, key, "attempts")
    complaint = f"{out}: was made with another suite or other settings; choose another --out"
    info = AgentRun(SCHEMA_VERSION, suite.name, suite.content_hash, settings)
    tasks = tasks_of_part(suite, shard)
    others: list[Attempt] = []
    for folder in taken:
        part = replace(run, out=folder)
        if part.read_info() != info:
            raise InputError(
                f"{folder}: was made with another suite or other settings; it is no part of this "
                "run"
            )
        others += part.records().values()
    names = {task.name for task in suite.tasks}
    lock = threading.Lock()
    with ExitStack() as stack:
        stack.enter_context(run.begin(info, resume, unchanged(complaint)))
        attempts = {
            key: attempt
            for key, attempt in run.records().items()
            if attempt.ending != "error" and attempt.task in names
        }
        run.take(
            [attempt for attempt in others if attempt.ending != "error"], attempts, lambda _: True
        )
        numbers = range(settings.num_attempts)
        elsewhere = [name for name in names if not shard.has(name)]
        finished = {*attempts, *((name, number) for name in elsewhere for number in numbers)}
        record = stack.enter_context(run.recorder(len(attempts)))
        for attempt in attempts.values():  # a full disk may have kept them out
            _keep_passes(out / PASSES_FOLDER, attempt, list(attempts.values()))
            if progress is not None and shard.has(attempt.task):
                progress(attempt)
        refusals: list[OSError | InputError] = []

        def keep(attempt: Attempt) -> None:
            with lock:
                try:
                    record(attempt)
                    attempts[attempt.task, attempt.number] = attempt
                    if attempt.last_score is not None or not settings.is_guarded:
                        _keep_passes(out / PASSES_FOLDER, attempt, list(attempts.values()))
                except (OSError, InputError) as cause:
                    refusals.append(cause)
                    raise
                if progress is not None:
                    progress(attempt)

        def check() -> None:
            if refusals:
                raise refusals[0]

        if llm is None:
            missing = [
                (task, number)
                for number in numbers
                for task in tasks
                if (task.name, number) not in finished
            ]
            made: Iterable[Attempt] = ()
            if on_ray:
                opener = partial(_open_program, suite, settings, held_out, program)
                made = run_actors(missing, opener, num_workers, device_of(settings.run))
            elif missing:
                author = _ProgramAuthor(suite, settings, held_out, program)
                made = map(stack.enter_context(author).attempt, missing)
            for attempt in made:
                keep(attempt)
        elif len(finished) < len(suite.tasks) * settings.num_attempts:
            from passnet.agent.authors.inspect_task import make_task

            task_of_inspect = make_task(suite, settings, held_out, finished, keep, check)
            try:
                _ask_llm(llm, task_of_inspect, out, num_workers)
            finally:
                check()
    return [attempts[key] for key in sorted(attempts)]


def _keep_passes(folder: Path, attempt: Attempt, attempts: list[Attempt]) -> None:
    """Leave the pass folder of an attempt under its task, if it is the best of the run there."""
    rivals = [rival for rival in attempts if rival.task == attempt.task and rival.best is not None]
    best = best_state([(rival.last_score, rival.is_right) for rival in rivals])
    if best is None or rivals[best].key != attempt.key:
        return
    target = folder / attempt.task
    write_files(attempt.files, target)
    for file in target.iterdir():
        if file.is_file() and file.name not in attempt.files:
            file.unlink()


def open_author(settings: LlmSettings | None, cost: float | None = None) -> Model:
    """The llm of a run, before anything is written; `cost` is the limit of an attempt, in dollars.

    Raises:
        InputError: Inspect is not installed, or broken, or a limit of cost has no prices.
        AuthorError: no such provider, or no key.
    """
    if importlib.util.find_spec("inspect_ai") is None:
        raise InputError("an llm as author needs the extra agent: pip install 'passnet[agent]'")
    with boundary(InputError, "inspect_ai, which asks llms, cannot be imported"):
        from passnet.agent.authors.inspect_llm import check_price, open_llm

    if settings is None:
        raise InputError("the author llm needs the name of one: give --llm provider/name")
    llm = open_llm(settings)
    if cost is not None:
        check_price(llm, settings)
    return llm


def _ask_llm(llm: Model, task: InspectTask, out: Path, num_workers: int) -> None:
    """Let an llm make the attempts of a task of Inspect.

    Raises:
        AuthorError: Inspect failed.
        KeyboardInterrupt: it was interrupted, which Inspect keeps to itself.
        OSError: the disk is too full for Inspect's logs.
    """
    import inspect_ai

    logs = inspect_ai.eval(
        task,
        model=llm,
        log_dir=str(out / "logs"),
        display="none",
        max_samples=num_workers,
        max_connections=num_workers,
        fail_on_error=False,
    )
    if not logs or logs[0].status == "cancelled":
        raise KeyboardInterrupt
    if logs[0].status == "error":
        text = logs[0].error.message if logs[0].error else "no reason was given"
        for number in (errno.ENOSPC, errno.EDQUOT):  # Inspect keeps of an error its text alone
            if os.strerror(number) in text:
                raise OSError(number, os.strerror(number), str(out / "logs"))
        raise AuthorError(f"llm {llm}: {text}")


class _ProgramAuthor:
    """An author that is a program, with processes that judge all its attempts, one after another:
    to start them takes longer than to judge most attempts.
    """

    def __init__(
        self,
        suite: Suite,
        settings: AgentSettings,
        held_out: Suite | None,
        program: Author | None,
    ) -> None:
        self._suite = suite
        self._settings = settings
        self._held_out = held_out
        self._author = program or program_author(settings.author, settings.limits.turns)
        self._evaluator = Evaluator(settings.run, settings.call)

    def __enter__(self) -> _ProgramAuthor:
        self._evaluator.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._evaluator.__exit__(*error)

    def attempt(self, item: tuple[Task, int]) -> Attempt:
        """An attempt at a task: its task and number."""
        task, number = item
        session = new_session(task, self._settings, self._held_out, self._evaluator)
        try:
            self._author(session, self._settings.seed + number)
        except AuthorError as cause:
            session.ending, session.error = "error", str(cause)
        session.num_turns = session.turn
        return attempt_record(session, self._suite, self._settings, number, self._evaluator)


def _open_program(
    suite: Suite, settings: AgentSettings, held_out: Suite | None, program: Author | None
) -> Callable[[tuple[Task, int]], Attempt]:
    """What makes attempts on a machine of a cluster, which has the device that is judged on; its
    processes end with it.
    """
    find_device(settings.run.judge.device)
    return _ProgramAuthor(suite, settings, held_out, program).__enter__().attempt
