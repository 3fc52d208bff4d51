"""Judges states of a pass folder, in processes of its own and a folder for their files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from passnet.core.jobs.process import JobRunner
from passnet.errors import GraphError
from passnet.judge.candidate import CallMode, Candidate
from passnet.judge.desk.candidates import CandidateEntry
from passnet.judge.desk.judge_task import judge_task
from passnet.judge.findings import Finding
from passnet.judge.inspection.inspected_folders import InspectedFolders
from passnet.judge.inspection.rules import METHOD
from passnet.judge.judge import prepared_graph
from passnet.judge.match_check import GraphMatches, check_matches
from passnet.judge.processes.device_lock import DeviceTurns
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.settings import RunSettings
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.judge.verdict import Evidence, decide
from passnet.passes.files import Files, write_files
from passnet.passes.folder import inspect_folder

UNDECIDED = METHOD[1]
"""The name of findings that text alone cannot decide."""

NAME = "passes"
"""The name of the candidate in the trials of an attempt."""

CACHED_INPUT_BYTES = 1 << 30
"""Of inputs that stay for the next evaluation: drawing them takes longer than all else of ours."""


class StateJudge(Protocol):
    """What judges states of a pass folder for a session: an `JudgeDesk`, or one that is elsewhere.

    It is entered before it is used; `root` is a folder that may appear in its messages.
    """

    settings: RunSettings
    root: str

    def __enter__(self) -> Any: ...

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None:
        """End what is being judged, from any thread."""
        ...

    def prepare(self, task: Task) -> None:
        """Get ready for a task, so that evaluations need not wait for that."""
        ...

    def check_matches(self, task: Task, files: Files) -> list[GraphMatches]:
        """Where the passes of a state match; see `JudgeDesk.check_matches`."""
        ...

    def judge(
        self, task: Task, files: Files, unseen: Sequence[TaskGraph] = (), is_timed: bool = True
    ) -> list[Trial]:
        """The trials of a state; see `JudgeDesk.judge`."""
        ...


class JudgeDesk:
    """Processes in which one state of a pass folder after another is judged.

    Candidate code sees the folder of the state that is judged and nothing else of the attempt; all
    of it runs in the judge's sandbox. One attempt at a time uses an evaluator. States are written
    under the folder `root`, which may appear in messages.

    Args:
        settings: how to judge; `sandbox` names what confines candidate code.
        call: how candidates are called: "compiled", through torch.compile, "direct" or
            "guarded".
    """

    def __init__(self, settings: RunSettings, call: CallMode = "compiled") -> None:
        self.settings = settings
        self._call: CallMode = call
        self._stack = ExitStack()

    def __enter__(self) -> JudgeDesk:
        root = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="passnet-agent-"))
        self.root = str(Path(root).resolve())
        sandbox = find_sandbox(self.settings.sandbox)
        device = self.settings.judge.device
        pool = ParentPool(self.settings.num_threads, sandbox, device, CACHED_INPUT_BYTES)
        self._parents = self._stack.enter_context(pool)
        self._inspector = self._stack.enter_context(JobRunner())
        self._parents.start([self._candidate(None)])
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def close(self) -> None:
        """End all processes at once, from any thread; what is being judged fails."""
        self._parents.close()

    def prepare(self, task: Task) -> None:
        """Make the inputs of a task's graphs, which evaluations then need not wait for.

        A graph whose inputs cannot be made is left to its evaluation, which says so.
        """
        judge = self.settings.judge
        for graph in task.graphs:
            with DeviceTurns(judge.device), suppress(GraphError):
                prepared_graph(self._parents, graph, judge)

    def check_matches(self, task: Task, files: Files) -> list[GraphMatches]:
        """Where the passes of a state match in the graphs of a task.

        Raises:
            PassFolderError: the folder cannot be used at all.
            WorkerError: our own machinery failed.
        """
        with self._written(files) as folder:
            candidate = self._candidate(folder)
            return list(check_matches(self._parents, task.graphs, candidate, self.settings.judge))

    def judge(
        self, task: Task, files: Files, unseen: Sequence[TaskGraph] = (), is_timed: bool = True
    ) -> list[Trial]:
        """The trials of a state on the graphs of a task.

        `unseen` are graphs of the same task in other shapes; see `judge.held_out`. Without
        `is_timed` it is only compared, however the settings would measure.

        Raises:
            PassFolderError: the folder cannot be used at all.
            MeasureError: our own machinery fails again and again.
        """
        settings = self.settings
        if not is_timed:
            settings = replace(settings, judge=replace(settings.judge, timing=None))
        judge = settings.judge
        with self._written(files) as folder:
            inspected = InspectedFolders(judge.rules, self._inspector)
            if refused := self._refused(inspected, folder):
                return [
                    decide(Evidence(task.name, graph.name, NAME, findings=refused), judge)
                    for graph in task.graphs
                ]
            entry = CandidateEntry(self._candidate(None), folder, inspect_folder(folder).code_hash)
            judged = judge_task(self._parents, task, [entry], settings, unseen, (), inspected)
            return [trial for _, trials in judged for trial in trials]

    def _refused(self, inspected: InspectedFolders, folder: Path) -> tuple[Finding, ...]:
        """What the code of a state may not use.

        What the judge only marks, for a person to read, is refused here: an author is told, and
        can do without. Only of tensor methods text cannot tell; the judge sees these when they run.
        """
        return tuple(
            replace(finding, weight="reject")
            for finding in inspected.findings(self._candidate(folder))
            if finding.weight == "reject"
            or (finding.weight == "flag" and finding.name != UNDECIDED)
        )

    def _candidate(self, folder: Path | None) -> Candidate:
        passes = None if folder is None else str(folder)
        return Candidate(NAME, "passes", passes, self._call, root=self.root)

    @contextmanager
    def _written(self, files: Files) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.root) as name:
            folder = Path(name)
            write_files(files, folder)
            inspect_folder(folder)
            yield folder
