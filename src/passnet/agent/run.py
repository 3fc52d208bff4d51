"""A run of an author over a suite: every attempt on disk as soon as it has ended, and resumable."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from passnet.agent.attempt import Attempt
from passnet.agent.attempt_record import AttemptProgress, finished
from passnet.agent.evaluator import Workbench
from passnet.agent.files import write_files
from passnet.agent.session import Session
from passnet.agent.settings import AgentSettings
from passnet.bench.run import held_out_graphs
from passnet.errors import AuthorError, InputError
from passnet.jobs.run_folder import RunFolder, unchanged
from passnet.judge.protocol.device import find_device
from passnet.records.serialise import SCHEMA_VERSION, LineWriter
from passnet.suite.suite import Suite, Task

if TYPE_CHECKING:
    from inspect_ai import Task as InspectTask
    from inspect_ai.model import Model

RUN_FILE = "agent.json"
ATTEMPTS_FILE = "attempts.jsonl"
LOGS_FOLDER = "logs"
PASSES_FOLDER = "passes"

Keep: TypeAlias = Callable[[Attempt], None]
Author: TypeAlias = Callable[[Session, int], None]
"""Writes passes in a session, with a seed, until it submits."""

AUTHORS = {
    "compiler": "passnet.agent.authors.compiler:compiler_author",
    "search": "passnet.agent.authors.search:search_author",
}
"""The authors that are programs, imported on use."""


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
    progress: Keep | None = None,
) -> list[Attempt]:
    """All attempts of an author at the tasks of a suite, made or found finished in `out`.

    Args:
        suite: the tasks.
        settings: author, limits, and how is judged.
        out: the folder of the run: the attempts, the best pass folder of each task under `passes`,
            and for an llm Inspect's logs under `logs`.
        resume: go on with what `out` holds; attempts that ended in an error are made again.
        num_workers: attempts of an llm at a time; nothing else runs while one is timed.
        held_out: shapes of the same tasks that no author sees.
        progress: told about every attempt.

    Raises:
        InputError: `out` holds a run and `resume` is off, or another run; this machine lacks the
            device that is judged on.
        AuthorError: the llm cannot be asked at all (no key, no such provider).
    """
    find_device(settings.run.judge.device)
    llm = _open_llm(settings) if settings.author == "llm" else None
    held = held_out.content_hash if held_out else None
    settings = replace(settings, run=replace(settings.run, held_out=held))
    info = AgentRun(SCHEMA_VERSION, suite.name, suite.content_hash, settings)
    run = RunFolder(
        out,
        RUN_FILE,
        AgentRun,
        ATTEMPTS_FILE,
        Attempt,
        lambda attempt: (attempt.task, attempt.number),
        "attempts",
    )
    complaint = f"{out}: was made with another suite or other settings; choose another --out"
    run.begin(info, resume, unchanged(complaint))
    names = {task.name for task in suite.tasks}
    known = {
        key: attempt
        for key, attempt in run.records().items()
        if attempt.ending != "error" and attempt.task in names
    }
    lock = threading.Lock()
    with LineWriter(run.records_path) as writer:

        def keep(attempt: Attempt) -> None:
            with lock:
                writer.write(attempt)
                known[attempt.task, attempt.number] = attempt
                _keep_passes(out / PASSES_FOLDER, attempt, list(known.values()))
                if progress is not None:
                    progress(attempt)

        if llm is None:
            _let_program(suite, settings, held_out, set(known), keep)
        elif len(known) < len(suite.tasks) * settings.num_attempts:
            from passnet.agent.inspect_task import make_task

            task = make_task(suite, settings, held_out, set(known), keep)
            _ask_llm(llm, task, out, num_workers)
    return [known[key] for key in sorted(known)]


def _keep_passes(folder: Path, attempt: Attempt, others: list[Attempt]) -> None:
    """Leave the pass folder of an attempt under its task, if it is the best of the run there."""
    if attempt.best is None:
        return
    scores = [_score(item) for item in others if item.task == attempt.task]
    if _score(attempt) < max(scores):
        return
    target = folder / attempt.task
    if target.exists():
        for item in target.iterdir():
            item.unlink()
    write_files(attempt.files, target)


def _score(attempt: Attempt) -> float:
    if attempt.final_score is not None:
        return attempt.final_score
    return attempt.score if attempt.score is not None else 0.0


def _open_llm(settings: AgentSettings) -> Model:
    """The llm of a run, before anything is written.

    Raises:
        InputError: Inspect is not installed, or a limit of cost has no prices.
        AuthorError: no such provider, or no key.
    """
    if importlib.util.find_spec("inspect_ai") is None:
        raise InputError("an llm as author needs the extra agent: pip install 'passnet[agent]'")
    from passnet.agent.inspect_llm import check_price, open_llm

    if settings.llm is None:
        raise InputError("the author llm needs the name of one: give --llm provider/name")
    llm = open_llm(settings.llm)
    if settings.limits.cost is not None:
        check_price(llm, settings.llm)
    return llm


def _ask_llm(llm: Model, task: InspectTask, out: Path, num_workers: int) -> None:
    """Let an llm make the attempts of a task of Inspect.

    Raises:
        AuthorError: it was interrupted, or Inspect failed.
    """
    import inspect_ai

    logs = inspect_ai.eval(
        task,
        model=llm,
        log_dir=str(out / LOGS_FOLDER),
        display="none",
        max_samples=num_workers,
        max_connections=num_workers,
        fail_on_error=False,
    )
    if not logs or logs[0].status == "cancelled":
        raise AuthorError(f"{out}: interrupted; what had ended is kept, go on with --resume")
    if logs[0].status == "error":
        text = logs[0].error.message if logs[0].error else "no reason was given"
        raise AuthorError(f"llm {llm}: {text}")


def _let_program(
    suite: Suite,
    settings: AgentSettings,
    held_out: Suite | None,
    done: Collection[tuple[str, int]],
    keep: Keep,
) -> None:
    """Attempts of an author that is a program, one after the other."""
    wanted = [(task, number) for number in range(settings.num_attempts) for task in suite.tasks]
    for task, number in wanted:
        if (task.name, number) not in done:
            keep(_attempt(suite, task, number, settings, held_out))


def _attempt(
    suite: Suite, task: Task, number: int, settings: AgentSettings, held_out: Suite | None
) -> Attempt:
    progress = AttemptProgress()
    author = _author(settings.author)
    with Workbench(settings.run, settings.call) as bench:
        unseen = held_out_graphs(held_out, task.name)
        session = Session(task, bench, unseen, settings.is_guarded)
        try:
            author(session, settings.seed + number)
        except AuthorError as cause:
            progress.ending, progress.error = "error", str(cause)
    progress.num_turns = session.turn
    return finished(session, progress, suite, settings, number)


def _author(name: str) -> Author:
    module, function = AUTHORS[name].split(":")
    return getattr(import_module(module), function)
