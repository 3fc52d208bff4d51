"""A run of an author over a suite: attempts are on disk as they end, and resumable."""

from __future__ import annotations

import errno
import importlib.util
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Attempt, best_state
from passnet.agent.attempts.attempt_record import attempt_record
from passnet.agent.attempts.session import Session, new_session
from passnet.agent.authors.programs import Author, program_author
from passnet.agent.settings import AgentSettings, LlmSettings, input_digests
from passnet.bench.cluster import check_machine, device_of, environment_on_ray
from passnet.bench.environment import Environment
from passnet.bench.run import environment_here, tasks_of_part
from passnet.bench.run_record import environment_difference
from passnet.core.jobs.actors import run_actors
from passnet.core.jobs.run_folder import RunFolder
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan
from passnet.core.records.folders import below
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.errors import AuthorError, InputError, boundary
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.suite.suite import Suite
from passnet.judge.task import Task
from passnet.passes.files import write_files

if TYPE_CHECKING:
    from inspect_ai import Task as InspectTask
    from inspect_ai.model import Model

RUN_FILE = "agent.json"
PASSES_FOLDER = "passes"


@dataclass(frozen=True)
class AgentRun:
    """Record of the settings of a run."""

    schema_version: int
    suite: str
    suite_hash: str
    settings: AgentSettings
    environment: Environment


AgentFolder: TypeAlias = RunFolder[AgentRun, Attempt, tuple[str, int]]
"""Folder of a run of attempts, by task and number."""


def run_agent(
    suite: Suite,
    settings: AgentSettings,
    out: Path,
    plan: RunPlan = DEFAULT_PLAN,
    held_out: Suite | None = None,
    program: Author | None = None,
    watch: Callable[[Session], None] = lambda session: None,
) -> list[Attempt]:
    """Make all attempts of an author at the tasks of a suite, or read them from `out`.

    The folder gets the attempts, the best pass folder of each task under `passes`, and for an LLM
    Inspect's logs under `logs`. A resumed run repeats attempts that ended in an error. Several
    workers make an LLM's attempts at a time, but nothing else runs while one is timed; a program
    has several workers only on a Ray cluster. `held_out` are shapes of the same tasks that no
    author sees; `program` is an author that is none of `AUTHORS`. `watch` gets the session of an
    attempt after each answer of an LLM.

    Raises InputError for a folder or part of another run or of another machine, without tasks in
    the part, or without the device; AuthorError if the LLM cannot be asked at all.
    """
    if plan.is_on_ray and settings.author == "llm":
        raise InputError(
            "--executor ray is for authors that are programs; an LLM makes several attempts at a "
            "time on this machine with --jobs"
        )
    if plan.num_workers > 1 and not plan.is_on_ray and settings.author != "llm":
        raise InputError(
            "a program makes one attempt at a time on this machine: leave --jobs out, or give "
            "--executor ray"
        )
    environment = (environment_on_ray if plan.is_on_ray else environment_here)(settings.run)
    llms = open_author(settings.llm, settings.limits.cost) if settings.author == "llm" else []
    content_hash = held_out.content_hash if held_out else None
    settings = replace(
        settings,
        run=replace(settings.run, held_out=content_hash),
        digests=input_digests(settings),
    )
    tasks = tasks_of_part(suite, plan.shard)
    run = agent_folder(out)
    info = AgentRun(SCHEMA_VERSION, suite.name, suite.content_hash, settings, environment)
    others = _attempts_of_parts(info, plan.parts)

    def continued(begun: AgentRun, info: AgentRun) -> AgentRun:
        if difference := _difference(begun, info):
            raise InputError(f"{out}: {difference}; choose another --out")
        return begun

    with ExitStack() as stack:
        stack.enter_context(run.begin(info, plan.resume, continued))
        log = stack.enter_context(_opened_log(run, info, suite, plan, others))
        missing = [
            (task, number)
            for number in range(settings.num_attempts)
            for task in tasks
            if not log.is_done(task.name, number)
        ]
        if not llms:
            attempts: Iterable[Attempt] = ()
            if plan.is_on_ray:
                attempts = _attempts_on_ray(suite, info, missing, held_out, program, plan)
            elif missing:
                author = stack.enter_context(_ProgramAuthor(suite, settings, program))
                attempts = (author.attempt((*item, held_out)) for item in missing)
            for attempt in attempts:
                log.keep(attempt)
        elif missing:
            from passnet.agent.authors.inspect_task import make_task

            inspect_task = make_task(
                suite, settings, held_out, missing, log.keep, log.check, llms, watch
            )
            try:
                _ask_llm(llms[0], inspect_task, out, plan.num_workers)
            finally:
                log.check()
    return [log.attempts[key] for key in sorted(log.attempts)]


def agent_folder(out: Path) -> AgentFolder:
    """Return the folder of a run of attempts."""
    key = attrgetter("task", "number")
    return RunFolder(out, RUN_FILE, AgentRun, ATTEMPTS_FILE, Attempt, key, "attempts")


def _difference(old: AgentRun, new: AgentRun) -> str | None:
    """Return the reason, as the end of a sentence, why two runs cannot be one; None if they can."""
    if replace(old, environment=new.environment) != new:
        return "was made with another suite or other settings, or files that they name differ"
    if difference := environment_difference(old.environment, new.environment):
        name, before, now = difference
        return f"was made with {name} {before}, and here it is {now}; times of both do not compare"
    return None


def _attempts_of_parts(info: AgentRun, folders: Sequence[Path]) -> list[Attempt]:
    attempts: list[Attempt] = []
    for folder in folders:
        part = agent_folder(folder)
        if difference := _difference(part.read_info(), info):
            raise InputError(f"{folder}: {difference}; it is no part of this run")
        attempts += part.records().values()
    return [attempt for attempt in attempts if _is_done(attempt)]


def _is_done(attempt: Attempt) -> bool:
    return attempt.ending != "error"


class _AttemptLog:
    """The last attempts of a run by task and number; it stores new ones from any thread.

    `passes` always holds the best pass folders of these attempts.
    """

    def __init__(
        self,
        info: AgentRun,
        folder: Path,
        attempts: dict[tuple[str, int], Attempt],
        record: Callable[[Attempt], None],
        progress: Callable[[Attempt], None],
    ) -> None:
        self.attempts = attempts
        self._is_guarded = info.settings.is_guarded
        self._folder = folder
        self._record = record
        self._progress = progress
        self._lock = threading.Lock()
        self._refusals: list[OSError | InputError] = []

    def is_done(self, task: str, number: int) -> bool:
        """Return whether there is such an attempt, and it did not end in an error."""
        attempt = self.attempts.get((task, number))
        return attempt is not None and _is_done(attempt)

    def keep(self, attempt: Attempt) -> None:
        """Store an attempt that has ended, and the best passes at its task."""
        with self._lock:
            try:
                self._record(attempt)
                earlier = self.attempts.get((attempt.task, attempt.number))
                self.attempts[attempt.task, attempt.number] = attempt
                rivals = [each for each in self.attempts.values() if each.task == attempt.task]
                write_passes(self._folder, rivals, self._is_guarded, (earlier,) if earlier else ())
            except (OSError, InputError) as cause:
                self._refusals.append(cause)
                raise
            self._progress(attempt)

    def check(self) -> None:
        """Raise the first error of `keep`, which Inspect keeps to itself."""
        if self._refusals:
            raise self._refusals[0]


@contextmanager
def _opened_log(
    run: AgentFolder, info: AgentRun, suite: Suite, plan: RunPlan, others: list[Attempt]
) -> Iterator[_AttemptLog]:
    names = {task.name for task in suite.tasks}
    attempts = {key: attempt for key, attempt in run.records().items() if attempt.task in names}
    earlier = list(attempts.values())
    run.take((attempt for attempt in others if attempt.task in names), attempts, _is_done)
    with run.recorder(sum(map(_is_done, attempts.values()))) as record:
        log = _AttemptLog(info, run.out / PASSES_FOLDER, attempts, record, plan.progress)
        write_passes(
            run.out / PASSES_FOLDER, list(attempts.values()), info.settings.is_guarded, earlier
        )
        for attempt in attempts.values():
            if plan.shard.has(attempt.task) and _is_done(attempt):
                plan.progress(attempt)
        yield log


def write_passes(
    folder: Path,
    attempts: Sequence[Attempt],
    is_guarded: bool = False,
    earlier: Iterable[Attempt] = (),
) -> None:
    """Write the best pass folder of each task of some attempts; delete files of the others there.

    One that was not timed does not count if `is_guarded`. `earlier` attempts gave way to others of
    the same number; only their files matter.
    """
    by_task: dict[str, list[Attempt]] = {attempt.task: [] for attempt in attempts}
    names: dict[str, set[str]] = {task: set() for task in by_task}
    for attempt in chain(attempts, earlier):
        names.get(attempt.task, set()).update(attempt.files)
    for attempt in attempts:
        if attempt.best is not None and not (is_guarded and attempt.last_score is None):
            by_task[attempt.task].append(attempt)
    for task, rivals in by_task.items():
        best = best_state([(rival.last_results, rival.is_right) for rival in rivals])
        files = {} if best is None else rivals[best].files
        target = below(folder, task)
        if files:
            write_files(files, target)
        for file in target.iterdir() if target.is_dir() else ():
            if file.is_file() and file.name in names[task] and file.name not in files:
                file.unlink()
        if not files:
            with suppress(OSError):  # there is none, or it holds what is not ours
                target.rmdir()


def open_author(settings: LlmSettings | None, cost: float | None = None) -> list[Model]:
    """Open the LLM of a run before anything is written, once for each of its endpoints.

    `cost` limits an attempt, in dollars. Raises InputError without Inspect, or prices for a limit
    of cost; AuthorError as `open_llms`.
    """
    if importlib.util.find_spec("inspect_ai") is None:
        raise InputError("an llm as author needs the extra agent: pip install 'passnet[agent]'")
    with boundary(InputError, "inspect_ai, which asks llms, cannot be imported"):
        from passnet.agent.authors.inspect_llm import check_price, open_llms

    if settings is None:
        raise InputError("the author llm needs the name of one: give --llm provider/name")
    llms = open_llms(settings)
    if cost is not None or settings.price is not None:
        check_price(llms[0], settings)
    return llms


def _ask_llm(llm: Model, task: InspectTask, out: Path, num_workers: int) -> None:
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
    lost = [sample for sample in logs[0].samples or () if sample.error is not None]
    if lost and logs[0].status == "success":
        raise AuthorError(
            f"llm {llm}: {len(lost)} attempts left no record, the first {lost[0].id}: "
            f"{lost[0].error.message}"  # type: ignore[union-attr]
        )
    if logs[0].status == "error":
        text = logs[0].error.message if logs[0].error else "no reason was given"
        for number in (errno.ENOSPC, errno.EDQUOT):  # Inspect stores only an error's text
            if os.strerror(number) in text:
                raise OSError(number, os.strerror(number), str(out / "logs"))
        raise AuthorError(f"llm {llm}: {text}")


class _ProgramAuthor:
    """An author that is a program, and the processes that judge all its attempts in turn."""

    def __init__(self, suite: Suite, settings: AgentSettings, program: Author | None) -> None:
        self._suite = suite
        self._settings = settings
        self._author = program or program_author(settings.author, settings.limits.turns)
        self._evaluator = JudgeDesk(settings.run, settings.call)

    def __enter__(self) -> _ProgramAuthor:
        self._evaluator.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._evaluator.__exit__(*error)

    def attempt(self, item: tuple[Task, int, Suite | None]) -> Attempt:
        """Make an attempt; `item` is the task, the attempt's number, and held-out shapes."""
        task, number, held_out = item
        session = new_session(task, self._settings, held_out, self._evaluator)
        try:
            self._author(session, self._settings.seed + number)
        except AuthorError as cause:
            session.ending, session.error = "error", str(cause)
        session.num_turns = session.turn
        return attempt_record(session, self._suite, self._settings, number, self._evaluator)


def _attempts_on_ray(
    suite: Suite,
    info: AgentRun,
    missing: Sequence[tuple[Task, int]],
    held_out: Suite | None,
    program: Author | None,
    plan: RunPlan,
) -> Iterator[Attempt]:
    """Make attempts on machines of one kind; each gets its own task and no other."""
    if not missing:
        return
    settings = info.settings
    opener = partial(_open_program, info.environment, replace(suite, tasks=()), settings, program)
    items = [
        (task, number, held_out and replace(held_out, tasks=_only(held_out, task)))
        for task, number in missing
    ]
    yield from run_actors(items, opener, plan.num_workers, device_of(settings.run))


def _only(suite: Suite, task: Task) -> tuple[Task, ...]:
    return tuple(each for each in suite.tasks if each.name == task.name)


def _open_program(
    environment: Environment, suite: Suite, settings: AgentSettings, program: Author | None
) -> Callable[[tuple[Task, int, Suite | None]], Attempt]:
    check_machine(environment, settings.run)
    return _ProgramAuthor(suite, settings, program).__enter__().attempt
