"""What stands behind the claims about passes: every judged pass of a net with its trial, the
settings of the judge and its sources, copied from the library, which may change later.
"""

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
    """A judged pass. `trial` is None where an author wrote none, `settings` also where they were
    not recorded.
    """

    entry: PassEntry
    trial: Trial | None
    settings: RunSettings | None
    files: Files


def keep_passes(library: PassLibrary, digests: Collection[str], out: Path) -> None:
    """Copy the entries of a library with some digests to a library of their own at `out`, which
    replaces what is there.
    """
    shutil.rmtree(out, ignore_errors=True)
    if digests:
        entries = [entry for entry in all_entries(library.folder) if entry.digest in digests]
        library.export(out, entries)


def read_kept_passes(folder: Path) -> tuple[KeptPass, ...]:
    """What was kept in a folder; nothing where there is none.

    Raises:
        InputError: it is damaged.
    """
    if not (folder / ENTRIES).is_dir():
        return ()
    library = PassLibrary(folder)
    found = []
    for entry in all_entries(folder):
        home = folder / ENTRIES / entry.digest
        trial, settings = home / TRIAL_FILE, home / SETTINGS_FILE
        found.append(KeptPass(
            entry,
            read_json(trial, Trial) if trial.is_file() else None,
            read_json(settings, RunSettings) if settings.is_file() else None,
            library.files(entry) if entry.code_hash else {},
        ))  # fmt: skip
    return tuple(found)
