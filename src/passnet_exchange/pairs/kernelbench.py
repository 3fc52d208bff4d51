"""A suite of the problems of a KernelBench checkout, their sizes reduced to fit."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

from passnet.core.hardware import version_of
from passnet.core.jobs.process import JobLimits, JobOutcome, JobRunner
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.core.records.untrusted import untrusted_digest
from passnet.core.terminal.progress import ProgressStep
from passnet.errors import InputError, check_exists
from passnet.graph.spec import Graph
from passnet.judge.suite.suite import Suite, make_suite, write_suite
from passnet.judge.task import NetSource, TaskGraph
from passnet_exchange.pairs.problem import Problem, ProblemOrder, captured_problem

INFO_FILE = "import.json"
RECORDS_FILE = "problems.jsonl"
LIBRARY = "kernelbench"
_FILE = re.compile(r"[0-9]+_.*\.py")


@dataclass(frozen=True, slots=True)
class ImportInfo:
    """The settings of an import; it can be resumed only with the same."""

    schema_version: int
    folder: str
    max_bytes: int
    limits: JobLimits
    torch: str = ""


@dataclass(frozen=True, slots=True)
class ImportedProblem:
    """A problem of a checkout by its path there, without `.py`: `level1/19_ReLU`.

    `file_hash` is the SHA-256 of its file.
    """

    name: str
    problem: Problem
    file_hash: str = ""

    @property
    def task(self) -> str:
        """Return its name in the suite; one that was reduced is named as such."""
        return self.name.replace("/", "-").rstrip("_") + (
            "-reduced" if self.problem.reduced else ""
        )

    @property
    def changes(self) -> str:
        """Return its reduced constants in words: `N 4096 to 2048, M 64 to 32`."""
        return ", ".join(f"{c.name} {c.before} to {c.after}" for c in self.problem.reduced)


@dataclass(frozen=True, slots=True)
class ImportedSuite:
    """The suite of a checkout, its problems in order, those left out, and files that are none."""

    suite: Suite
    problems: tuple[ImportedProblem, ...]
    left_out: tuple[ImportedProblem, ...]
    other_files: tuple[str, ...]


def find_problems(folder: Path, levels: Sequence[int]) -> dict[str, Path]:
    """Return the files of problems below a checkout, by name, level by level and in their order.

    Raises InputError if there is none.
    """
    problems = {}
    for level, root in _chosen_levels(folder, levels).items():
        files = [path for path in root.glob("*.py") if _is_problem(path)]
        for path in sorted(files, key=lambda path: (int(path.name.partition("_")[0]), path.name)):
            problems[f"level{level}/{path.stem}"] = path
    if not problems:
        raise InputError(f"{folder}: its levels hold no file such as 1_Name.py")
    return problems


def find_other_files(folder: Path, levels: Sequence[int]) -> list[str]:
    """Return the Python files of levels that `find_problems` does not take: `level1/notes.py`."""
    return [
        f"level{level}/{path.relative_to(root)}"
        for level, root in _chosen_levels(folder, levels).items()
        for path in sorted(root.rglob("*.py"))
        if path.parent != root or not _is_problem(path)
    ]


def _is_problem(path: Path) -> bool:
    return path.is_file() and _FILE.fullmatch(path.name) is not None


def _chosen_levels(folder: Path, levels: Sequence[int]) -> dict[int, Path]:
    """Return the folders of some levels of a checkout, or of all, in their order."""
    check_exists(folder)
    root = next((root for root in (folder / "KernelBench", folder) if _levels(root)), None)
    if root is None:
        raise InputError(f"{folder}: holds no folder level1; give a checkout of KernelBench")
    found = _levels(root)
    if missing := set(levels) - found.keys():
        raise InputError(
            f"{root}: has no level {min(missing)}; it has {', '.join(map(str, sorted(found)))}"
        )
    return {level: found[level] for level in sorted(set(levels) or found)}


def _levels(root: Path) -> dict[int, Path]:
    named = {path.name.removeprefix("level"): path for path in root.glob("level*")}
    return {int(name): path for name, path in named.items() if name.isdecimal() and path.is_dir()}


def import_kernelbench(
    folder: Path,
    levels: Sequence[int],
    max_bytes: int,
    out: Path,
    limits: JobLimits,
    plan: RunPlan,
    announce: Callable[[int], AbstractContextManager[ProgressStep]],
) -> ImportedSuite:
    """Make a suite of a checkout; captures are kept in a folder beside `out`.

    Every file runs in a limited process of its own. Integers that a file assigns outside its
    functions are halved, the largest first, until arguments and outputs take `max_bytes`.

    Raises:
        InputError: there are no problems, none can be captured, `out` was begun otherwise, or a
            file has changed since and `plan.retry` is off.
    """
    paths = find_problems(folder, levels)
    work = RunFolder(
        out.with_suffix(".work"),
        INFO_FILE,
        ImportInfo,
        RECORDS_FILE,
        ImportedProblem,
        attrgetter("name"),
        "captured problems",
    )
    torch = version_of("torch")
    info = ImportInfo(SCHEMA_VERSION, str(folder.resolve()), max_bytes, limits, torch)
    complaint = (
        f"{work.out}: holds problems under other settings, or of another torch; choose another "
        "--out"
    )
    with work.begin(info, plan.resume, unchanged(complaint)):
        changed = _changed(paths, work.records())
        if changed and not plan.retry:
            raise InputError(
                f"{paths[changed[0]]}: has changed since {work.out} captured it; add --retry to "
                "capture it again, or choose another --out"
            )
        if plan.retry:
            work.forget(lambda record: record.problem.error is not None or record.name in changed)
        records = work.records()
        missing = [item for item in paths.items() if item[0] not in records]
        capture = partial(_captured, max_bytes=max_bytes, limits=limits)
        outcomes = plan.executor(missing, capture, plan.num_workers)
        with announce(len(missing)) as step:
            for record in work.keep(outcomes, len(records)):
                records[record.name] = record
                step(record.name[:40])
    problems = [records[name] for name in paths]
    graphs = [suite_graph(each) for each in problems if each.problem.error is None]
    if not graphs:
        raise InputError(f"{folder}: no problem can be captured; {problems[0].problem.error}")
    suite = make_suite(out.stem, graphs)
    write_suite(out, suite)
    left_out = tuple(each for each in problems if each.problem.error is not None)
    other_files = tuple(find_other_files(folder, levels))
    return ImportedSuite(suite, tuple(problems), left_out, other_files)


def _changed(paths: Mapping[str, Path], records: Mapping[str, ImportedProblem]) -> list[str]:
    """Return the problems whose files are not as they were when they were captured."""
    known = [name for name in paths if name in records]
    return [name for name in known if records[name].file_hash != _file_hash(paths[name])]


def _file_hash(path: Path) -> str:
    return untrusted_digest(path).hex()


def _captured(
    runner: JobRunner, item: tuple[str, Path], max_bytes: int, limits: JobLimits
) -> JobOutcome[ImportedProblem]:
    name, path = item
    order = ProblemOrder(str(path.resolve()), may_evaluate=True, max_bytes=max_bytes)
    file_hash = _file_hash(path)
    return JobOutcome(ImportedProblem(name, captured_problem(order, runner, limits), file_hash))


def suite_graph(imported: ImportedProblem) -> TaskGraph:
    """Return a problem as a graph of a suite; its source names reduced integers."""
    graph: Graph = imported.problem.graph
    changes = f" ({imported.changes})" if imported.changes else ""
    num_ops = len(graph.program.ops)
    source = NetSource(f"{LIBRARY}/{imported.name}{changes}", LIBRARY, "", 0, num_ops)
    return TaskGraph(imported.task, imported.task, graph, source)
