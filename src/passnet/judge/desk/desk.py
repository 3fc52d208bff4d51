"""The one door of the judge: a pass folder and a task in, a trial for each graph out.

`judge_files` judges one folder. `JudgeDesk` holds the judge's processes open for many.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from passnet.core.jobs.process import JobRunner
from passnet.errors import GraphError
from passnet.judge.candidate import REFERENCE, CallMode, Candidate
from passnet.judge.desk.candidates import CandidateEntry
from passnet.judge.desk.judge_task import judge_task
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
from passnet.judge.verdict.findings import Finding
from passnet.judge.verdict.verdict import Evidence, decide
from passnet.passes.files import Files, write_files
from passnet.passes.folder import inspect_folder

UNDECIDED = METHOD[1]
"""Name of the findings that text alone cannot decide."""
NAME = "passes"
"""Name of the candidate in the trials of a judged folder."""
CACHED_INPUT_BYTES = 1 << 30
"""Most bytes of inputs that a desk keeps: to draw them takes longer than all other work of ours."""


def judge_files(
    task: Task,
    files: Files,
    settings: RunSettings | None = None,
    call: CallMode = "compiled",
    unseen: Sequence[TaskGraph] = (),
    is_timed: bool = True,
) -> list[Trial]:
    """Judge one pass folder on a task and return a trial for each graph.

    Starts the judge's processes and ends them; to judge many folders, hold a `JudgeDesk`.

    Args:
        task: from a suite, or of any graphs by `task_of`.
        files: texts of the folder by file name, as `passes.files.read_files` reads them.
        settings: by default those of `RunSettings` in the best sandbox of this machine.
        call: "compiled" (through torch.compile), "direct" or "guarded".
        unseen: graphs of the task in other shapes; wrong results on them count.
        is_timed: False only compares, and gives no speedup.

    Raises:
        PassFolderError: the folder cannot be used at all.
        MeasureError: the judge itself failed several times.
    """
    settings = settings or RunSettings(sandbox=find_sandbox("auto").name)
    with JudgeDesk(settings, call) as desk:
        return desk.judge(task, files, unseen, is_timed)


class StateJudge(Protocol):
    """A judge of pass folders: a `JudgeDesk`, or one behind a reward service.

    It is entered before use. Its messages may contain the folder `root`.
    """

    settings: RunSettings
    root: str

    def __enter__(self) -> Any: ...

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None:
        """End the work of the judge at once; any thread may call this."""
        ...

    def prepare(self, task: Task) -> None:
        """Make ready for a task, so that judging need not wait for it."""
        ...

    def unchanged(self, task: Task) -> list[Trial]:
        """See `JudgeDesk.unchanged`; empty where that cannot be asked."""
        ...

    def check_matches(self, task: Task, files: Files) -> list[GraphMatches]:
        """See `JudgeDesk.check_matches`."""
        ...

    def judge(
        self, task: Task, files: Files, unseen: Sequence[TaskGraph] = (), is_timed: bool = True
    ) -> list[Trial]:
        """See `JudgeDesk.judge`."""
        ...


class JudgeDesk:
    """The judge's processes, held open while one pass folder or task after another is judged.

    Candidate code sees the folder under judgement and no other, nor files that another has left.
    One thread at a time uses a desk. Folders are written under `root`, which messages may contain.
    With `call` None a desk only judges entries, and starts processes when they are first needed.
    All temporary files lie in `folder`, by default that of the system.
    """

    def __init__(
        self,
        settings: RunSettings,
        call: CallMode | None = "compiled",
        folder: str | None = None,
    ) -> None:
        self._folder = folder
        self.settings = settings
        self._call = call
        self._stack = ExitStack()

    def __enter__(self) -> JudgeDesk:
        settings = self.settings
        root = self._stack.enter_context(
            tempfile.TemporaryDirectory(prefix="passnet-judge-", dir=self._folder)
        )
        self.root = str(Path(root).resolve())
        cache_bytes = 0 if self._call is None else CACHED_INPUT_BYTES
        sandbox, device = find_sandbox(settings.sandbox), settings.judge.device
        pool = ParentPool(settings.num_threads, sandbox, device, cache_bytes)
        self._parents = self._stack.enter_context(pool)
        self._inspector = self._stack.enter_context(JobRunner(self._folder))
        self._inspected = InspectedFolders(settings.judge.rules, self._inspector)
        if self._call is not None:
            self._parents.start([self._candidate(None)])
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def close(self) -> None:
        """End all processes at once, from any thread; the trial under way fails."""
        self._parents.close()

    def prepare(self, task: Task) -> None:
        """Make the inputs of a task's graphs, so that judging need not wait for them."""
        judge = self.settings.judge
        for graph in task.graphs:
            with DeviceTurns(judge.device), suppress(GraphError):
                prepared_graph(self._parents, graph, judge)

    def unchanged(self, task: Task) -> list[Trial]:
        """Return a trial for each graph of a task as it is, called as passes are called here."""
        assert self._call is not None, "a desk for entries has no way of calling"
        entry = CandidateEntry(Candidate(NAME, "null", call=self._call))
        return [
            trial for _, trials in self.judge_entries(task, [entry], (), ()) for trial in trials
        ]

    def check_matches(self, task: Task, files: Files) -> list[GraphMatches]:
        """Return where a folder's passes match in a task's graphs, or raise PassFolderError."""
        with self._written(files) as folder:
            candidate = self._candidate(folder)
            return list(check_matches(self._parents, task.graphs, candidate, self.settings.judge))

    def judge(
        self, task: Task, files: Files, unseen: Sequence[TaskGraph] = (), is_timed: bool = True
    ) -> list[Trial]:
        """Judge a pass folder on a task and return a trial for each graph.

        Code that a run over a suite would only flag is rejected here: its author can do without.
        Wrong results on `unseen` graphs count. Raises PassFolderError for a folder that cannot be
        used, and MeasureError if the judge itself failed several times.
        """
        settings = self.settings
        if not is_timed:
            settings = replace(settings, judge=replace(settings.judge, timing=None))
        with self._written(files) as folder:
            inspected = InspectedFolders(settings.judge.rules, self._inspector)
            if refused := self._refused(inspected, folder):
                evidence = [
                    Evidence(task.name, graph.name, NAME, findings=refused) for graph in task.graphs
                ]
                return [decide(refusal, settings.judge) for refusal in evidence]
            entry = CandidateEntry(self._candidate(None), folder, inspect_folder(folder).code_hash)
            judged = judge_task(self._parents, task, [entry], settings, unseen, (), inspected)
            return [trial for _, trials in judged for trial in trials]

    def judge_entries(
        self,
        task: Task,
        entries: Sequence[CandidateEntry],
        unseen: Sequence[TaskGraph],
        finished: Collection[tuple[str, str]],
        reference: Candidate = REFERENCE,
    ) -> Iterator[tuple[TaskGraph, list[Trial]]]:
        """Judge several candidates on a task, timed together; see `judge_task`."""
        parts = (entries, self.settings, unseen, finished, self._inspected, reference)
        return judge_task(self._parents, task, *parts)

    def _refused(self, inspected: InspectedFolders, folder: Path) -> tuple[Finding, ...]:
        """Return the findings that forbid to run a folder; none of unclear text."""
        return tuple(
            replace(finding, weight="reject")
            for finding in inspected.findings(self._candidate(folder))
            if finding.weight == "reject"
            or (finding.weight == "flag" and finding.name != UNDECIDED)
        )

    def _candidate(self, folder: Path | None) -> Candidate:
        assert self._call is not None, "a desk for entries is given no files"
        passes = None if folder is None else str(folder)
        return Candidate(NAME, "passes", passes, self._call, root=self.root)

    @contextmanager
    def _written(self, files: Files) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.root) as name:
            folder = Path(name)
            write_files(files, folder)
            inspect_folder(folder)
            yield folder
