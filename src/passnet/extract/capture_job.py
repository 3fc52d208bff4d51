"""One entry of the catalog, captured in a process of its own."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from passnet.extract.catalog import is_file
from passnet.extract.record import CaptureFailure, CaptureSettings, NetRecord
from passnet.jobs.process import RECORD_FILE, ROWS_FILE, Job, JobEnd, JobRunner, log_of
from passnet.jobs.run_folder import JobOutcome
from passnet.records.serialise import decode, encode, read_json, write_json

MAX_LOG_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """What a task is told: the entry, and how to capture it."""

    entry: str
    settings: CaptureSettings


def capture_isolated(
    worker: JobRunner, entry: str, settings: CaptureSettings
) -> JobOutcome[NetRecord]:
    """Capture one entry in a process of its own. What goes wrong with it is in its record.

    The parent of that process has the entry's library imported.

    Raises:
        WorkerError: our own machinery failed.
    """
    library = entry if is_file(entry) else entry.split("/", 1)[0]
    with tempfile.TemporaryDirectory(prefix="passnet-extract-") as name:
        payload = encode(CaptureRequest(entry, settings)).decode()
        task = Job("passnet.extract.capture_job:capture_to", payload, name, settings.limits)
        ended = worker.run(task, "passnet.extract.entry_capture:preload_library", library)
        return _collect(entry, Path(name), ended, settings)


def capture_to(payload: str, folder: Path) -> None:
    """What runs in the process: capture, and leave record and graphs in a folder."""
    from passnet.extract.entry_capture import capture_entry
    from passnet.extract.store import GRAPHS

    request = decode(payload, CaptureRequest)
    result = capture_entry(request.entry, request.settings)
    if result.rows:
        GRAPHS.write(folder / ROWS_FILE, result.rows)
    write_json(folder / RECORD_FILE, result.record)


def _collect(
    entry: str, folder: Path, ended: JobEnd, settings: CaptureSettings
) -> JobOutcome[NetRecord]:
    used = {"wall_s": ended.wall_s, "peak_mib": ended.peak_mib}
    path = folder / RECORD_FILE
    if ended.status == 0 and path.exists():
        record = replace(read_json(path, NetRecord), **used)
        rows = folder / ROWS_FILE
        return JobOutcome(record, rows.read_bytes() if rows.exists() else None)
    said = log_of(folder)
    cause: CaptureFailure
    if ended.timed_out:
        cause, text = "timeout", f"not done in {settings.limits.seconds:g} s"
    elif ended.peak_mib > 0.9 * settings.limits.memory_mib or "memory" in said[-2000:].lower():
        cause, text = "out_of_memory", f"more than {settings.limits.memory_mib} MiB"
    else:
        how = f"signal {ended.signal}" if ended.signal else f"exit status {ended.status}"
        cause, text = "crash", f"its process ended with {how}: {said[-MAX_LOG_CHARACTERS:]}"
    return JobOutcome(NetRecord(entry, "failed", cause, text, **used), None)
