"""A run over many entries, each in its own process; every net is on disk once it is done."""

import gc
import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path

from passnet.core.jobs.process import Job, JobLimits, JobOutcome, JobResult, JobRunner
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION, decode, encode, make_folder
from passnet.core.records.untrusted import untrusted_digest
from passnet.data.capture import store
from passnet.data.capture.record import (
    CaptureFailure,
    CaptureSettings,
    NetRecord,
    entry_file,
    is_file,
    split_entry,
)
from passnet.data.capture.store import MANIFEST_FILE, Manifest
from passnet.errors import InputError, check_exists

RUN_FILE = "run.json"
RECORDS_FILE = "nets.jsonl"
GRAPHS_FOLDER = "nets"
MAX_LOG_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class ExtractRunInfo:
    """The settings of a run; only a run with the same settings can resume it."""

    schema_version: int
    settings: CaptureSettings


def run_extract(
    entries: Sequence[str], settings: CaptureSettings, out: Path, plan: RunPlan = DEFAULT_PLAN
) -> tuple[list[NetRecord], Manifest]:
    """Capture entries into a folder, and merge their graphs without duplicates. `out/nets.jsonl`
    and `out/nets/` grow with each net; `out/graphs-*.parquet` and `out/manifest.json` follow at the
    end. With `plan.retry`, nets whose file has changed are captured again too. Returns the records
    of all nets in `out`, and its manifest.

    Raises:
        InputError: `out` holds a run and `plan.resume` is off, or one with other settings; another
            process works in it; a net's file has changed and `plan.retry` is off; or `out` cannot
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
    hashes = {entry: records[entry].file_hash for entry in entries if entry in records}
    changed = {entry for entry in hashes if hashes[entry] not in (None, file_hash(entry))}
    if changed and not retry:
        raise InputError(
            f"{entry_file(min(changed))}: has changed since {out} captured nets of it; add --retry "
            "to capture them again, or choose another --out"
        )
    finished = {entry for entry, net in records.items() if net.status == "captured" or not retry}
    return [entry for entry in dict.fromkeys(entries) if entry not in finished - changed]


def merge_runs(folders: Sequence[Path], out: Path) -> Manifest:
    """Write one set of shards of the graphs of several runs and sets."""
    files, versions = graph_files(folders)
    make_folder(out)
    return store.merge(files, out, versions)


def graph_files(folders: Sequence[Path]) -> tuple[list[Path], dict[str, list[str]]]:
    """Return the graph files of several runs and sets, and the versions of their packages."""
    files: list[Path] = []
    versions: dict[str, set[str]] = defaultdict(set)
    for folder in folders:
        check_exists(folder)
        records = read_records(folder)
        if not records and not (folder / MANIFEST_FILE).exists():
            raise InputError(f"{folder}: holds no captured nets ({RECORDS_FILE})")
        if not records:
            manifest, shards = store.read_set(folder)
            files += shards
            for name, numbers in manifest.versions.items():
                versions[name].update(numbers)
        for record in records.values():
            if record.status == "captured":
                files.append(graphs_path(folder, record.entry))
            for name, version in record.versions.items():
                versions[name].add(version)
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


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """The task of a capture process."""

    entry: str
    settings: CaptureSettings


def capture_isolated(
    worker: JobRunner, entry: str, settings: CaptureSettings
) -> JobOutcome[NetRecord]:
    """Capture one entry in its own process; its record holds any failure."""
    payload = encode(CaptureRequest(entry, settings)).decode()
    digest = file_hash(entry)
    function = "passnet.data.capture.run:capture_to"
    result = worker.run(library_job(function, payload, settings.limits, entry))
    failed = NetRecord(entry, "failed", *_failure(result))
    outcome = result.outcome(NetRecord) or JobOutcome(failed)
    end = result.end
    record = replace(outcome.record, wall_s=end.wall_s, peak_mib=end.peak_mib, file_hash=digest)
    return JobOutcome(record, outcome.rows)


def library_job(function: str, payload: str, limits: JobLimits, entry: str) -> Job:
    """Return a job over an entry; the parent of its process has the entry's library imported."""
    prepare = "passnet.data.capture.entry_capture:preload_library"
    argument = entry if is_file(entry) else split_entry(entry)[0]
    return Job(function, payload, limits, prepare, argument)


def file_hash(entry: str) -> str | None:
    """Return the SHA-256 of the Python file that an entry names; None for LIBRARY/NET."""
    file = entry_file(entry)
    return None if file is None else untrusted_digest(file).hex()


def capture_to(payload: str, folder: Path) -> None:
    """Capture in the process, and write record and graphs to a folder."""
    from passnet.data.capture.entry_capture import capture_entry

    collect_rarely()
    request = decode(payload, CaptureRequest)
    result = capture_entry(request.entry, request.settings)
    store.write_result(folder, result.record, result.rows, store.GRAPHS)


def collect_rarely() -> None:
    """Make garbage collection rare in a short process, where it costs a fifth of the time."""
    gc.freeze()
    gc.set_threshold(1_000_000)


_OUT_OF_MEMORY = re.compile(r"MemoryError|bad_alloc|(?i:(can't|cannot) allocate|out of) memory")
"""Words of Python, C++, torch and the OS for memory that cannot be had."""


def _failure(result: JobResult) -> tuple[CaptureFailure, str]:
    end, limits = result.end, result.job.limits
    if end.timed_out:
        return "timeout", result.failure
    if end.peak_mib > 0.9 * limits.memory_mib or _OUT_OF_MEMORY.search(result.log[-2000:]):
        return "out_of_memory", f"more than {limits.memory_mib} MiB"
    ending = f"signal {end.signal}" if end.signal else f"exit status {end.status}"
    return "crash", f"its process ended with {ending}: {result.log[-MAX_LOG_CHARACTERS:]}"
