"""The record of a run, its trials, and the runs that may continue it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from passnet.bench.environment import Environment
from passnet.core.jobs.run_folder import RunFolder
from passnet.core.records.differences import first_difference
from passnet.core.records.serialise import SCHEMA_VERSION, read_json
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints
from passnet.judge.candidate import Candidate
from passnet.judge.desk.candidates import CandidateEntry
from passnet.judge.limitations import NOT_COVERED
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import Suite, suite_of_hash
from passnet.judge.trial import Trial

RUN_FILE = "run.json"
TRIALS_FILE = "trials.jsonl"
SCORES_FILE = "scores.json"
TABLES_FILE = "tables.md"
FIGURE_FILE = "es.svg"

SAME_ENVIRONMENT = ("cpu", "python", "torch", "passnet", "compiler", "gpu")
"""Facts that must be equal in all parts of one run."""


@dataclass(frozen=True)
class BenchRunInfo:
    """The record of a run, in `run.json`; `not_covered` are known gaps of its judge."""

    schema_version: int
    suite: str
    suite_hash: str
    candidates: tuple[Candidate, ...]
    code_hashes: dict[str, str]
    settings: RunSettings
    environment: Environment
    not_covered: tuple[str, ...] = NOT_COVERED


def suite_of_run(out: Path) -> Suite | None:
    """Return the suite of a run folder, in the version it was run on, if that is shipped."""
    if not (out / RUN_FILE).exists():
        return None
    info = run_folder(out).read_info()
    return suite_of_hash(info.suite, info.suite_hash)


@dataclass(frozen=True)
class _SuiteOfRun:
    """The field of `run.json` that names the content of the suite."""

    suite_hash: str


def hash_of_run(out: Path) -> str | None:
    """Return the content hash of a run folder's suite; None for anything else."""
    path = out / RUN_FILE
    return read_json(path, _SuiteOfRun).suite_hash if path.is_file() else None


def run_info(
    suite: Suite,
    entries: Sequence[CandidateEntry],
    settings: RunSettings,
    environment: Environment,
) -> BenchRunInfo:
    """Make the record of a run that begins now; raise InputError for a candidate given twice."""
    counts = Counter(entry.name for entry in entries)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise InputError(f"candidate {twice[0]} is given twice")
    return BenchRunInfo(
        SCHEMA_VERSION,
        suite.name,
        suite.content_hash,
        tuple(entry.template for entry in entries),
        {entry.name: entry.code_hash for entry in entries if entry.code_hash},
        settings,
        environment,
        (*NOT_COVERED, *find_sandbox(settings.sandbox).unrestricted),
    )


def run_folder(out: Path) -> RunFolder[BenchRunInfo, Trial, tuple[str, str]]:
    """Return the folder of a run; the last trial of a graph and candidate counts."""
    return RunFolder(
        out,
        RUN_FILE,
        BenchRunInfo,
        TRIALS_FILE,
        Trial,
        lambda trial: (trial.graph, trial.candidate),
        "trials",
    )


def environment_difference(old: Environment, new: Environment) -> tuple[str, Any, Any] | None:
    """Return the first fact that differs, with both values; None if times can be in one run."""
    for name in SAME_ENVIRONMENT:
        if getattr(old, name) != getattr(new, name):
            return name, getattr(old, name), getattr(new, name)
    return None


def continued(suite: Suite, out: Path, old: BenchRunInfo, info: BenchRunInfo) -> BenchRunInfo:
    """Return the old record with added candidates; raise InputError if anything else differs.

    Of a run on another version of the suite, the trials of graphs that have changed are dropped.
    """
    is_other_version = old.suite == info.suite and old.suite_hash != info.suite_hash
    version = suite_of_hash(old.suite, old.suite_hash) if is_other_version else None
    if version is not None:
        old = replace(old, suite_hash=info.suite_hash)
        if difference_of_runs(old, info) is None:
            unchanged = unchanged_graphs(version, suite)
            run_folder(out).forget(lambda trial: trial.graph not in unchanged)
    if difference := difference_of_runs(old, info):
        raise InputError(f"{out}: {difference}; choose another --out")
    candidates = tuple(dict.fromkeys((*old.candidates, *info.candidates)))
    code_hashes = old.code_hashes | info.code_hashes
    return replace(old, candidates=candidates, code_hashes=code_hashes)


def unchanged_graphs(version: Suite, other: Suite) -> set[str]:
    """Return the names of graphs with the same content and inputs in two versions of a suite."""
    first, second = (
        {graph.name: (fingerprints(graph.graph), graph.graph.tensors) for graph in suite.graphs}
        for suite in (version, other)
    )
    return {name for name, prints in first.items() if second.get(name) == prints}


def difference_of_runs(old: BenchRunInfo, info: BenchRunInfo) -> str | None:
    """Return the reason, as the end of a sentence, why two runs cannot be one; None if they can."""
    if old.schema_version != SCHEMA_VERSION:
        return (
            f"its records have version {old.schema_version}, this passnet writes version "
            f"{SCHEMA_VERSION}"
        )
    if old.suite != info.suite:
        return f"holds a run on suite {old.suite}, and this one is on {info.suite}"
    if old.suite_hash != info.suite_hash:
        return f"holds a run on another version or other tasks of suite {info.suite}"
    if difference := first_difference(old.settings, info.settings):
        return f"holds a run with other settings: {difference}"
    if difference := environment_difference(old.environment, info.environment):
        name, before, now = difference
        return (
            f"was measured with {name} {before}, and here it is {now}; times of both cannot be in "
            "one run"
        )
    for name, code_hash in info.code_hashes.items():
        if old.code_hashes.get(name, code_hash) != code_hash:
            return f"the files of {name} have changed since that run"
    return None


def trials_of_part(folder: Path, info: BenchRunInfo) -> list[Trial]:
    """Read the trials of another part of a run, under the candidates of this one."""
    part = run_folder(folder)
    part_info = part.read_info()
    if difference := difference_of_runs(part_info, info):
        raise InputError(f"{folder}: {difference}; it is no part of this run")
    names = {candidate.name for candidate in info.candidates}
    if not names & {candidate.name for candidate in part_info.candidates}:
        raise InputError(f"{folder}: has none of the candidates of this run; it is no part of it")
    return [trial for trial in part.records().values() if trial.candidate in names]
