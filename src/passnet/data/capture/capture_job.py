"""The capture of one entry in its own process."""

import gc
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from passnet.core.jobs.process import RECORD_FILE, ROWS_FILE, Job, JobOutcome, JobResult, JobRunner
from passnet.core.records.serialise import decode, encode, write_json
from passnet.data.capture.record import (
    CaptureFailure,
    CaptureSettings,
    NetRecord,
    entry_file,
    is_file,
    split_entry,
)

MAX_LOG_CHARACTERS = 400
OBJECTS_BETWEEN_COLLECTIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """The task of a capture process."""

    entry: str
    settings: CaptureSettings


def capture_isolated(
    worker: JobRunner, entry: str, settings: CaptureSettings
) -> JobOutcome[NetRecord]:
    """Capture one entry in its own process; its record holds any failure."""
    job = Job(
        "passnet.data.capture.capture_job:capture_to",
        encode(CaptureRequest(entry, settings)).decode(),
        settings.limits,
        "passnet.data.capture.entry_capture:preload_library",
        entry if is_file(entry) else split_entry(entry)[0],
    )
    digest = file_hash(entry)
    result = worker.run(job)
    used: dict[str, Any] = {
        "wall_s": result.end.wall_s,
        "peak_mib": result.end.peak_mib,
        "file_hash": digest,
    }
    outcome = result.outcome(NetRecord)
    if outcome is None:
        return JobOutcome(NetRecord(entry, "failed", *_failure(result), **used))
    return JobOutcome(replace(outcome.record, **used), outcome.rows)


def file_hash(entry: str) -> str | None:
    """Return the SHA-256 of the Python file that an entry names; None for LIBRARY/NET."""
    file = entry_file(entry)
    return None if file is None else hashlib.sha256(file.read_bytes()).hexdigest()


def capture_to(payload: str, folder: Path) -> None:
    """Capture in the process, and write record and graphs to a folder."""
    from passnet.data.capture.entry_capture import capture_entry
    from passnet.data.capture.store import GRAPHS

    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)  # the process is short
    request = decode(payload, CaptureRequest)
    result = capture_entry(request.entry, request.settings)
    if result.rows:
        GRAPHS.write(folder / ROWS_FILE, result.rows)
    write_json(folder / RECORD_FILE, result.record)


def _failure(result: JobResult) -> tuple[CaptureFailure, str]:
    end, limits = result.end, result.job.limits
    if end.timed_out:
        return "timeout", result.failure
    if end.peak_mib > 0.9 * limits.memory_mib or "memory" in result.log[-2000:].lower():
        return "out_of_memory", f"more than {limits.memory_mib} MiB"
    ending = f"signal {end.signal}" if end.signal else f"exit status {end.status}"
    return "crash", f"its process ended with {ending}: {result.log[-MAX_LOG_CHARACTERS:]}"
