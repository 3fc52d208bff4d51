"""Candidates as the command line names them: baselines and pass folders, with flags."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from passnet.errors import InputError, PassFolderError, did_you_mean, neighbours, no_such
from passnet.judge.candidate import INDUCTOR_KINDS, CallMode, Candidate
from passnet.judge.task import Task
from passnet.passes.folder import (
    LIST_FILE,
    PassFolder,
    hash_folders,
    inspect_folder,
    is_pass_folder,
)

BASELINES = ("eager", "null", *INDUCTOR_KINDS)
CALLS: tuple[CallMode, ...] = ("direct", "guarded")
"""Flags for how to call; without one a candidate is compiled."""
RESIDUALS: tuple[Literal["inductor", "inlined"], ...] = ("inductor", "inlined")
"""Flags for what runs the ops that passes leave; without one it is eager torch."""
FLAGS = (*CALLS, *RESIDUALS)


@dataclass(frozen=True)
class CandidateEntry:
    """One candidate of a run, for all tasks.

    `folder` is a pass folder for every task, or a folder that holds one pass folder per task under
    the task's name; None for a baseline. `code_hash` covers all its files.
    `notes` are warnings for the user, `broken` the tasks whose folder cannot be used.
    """

    template: Candidate
    folder: Path | None = None
    code_hash: str | None = None
    notes: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name under which its trials are recorded."""
        return self.template.name

    def for_task(self, task: str) -> Candidate | None:
        """Return the candidate for a task; None where it has no pass folder."""
        if self.folder is None:
            return self.template
        path = self.folder if is_pass_folder(self.folder) else self.folder / task
        if not is_pass_folder(path):
            return None
        return replace(self.template, passes=str(path.resolve()))


def parse_candidate(text: str, tasks: tuple[Task, ...]) -> CandidateEntry:
    """Return the candidate that a word of the command line names.

    The word is one of `BASELINES` or a path, then any of `@direct` (call the rewritten graph
    itself), `@guarded` instead (behind checks of our own), and `@inductor` (let Inductor compile
    what the passes left) or `@inlined` (and the replacements that it can trace). Raises InputError
    for an unknown baseline or flag, PassFolderError for an unusable folder; one of several tasks'
    folders is only noted.
    """
    word, *flags = text.split("@")
    unknown = [flag for flag in flags if flag not in FLAGS]
    if unknown:
        known = [f"@{flag}" for flag in FLAGS]
        raise InputError(f"candidate {text}: {no_such('flag', f'@{unknown[0]}', known)}")
    calls = [call for call in CALLS if call in flags]
    residuals = [residual for residual in RESIDUALS if residual in flags]
    for given, options in ((calls, CALLS), (residuals, RESIDUALS)):
        if len(given) > 1:
            raise InputError(f"candidate {text}: give either @{options[0]} or @{options[1]}")
    default: CallMode = "direct" if word == "eager" else "compiled"
    call = calls[0] if calls else default
    residual = residuals[0] if residuals else "eager"
    if word in BASELINES:
        return CandidateEntry(Candidate(text, word, None, call, residual))  # type: ignore[arg-type]
    path = Path(word)
    if path.is_file():
        raise InputError(f"candidate {text}: a file; give the pass folder that it is in")
    if not path.is_dir():
        raise InputError(
            f"candidate {text}: no baseline and no folder of that name; give "
            f"{', '.join(BASELINES)} or the path of a pass folder"
            f"{did_you_mean(word, [*BASELINES, *neighbours(path)])}"
        )
    folders, broken = _pass_folders(path, tasks)
    hashes = [f"{name}\0{folder.code_hash}\n" for name, folder in sorted(folders.items())]
    for name in sorted(broken):
        with suppress(PassFolderError):  # files that cannot be read can neither be run
            hashes.append(f"{name}\0{hash_folders([path / name])}\n")
    code_hash = hashlib.sha256("".join(hashes).encode()).hexdigest()
    notes = tuple(
        f"{folder.path}: {name}.py looks like a pass but is not on the list, so it is not applied"
        for folder in folders.values()
        for name in folder.unlisted
    ) + tuple(f"task {task}: {error}" for task, error in broken.items())
    template = Candidate(text, "passes", None, call, residual, str(path.resolve()))
    return CandidateEntry(template, path.resolve(), code_hash, notes, tuple(broken))


def distinct(entries: Sequence[CandidateEntry]) -> tuple[list[CandidateEntry], list[str]]:
    """Return the entries but for folders given before by another name, and a note on each."""
    kept: list[CandidateEntry] = []
    notes: list[str] = []
    names: dict[Candidate, str] = {}
    for entry in entries:
        name = names.setdefault(replace(entry.template, name=""), entry.name)
        if entry.folder is None or name == entry.name:
            kept.append(entry)
        else:
            notes.append(f"candidate {entry.name} is {name} by another name, judged once")
    return kept, notes


def _pass_folders(
    path: Path, tasks: tuple[Task, ...]
) -> tuple[dict[str, PassFolder], dict[str, str]]:
    """Return the pass folders in a path by task ("" for all tasks), and errors of the others."""
    if is_pass_folder(path):
        return {"": inspect_folder(path)}, {}
    folders: dict[str, PassFolder] = {}
    broken: dict[str, str] = {}
    for task in tasks:
        if is_pass_folder(path / task.name):
            try:
                folders[task.name] = inspect_folder(path / task.name)
            except PassFolderError as cause:
                broken[task.name] = str(cause)
    if not folders and not broken:
        raise PassFolderError(
            f"{path}: holds neither {LIST_FILE} nor a pass folder named after a task of the suite "
            f"({', '.join(task.name for task in tasks[:4])}, …)"
        )
    return folders, broken
