"""The pass folders of a run whose text was inspected: each of them once."""

import threading
from pathlib import Path

from passnet.judge.candidate import Candidate
from passnet.judge.findings import Finding
from passnet.judge.inspection.limited import Inspection, inspect_limited
from passnet.judge.inspection.rules import RulesName


class InspectedFolders:
    """What the text of pass folders gives away, found when a folder is first asked for.

    Args:
        rules: that the folders are inspected under.
    """

    def __init__(self, rules: RulesName) -> None:
        self._rules: RulesName = rules
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
                inspection = inspect_limited(Path(candidate.passes), self._rules)
                self._inspections[candidate.passes] = inspection
            return self._inspections[candidate.passes]
