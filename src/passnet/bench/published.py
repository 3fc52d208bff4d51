"""Scores that others published: the AS of each task, with no trial of this machine behind it."""

import re
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

from passnet.core.records.folders import check_free
from passnet.core.records.serialise import SCHEMA_VERSION, make_folder, read_json, write_json
from passnet.core.records.untrusted import read_untrusted_text
from passnet.errors import InputError

PUBLISHED_FILE = "published.json"
SCORE_FILE = "score.txt"
MAX_SCORE_BYTES = 64 * 1024
"""Most bytes of a file with one score."""

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])"
_LABELLED = re.compile(rf"\bAS\b\W*?({_NUMBER})")


@dataclass(frozen=True)
class PublishedRun:
    """Record of the scores that a candidate has elsewhere; none was measured here."""

    schema_version: int
    name: str

    tasks: dict[str, float]
    """AS by task."""

    @property
    def score(self) -> float:
        """Return the AS over all tasks, their geometric mean."""
        return geometric_mean(self.tasks.values())


def import_published(folder: Path, name: str, out: Path) -> PublishedRun:
    """Read the scores in `TASK/score.txt` of a folder, and write them to a new folder as a run.

    Raises InputError for a folder without such files, a file without one score above 0, or an `out`
    that is not empty.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder}: no such folder; give one with a TASK/{SCORE_FILE} for each task"
        )
    paths = sorted(folder.glob(f"*/{SCORE_FILE}"))
    if not paths:
        raise InputError(f"{folder}: holds no TASK/{SCORE_FILE}; give the folder of one candidate")
    check_free(out)
    tasks = {path.parent.name: _score(path) for path in paths}
    published = PublishedRun(SCHEMA_VERSION, name, tasks)
    make_folder(out)
    write_json(out / PUBLISHED_FILE, published)
    return published


def read_published(folder: Path) -> PublishedRun:
    """Read the scores of a folder of `import_published`; raise InputError if they are none."""
    path = folder / PUBLISHED_FILE
    published = read_json(path, PublishedRun)
    if published.schema_version != SCHEMA_VERSION:
        raise InputError(f"{path}: written by another version of passnet; import the scores again")
    if not published.tasks or min(published.tasks.values()) <= 0:
        raise InputError(f"{path}: holds no scores above 0; import the scores again")
    return published


def _score(path: Path) -> float:
    """Return the one number of a file, or the one behind the word AS."""
    text = read_untrusted_text(path, MAX_SCORE_BYTES)
    numbers = re.findall(rf"(?<![\w.]){_NUMBER}", text)
    found = numbers if len(numbers) == 1 else _LABELLED.findall(text)
    score = float(found[0]) if len(found) == 1 else 0.0
    if not 0 < score < float("inf"):
        raise InputError(f"{path}: must hold the AS of its task, one number above 0")
    return score
