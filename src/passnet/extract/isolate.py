"""One entry after another, each captured in a child process of a warm parent."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from passnet.errors import CaptureError
from passnet.extract.catalog import is_file
from passnet.extract.record import CaptureSettings, Cause, NetRecord
from passnet.extract.worker import (
    LOG_FILE,
    RECORD_FILE,
    ROWS_FILE,
    Ended,
    Request,
)
from passnet.records import decode, encode, read_json

MAX_LOG_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Captured:
    """What came of an entry: its record, and its graphs as a Parquet file, None without any."""

    record: NetRecord
    rows: bytes | None


class Isolated:
    """Captures entries in processes of their own, one at a time.

    The parent of those processes has the entry's library imported; it stays until an entry of
    another library comes.
    """

    def __init__(self) -> None:
        self._parent: subprocess.Popen[bytes] | None = None
        self._key = ""

    def __enter__(self) -> Isolated:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the parent."""
        if self._parent is not None:
            self._parent.kill()
            self._parent.wait()
            for stream in (self._parent.stdin, self._parent.stdout):
                if stream is not None:
                    stream.close()
            self._parent = None

    def capture(self, entry: str, settings: CaptureSettings) -> Captured:
        """Capture one entry. What goes wrong with it is in its record.

        Raises:
            CaptureError: our own machinery failed, twice.
        """
        with tempfile.TemporaryDirectory(prefix="passnet-extract-") as name:
            folder = Path(name)
            request = Request(entry, name, settings)
            ended = self._ask(request) or self._ask(request)
            if ended is None:
                raise CaptureError(f"the process that captures {entry} ends before it has begun")
            return _collect(entry, folder, ended, settings)

    def _ask(self, request: Request) -> Ended | None:
        """Let the parent work on a request; None where the parent ends over it."""
        parent = self._ready(request.entry)
        assert parent.stdin is not None and parent.stdout is not None, "both are pipes"
        try:
            parent.stdin.write(encode(request) + b"\n")
            parent.stdin.flush()
            line = parent.stdout.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            self.close()
            return None
        return decode(line, Ended)

    def _ready(self, entry: str) -> subprocess.Popen[bytes]:
        key = "file" if is_file(entry) else entry.split("/", 1)[0]
        if self._parent is not None and (key != self._key or self._parent.poll() is not None):
            self.close()
        if self._parent is None:
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
            self._parent = subprocess.Popen(
                [sys.executable, "-m", "passnet.extract.worker", entry],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            self._key = key
        return self._parent


def _collect(entry: str, folder: Path, ended: Ended, settings: CaptureSettings) -> Captured:
    used = {"wall_s": ended.wall_s, "peak_mib": ended.peak_mib}
    log = folder / LOG_FILE
    said = log.read_text(errors="replace").strip() if log.exists() else ""
    path = folder / RECORD_FILE
    if ended.status == 0 and path.exists():
        record = replace(read_json(path, NetRecord), **used)
        rows = folder / ROWS_FILE
        return Captured(record, rows.read_bytes() if rows.exists() else None)
    cause: Cause
    if ended.timed_out:
        cause, text = "timeout", f"not done in {settings.limits.seconds:g} s"
    elif ended.peak_mib > 0.9 * settings.limits.memory_mib or "memory" in said[-2000:].lower():
        cause, text = "out_of_memory", f"more than {settings.limits.memory_mib} MiB"
    else:
        how = f"signal {ended.signal}" if ended.signal else f"exit status {ended.status}"
        cause, text = "crash", f"its process ended with {how}: {said[-MAX_LOG_CHARACTERS:]}"
    return Captured(NetRecord(entry, "failed", cause, text, **used), None)
