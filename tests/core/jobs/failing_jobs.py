"""Functions for jobs of tests: each ends in a way of its own."""

import errno
import os
import time
from pathlib import Path

from passnet.core.jobs.process import RECORD_FILE, ROWS_FILE
from passnet.core.records.serialise import write_json
from passnet.errors import naming


def writes(payload: str, folder: Path) -> None:
    write_json(folder / RECORD_FILE, {"payload": payload, "prepared": PREPARED})
    (folder / ROWS_FILE).write_bytes(b"rows")


def says_and_fails(payload: str, folder: Path) -> None:
    write_json(folder / RECORD_FILE, {"payload": payload})
    print("about to fail")
    raise ValueError("no such net")


def hangs(payload: str, folder: Path) -> None:
    time.sleep(60)


def dies(payload: str, folder: Path) -> None:
    os.kill(os.getpid(), 9)


def finds_no_room(payload: str, folder: Path) -> None:
    with naming(folder / ROWS_FILE):
        raise OSError(errno.ENOSPC, "")


def finds_no_room_elsewhere(payload: str, folder: Path) -> None:
    raise OSError(errno.ENOSPC, "", "elsewhere")


PREPARED: list[str] = []


def prepare(argument: str) -> None:
    PREPARED.append(argument)


def prepare_for_ever(argument: str) -> None:
    Path(argument).write_text(str(os.getpid()))
    time.sleep(60)


def leaves_a_pipe(payload: str, folder: Path) -> None:
    writes(payload, folder)
    (folder / ROWS_FILE).unlink()
    os.mkfifo(folder / ROWS_FILE)


def leaves_a_long_log(payload: str, folder: Path) -> None:
    writes(payload, folder)
    os.ftruncate(1, 2**40)
    os.lseek(1, 0, os.SEEK_END)
    print("the end", flush=True)


def leaves_a_huge_record(payload: str, folder: Path) -> None:
    with (folder / RECORD_FILE).open("wb") as stream:
        stream.truncate(2**40)
