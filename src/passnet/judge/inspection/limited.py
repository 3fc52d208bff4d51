"""The inspection of a pass folder in a process of its own, which may use so much and no more."""

import resource
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from passnet.errors import PassFolderError, WorkerError
from passnet.judge.findings import Finding
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import RULES, RulesName
from passnet.passes.folder import inspect_folder
from passnet.records.serialise import decode, encode

MAX_SECONDS = 60
MAX_MEMORY_MIB = 2048
MAX_ERROR_CHARS = 500
MAX_FRAMES = 20_000
"""Of Python, which what may be nested needs."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What the text of a pass folder gives away, or why it cannot be told."""

    findings: tuple[Finding, ...] = ()
    failure: str | None = None


def inspect_limited(folder: Path, rules: RulesName) -> Inspection:
    """Inspect a pass folder in another process.

    Raises:
        WorkerError: our own machinery failed.
    """
    command = [sys.executable, "-P", "-m", __name__, rules, str(folder.resolve())]
    try:
        run = subprocess.run(command, capture_output=True, timeout=4 * MAX_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return _too_much(folder)
    if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGSEGV):
        return _too_much(folder)
    if run.returncode != 0:
        raise WorkerError(
            f"the inspection of {folder} failed: {run.stderr.decode()[-MAX_ERROR_CHARS:]}"
        )
    return decode(run.stdout, Inspection)


def _too_much(folder: Path) -> Inspection:
    return Inspection(
        failure=f"{folder}: its code takes more than {MAX_SECONDS} s or {MAX_MEMORY_MIB} MiB to "
        "inspect; put less of it into the folder"
    )


def main(rules: RulesName, folder: str) -> None:
    """Inspect a folder, and print what comes of it."""
    sys.setrecursionlimit(MAX_FRAMES)
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_MIB * 2**20,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        findings = inspect_code(inspect_folder(Path(folder)), RULES[rules])
        inspection = Inspection(tuple(findings))
    except PassFolderError as cause:
        inspection = Inspection(failure=str(cause))
    except MemoryError:
        inspection = _too_much(Path(folder))
    sys.stdout.buffer.write(encode(inspection))


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
