"""Copies of a net's judged passes, as evidence while the library changes."""

import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from passnet.core.records.serialise import read_json
from passnet.judge.settings import RunSettings
from passnet.judge.trial import Trial
from passnet.passes.files import Files
from passnet.passes.library.entries import (
    ENTRIES,
    SETTINGS_FILE,
    TRIAL_FILE,
    PassEntry,
    all_entries,
)
from passnet.passes.library.store import PassLibrary

KEPT_FOLDER = "judged-passes"


@dataclass(frozen=True, slots=True)
class KeptPass:
    """A judged pass with its evidence."""

    entry: PassEntry

    trial: Trial | None
    """None where the author wrote no pass."""

    settings: RunSettings | None
    """None also where they were not recorded."""

    files: Files


def keep_passes(library: PassLibrary, digests: Collection[str], out: Path) -> None:
    """Copy the entries with some digests to a library at `out`, in place of an older copy."""
    shutil.rmtree(out, ignore_errors=True)
    if digests:
        entries = [entry for entry in all_entries(library.folder) if entry.digest in digests]
        library.export(out, entries)


def read_kept_passes(folder: Path) -> tuple[KeptPass, ...]:
    """Read the passes copied to a folder; none where there is no folder."""
    if not (folder / ENTRIES).is_dir():
        return ()
    library = PassLibrary(folder)
    passes = []
    for entry in all_entries(folder):
        home = folder / ENTRIES / entry.digest
        trial, settings = home / TRIAL_FILE, home / SETTINGS_FILE
        passes.append(
            KeptPass(
                entry,
                read_json(trial, Trial) if trial.is_file() else None,
                read_json(settings, RunSettings) if settings.is_file() else None,
                library.files(entry) if entry.code_hash else {},
            )
        )
    return tuple(passes)
