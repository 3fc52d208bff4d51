"""A run over many entries: the record and graphs of every net are on disk once it is done."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION, make_folder
from passnet.data.capture.capture_job import capture_isolated, file_hash
from passnet.data.capture.record import CaptureSettings, NetRecord, entry_file
from passnet.data.capture.store import MANIFEST_FILE, Manifest, merge, read_set
from passnet.errors import InputError

RUN_FILE = "run.json"
RECORDS_FILE = "nets.jsonl"
GRAPHS_FOLDER = "nets"


@dataclass(frozen=True, slots=True)
class ExtractRunInfo:
    """The settings of a run; only a run with the same settings can resume it."""

    schema_version: int
    settings: CaptureSettings


def run_extract(
    entries: Sequence[str],
    settings: CaptureSettings,
    out: Path,
    plan: RunPlan = DEFAULT_PLAN,
) -> tuple[list[NetRecord], Manifest]:
    """Capture entries into a folder, and merge their graphs without duplicates.

    `out/nets.jsonl` and `out/nets/` grow with each net; `out/graphs-*.parquet` and
    `out/manifest.json` follow at the end. With `plan.retry`, nets whose file has changed are
    captured again too. Returns the records of all nets in `out`, and its manifest.

    Raises: InputError: `out` holds a run and `plan.resume` is off, or one with other settings;
    another process works in it; a net's file has changed and `plan.retry` is off; or `out` cannot
    be written to.
    """
    run = _run_folder(out)
    complaint = f"{out}: was captured with other settings; choose another --out, or give those"
    with run.begin(ExtractRunInfo(SCHEMA_VERSION, settings), plan.resume, unchanged(complaint)):
        records = run.records()
        missing = _missing(entries, records, out, plan.retry)
        work = partial(capture_isolated, settings=settings)
        outcomes = plan.executor(missing, work, plan.num_workers)
        for record in run.keep(outcomes, len(records), lambda net: graphs_path(out, net.entry)):
            records[record.entry] = record
            plan.progress(record)
        return [records[entry] for entry in sorted(records)], merge_runs([out], out)


def _missing(
    entries: Sequence[str], records: dict[str, NetRecord], out: Path, retry: bool
) -> list[str]:
    """Return the entries that are still to be captured."""
    changed = {entry for entry in entries if entry in records and _has_changed(records[entry])}
    if changed and not retry:
        raise InputError(
            f"{entry_file(min(changed))}: has changed since {out} captured nets of it; add --retry "
            "to capture them again, or choose another --out"
        )
    finished = {entry for entry, net in records.items() if net.status == "captured" or not retry}
    return [entry for entry in dict.fromkeys(entries) if entry not in finished - changed]


def _has_changed(record: NetRecord) -> bool:
    return record.file_hash is not None and record.file_hash != file_hash(record.entry)


def merge_runs(folders: Sequence[Path], out: Path) -> Manifest:
    """Write one set of shards of the graphs of several runs and sets."""
    files, versions = graph_files(folders)
    make_folder(out)
    return merge(files, out, versions)


def graph_files(folders: Sequence[Path]) -> tuple[list[Path], dict[str, list[str]]]:
    """Return the graph files of several runs and sets, and the versions of their packages.

    Raises:
        InputError: a folder holds no run, and no set.
    """
    files: list[Path] = []
    versions: dict[str, set[str]] = {}
    for folder in folders:
        records = read_records(folder)
        if not records and not (folder / MANIFEST_FILE).exists():
            raise InputError(f"{folder}: holds no captured nets ({RECORDS_FILE})")
        if not records:
            manifest, shards = read_set(folder)
            files += shards
            for name, numbers in manifest.versions.items():
                versions.setdefault(name, set()).update(numbers)
        for record in records.values():
            if record.status == "captured":
                files.append(graphs_path(folder, record.entry))
            for name, version in record.versions.items():
                versions.setdefault(name, set()).add(version)
    return files, {name: sorted(versions[name]) for name in versions}


def read_all_records(folders: Sequence[Path]) -> list[NetRecord]:
    """Return the records of several runs, the last of each entry."""
    records: dict[str, NetRecord] = {}
    for folder in folders:
        records |= read_records(folder)
    return [records[entry] for entry in sorted(records)]


def _run_folder(out: Path) -> RunFolder[ExtractRunInfo, NetRecord, str]:
    entry = attrgetter("entry")
    return RunFolder(out, RUN_FILE, ExtractRunInfo, RECORDS_FILE, NetRecord, entry, "captured nets")


def read_records(out: Path) -> dict[str, NetRecord]:
    """Return the last record of each entry of a run; a torn last line is skipped."""
    return _run_folder(out).records()


def graphs_path(out: Path, entry: str) -> Path:
    """Return the file of an entry's graphs."""
    plain = re.sub(r"[^\w.-]+", "_", entry)[-80:]
    digest = hashlib.sha256(entry.encode()).hexdigest()[:8]
    return out / GRAPHS_FOLDER / f"{plain}-{digest}.parquet"
