"""Fuzzing of all readers: `python -m tests.fuzz.fuzzing [READER]...`, for `FUZZ_SECONDS` each.

An input is told by its reader and number, which is its seed: `--number N` tries one alone. Inputs
are tried in children, so that one that ends its process, hangs or takes memory is found as well.
"""

from __future__ import annotations

import argparse
import json
import logging
import mmap
import os
import resource
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from random import Random

from passnet.errors import PassnetError
from tests.fuzz.mutate import changed
from tests.fuzz.readers import READERS

SECONDS_VARIABLE = "FUZZ_SECONDS"
MAX_MIB = 512
MAX_HANG_S = 20
_NUMBER = struct.Struct("q")


@dataclass(frozen=True)
class Fuzzing:
    """The result of fuzzing one reader."""

    reader: str
    num_inputs: int
    num_refused: int
    peak_mib: int
    faults: tuple[str, ...]

    def __str__(self) -> str:
        text = (
            f"{self.reader}: {self.num_inputs} inputs, {self.num_refused} refused, "
            f"{self.peak_mib} MiB, {len(self.faults)} faults"
        )
        return "\n  ".join([text, *self.faults])


def try_input(name: str, number: int, template: Path, folder: Path) -> str | None:
    """Read the input of a number; return the text of our error, or None; raise what is not ours."""
    reader = READERS[name]
    random = Random(f"{name} {number}")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder, symlinks=True)
    file = folder / random.choice(reader.files)
    file.write_bytes(changed(file.read_bytes(), random))
    try:
        reader.refit(folder)
        reader.read(folder)
    except PassnetError as cause:
        str(cause).encode()  # a sentence that can be printed
        return str(cause)
    return None


def _tries(name: str, first: int, stop_at: float, home: Path, number: mmap.mmap) -> dict:
    """Try inputs from a number until a time; in a child."""
    refused, tried, faults = 0, 0, []
    first_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # also of who forked it
    most_kib = max(MAX_MIB * 1024, first_kib + MAX_MIB * 512)
    while tried == 0 or time.monotonic() < stop_at:
        _NUMBER.pack_into(number, 0, first + tried)
        start = time.monotonic()
        try:
            refused += try_input(name, first + tried, home / "honest", home / "changed") is not None
        except Exception as cause:  # noqa: BLE001 (any error that is not ours is a find)
            frames = traceback.extract_tb(cause.__traceback__)
            last = [frame for frame in frames if "/passnet/" in frame.filename][-1:] or frames
            place = f"{Path(last[-1].filename).name}:{last[-1].lineno}"
            text = f"{type(cause).__name__}: {str(cause)[:200]!r}"
            if not any(place in fault for fault in faults):  # one of each kind is enough
                faults.append(f"--number {first + tried}: at {place}: {text}")
        if time.monotonic() - start > MAX_HANG_S:
            faults.append(f"--number {first + tried}: {time.monotonic() - start:.0f} s")
        tried += 1
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > most_kib:
            faults.append(f"--number {first + tried - 1}: more than {MAX_MIB} MiB")
            break
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"refused": refused, "tried": tried, "faults": faults, "peak_mib": peak_mib}


def _in_child(name: str, first: int, seconds: float, home: Path) -> dict:
    """Try inputs in a child; a child that dies or hangs is a fault of its last input."""
    number = mmap.mmap(-1, _NUMBER.size)
    output, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            result = _tries(name, first, time.monotonic() + seconds, home, number)
            with os.fdopen(theirs, "wb") as stream:
                stream.write(json.dumps(result).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(theirs)
    with os.fdopen(output, "rb") as stream:
        last, since, text = -1, time.monotonic(), b""
        while True:
            ready, _, _ = select.select([stream], [], [], 1)
            if ready:
                text = stream.read()
                break
            current = _NUMBER.unpack_from(number)[0]
            if current != last:
                last, since = current, time.monotonic()
            elif time.monotonic() - since > 2 * MAX_HANG_S:
                os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if text:
        return json.loads(text)
    last = _NUMBER.unpack_from(number)[0]
    signal_number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    reason = "hangs" if signal_number == signal.SIGKILL else f"ends the process ({signal_number})"
    tried = last - first + 1
    return {"refused": 0, "tried": tried, "faults": [f"--number {last}: {reason}"], "peak_mib": 0}


def fuzz_reader(name: str, seconds: float, first: int = 0) -> Fuzzing:
    """Try inputs of one reader for some seconds, numbered from the first."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=_fast_folder()) as text:
        home = Path(text)
        (home / "honest").mkdir()
        pid = os.fork()
        if not pid:  # making it takes memory that a reader does not
            READERS[name].make(home / "honest")
            READERS[name].read(home / "honest")
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0, f"the honest input of {name} cannot be read"
        stop_at = time.monotonic() + seconds
        number, refused, peak_mib, faults = first, 0, 0, []
        while number == first or time.monotonic() < stop_at and len(faults) < 50:
            result = _in_child(name, number, min(30.0, stop_at - time.monotonic()), home)
            number += result["tried"]
            refused += result["refused"]
            peak_mib = max(peak_mib, result["peak_mib"])
            faults += result["faults"]
    logging.disable(logging.NOTSET)
    return Fuzzing(name, number - first, refused, peak_mib, tuple(faults))


def _fast_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main() -> None:
    """Fuzz some readers, or all; exit with 1 if there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", choices=[*READERS, []], metavar="READER")
    parser.add_argument("--number", type=int, help="try the input of this number alone")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    options = parser.parse_args()
    seconds = float(os.environ.get(SECONDS_VARIABLE, "300"))
    num_faults = 0
    for name in options.readers or READERS:
        if options.number is not None:
            with tempfile.TemporaryDirectory() as text:
                (Path(text) / "honest").mkdir()
                READERS[name].make(Path(text) / "honest")
                said = try_input(name, options.number, Path(text, "honest"), Path(text, "changed"))
                print(said or "read")
            continue
        fuzzing = fuzz_reader(name, seconds, options.first)
        print(fuzzing, flush=True)
        num_faults += len(fuzzing.faults)
    sys.exit(num_faults > 0)


if __name__ == "__main__":
    main()
