"""The authors compiler and search on the demo suite: AS beside `eager` and Inductor.

Run it with `python -m benchmarks.authors [FOLDER]`. Both authors write passes for every task, under
the strict rules; then these, `eager` and `inductor` are judged anew, called directly and through
torch.compile. A guarded author leaves a task alone where its passes did not win while it wrote
them: there it has the trials of `eager`. What FOLDER holds already is not done again.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, UNCHANGED_SCORE, Attempt
from passnet.agent.attempts.attempt_record import attempt_record
from passnet.agent.attempts.session import Session
from passnet.agent.authors.compiler import compiler_author
from passnet.agent.authors.search import search_author
from passnet.agent.run import PASSES_FOLDER
from passnet.agent.settings import AgentSettings, AuthorName
from passnet.bench.run import run_suite
from passnet.bench.scores import Row, score_rows
from passnet.core.jobs.run_folder import last_records
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import LineWriter, decode, encode, make_folder
from passnet.judge.candidate import CallMode
from passnet.judge.desk.candidates import parse_candidate
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.suite.suite import Suite, load_suite
from passnet.judge.trial import Trial
from passnet.pages.tables.tables import print_table, task_overview, total_table
from passnet.passes.files import write_files

AUTHORS: tuple[AuthorName, ...] = ("compiler", "search")
CALLS: tuple[CallMode, ...] = ("direct", "compiled")
TIMING_S = 0.2
NUM_THREADS = 1
BUDGET = 6
"""Evaluations of the search at each task."""


def settings() -> RunSettings:
    """How authors and baselines are judged."""
    judge = JudgeSettings(timing=TimingPlan(seconds=TIMING_S), rules="strict")
    return RunSettings(judge, NUM_THREADS, find_sandbox("auto").name)


def attempts_of(author: AuthorName, suite: Suite, folder: Path) -> list[Attempt]:
    """One attempt of an author at every task, its evaluations called directly."""
    agent_settings = AgentSettings(author, run=settings(), call="direct", is_judged_anew=False)
    make_folder(folder / author)
    path = folder / author / ATTEMPTS_FILE
    attempts = last_records(path, Attempt, lambda attempt: attempt.task)
    with LineWriter(path) as writer:
        for task in suite.tasks:
            if task.name in attempts:
                continue
            session = Session(task, JudgeDesk(agent_settings.run, agent_settings.call))
            with session.evaluator:
                if author == "search":
                    search_author(session, budget=BUDGET)
                else:
                    compiler_author(session)
            attempt = attempt_record(session, suite, agent_settings, 0)
            write_files(attempt.files, folder / author / PASSES_FOLDER / task.name)
            writer.write(attempt)
            attempts[task.name] = attempt
            print(f"{author} {task.name}: score {attempt.score}, "
                  f"{len(attempt.evaluations)} evaluations, {attempt.seconds:.0f} s",
                  flush=True)  # fmt: skip
    return list(attempts.values())


def won(attempt: Attempt) -> bool:
    """Whether a guarded author would have submitted."""
    best = attempt.evaluations[attempt.best] if attempt.best is not None else None
    return best is not None and best.is_passing and (best.score or 0.0) > UNCHANGED_SCORE


def trials_of(call: CallMode, suite: Suite, folder: Path) -> list[Trial]:
    """The trials of all candidates, called in one way."""
    flag = "@direct" if call == "direct" else ""
    words = ["eager", f"inductor{flag}"]
    words += [f"{folder / author / PASSES_FOLDER}{flag}" for author in AUTHORS]
    entries = [parse_candidate(word, suite.tasks) for word in words]
    out = folder / f"trials-{call}"
    return run_suite(suite, entries, settings(), out, RunPlan(resume=True))


def rows_of(trials: Sequence[Trial], attempts: Mapping[str, Sequence[Attempt]]) -> list[Row]:
    """The trials under short names, and the same for guarded authors."""
    rows = []
    for trial in trials:
        parts = Path(trial.candidate.removesuffix("@direct")).parts
        author = parts[-2] if parts[-1] == PASSES_FOLDER else None
        row = decode(encode(trial), Row)
        rows.append(replace(row, candidate=author or parts[-1]))
        for name in AUTHORS:
            has_won = {attempt.task for attempt in attempts[name] if won(attempt)}
            if (trial.candidate == "eager" and trial.task not in has_won) or (
                author == name and trial.task in has_won
            ):
                rows.append(replace(row, candidate=f"{name}, guarded"))
    return rows


def main() -> None:
    """Measure, or go on with measuring, in the folder that is named, or in one that is not kept."""
    suite = load_suite("demo")
    console = Console(width=120)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(name)
        attempts = {author: attempts_of(author, suite, folder) for author in AUTHORS}
        for call in CALLS:
            scores = score_rows(rows_of(trials_of(call, suite, folder), attempts))
            for table in (total_table(scores), task_overview(scores)):
                print_table(console, replace(table, title=f"{table.title}, called {call}"))


if __name__ == "__main__":
    main()
