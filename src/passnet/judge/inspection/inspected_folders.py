"""The pass folders of a run whose text was inspected: each of them once."""

import threading
from pathlib import Path

from passnet.errors import PassFolderError
from passnet.judge.candidate import Candidate
from passnet.judge.findings import Finding
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import RULES, RulesName
from passnet.passes.folder import inspect_folder


class InspectedFolders:
    """What the text of pass folders gives away, found when a folder is first asked for.

    Args:
        rules: that the folders are inspected under.
    """

    def __init__(self, rules: RulesName) -> None:
        self._rules = RULES[rules]
        self._findings: dict[str, tuple[Finding, ...]] = {}
        self._lock = threading.Lock()

    def findings(self, candidate: Candidate) -> tuple[Finding, ...]:
        """What the code of a candidate's pass folder uses; nothing of a folder that is broken."""
        if candidate.passes is None:
            return ()
        with self._lock:
            if candidate.passes not in self._findings:
                self._findings[candidate.passes] = self._inspect(Path(candidate.passes))
            return self._findings[candidate.passes]

    def _inspect(self, folder: Path) -> tuple[Finding, ...]:
        try:
            return tuple(inspect_code(inspect_folder(folder), self._rules))
        except PassFolderError:
            return ()  # the candidate's worker will say what is wrong with it
