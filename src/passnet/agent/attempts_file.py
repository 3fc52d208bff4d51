"""Attempts as they are kept, one line each in a file of the run folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from passnet.agent.attempt import Attempt
from passnet.errors import InputError
from passnet.jobs.run_folder import last_records
from passnet.records.serialise import SCHEMA_VERSION

ATTEMPTS_FILE = "attempts.jsonl"


def read_attempts(paths: Sequence[Path]) -> list[Attempt]:
    """The attempts of runs, in the order of the paths and of their lines.

    Of an attempt that a file holds more than once the last record counts. A torn last line, a
    write that was killed, is left out.

    Args:
        paths: run folders, or files of attempts; one that is given twice counts once.

    Raises:
        InputError: nothing there, a line that is no attempt (its number is named), or one of
            another schema version.
    """
    if not paths:
        raise InputError("give a run folder with attempts")
    files = dict.fromkeys(_find_file(path).resolve() for path in paths)
    return [attempt for file in files for attempt in _read_file(file)]


def _find_file(path: Path) -> Path:
    file = path / ATTEMPTS_FILE if path.is_dir() else path
    if not file.is_file():
        missing = f"holds no {ATTEMPTS_FILE}" if path.is_dir() else "no such file"
        raise InputError(f"{path}: {missing}; give the folder of a run of an author")
    return file


def _read_file(path: Path) -> list[Attempt]:
    attempts = list(last_records(path, Attempt, lambda attempt: attempt.key).values())
    if not attempts:
        raise InputError(f"{path}: holds no attempt")
    for attempt in attempts:
        if attempt.schema_version != SCHEMA_VERSION:
            raise InputError(
                f"{path}: an attempt has version {attempt.schema_version}, this passnet reads "
                f"version {SCHEMA_VERSION}; install the passnet that wrote it"
            )
    return attempts
