"""The pass folders of a run whose text was inspected: each of them once."""

import threading
from contextlib import ExitStack
from pathlib import Path

from passnet.core.jobs.process import JobRunner
from passnet.judge.candidate import Candidate
from passnet.judge.findings import Finding
from passnet.judge.inspection.limited import Inspection, inspect_limited
from passnet.judge.inspection.rules import RulesName


class InspectedFolders:
    """What the text of pass folders gives away, found when a folder is first asked for.

    Args:
        rules: that the folders are inspected under.
        runner: of the processes that inspect; without it each folder has one of its own.
    """

    def __init__(self, rules: RulesName, runner: JobRunner | None = None) -> None:
        self._rules: RulesName = rules
        self._runner = runner
        self._inspections: dict[str, Inspection] = {}
        self._lock = threading.Lock()

    def findings(self, candidate: Candidate) -> tuple[Finding, ...]:
        """What the code of a candidate's pass folder uses; nothing of a folder that is broken."""
        return self._inspection(candidate).findings

    def failure(self, candidate: Candidate) -> str | None:
        """Why the code of a candidate's pass folder cannot be told, so that it must not run."""
        return self._inspection(candidate).failure

    def _inspection(self, candidate: Candidate) -> Inspection:
        if candidate.passes is None:
            return Inspection()
        with self._lock:
            if candidate.passes not in self._inspections:
                with ExitStack() as stack:
                    runner = self._runner or stack.enter_context(JobRunner())
                    inspection = inspect_limited(Path(candidate.passes), self._rules, runner)
                self._inspections[candidate.passes] = inspection
            return self._inspections[candidate.passes]
