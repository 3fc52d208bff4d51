"""Files of strangers, opened in one way: regular files only, of limited size, named in UTF-8."""

import hashlib
import os
import stat
import sys
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path

from passnet.core.terminal.visible_text import visible
from passnet.errors import InputError, is_exhausted, os_error_sentence

MAX_FILE_BYTES = 2**25
"""Largest file that is read whole, unless a reader says otherwise."""

MAX_HASHED_BYTES = 2**31
"""Largest file to hash."""


def open_untrusted(
    path: Path, most_bytes: int = MAX_FILE_BYTES, error: type[InputError] = InputError
) -> BufferedReader:
    """Open a file for reading; raise `error` for anything but a regular file within the limit.

    Devices, pipes and sockets are never opened. A machine out of descriptors or memory is no fault
    of the file: that stays an OSError.
    """
    shown = visible(str(path))
    try:
        str(path).encode()
        complaint = _complaint(path.stat(), most_bytes)
        if complaint is None:
            stream = open(path, "rb", opener=_open)  # noqa: PTH123, SIM115 (Path.open has no opener)
            complaint = _complaint(os.fstat(stream.fileno()), most_bytes)
            if complaint is None:
                return stream
            stream.close()
    except UnicodeEncodeError as cause:
        raise error(f"{shown}: its name is not UTF-8; rename it") from cause
    except OSError as cause:
        if is_exhausted(cause):
            raise
        if isinstance(cause, FileNotFoundError) and not path.parent.exists():
            raise error(f"{visible(str(path.parent))}: no such folder") from cause
        raise error(f"cannot read {visible(os_error_sentence(cause))}") from cause
    except ValueError as cause:  # a null byte in its name
        raise error(f"{shown}: {cause}") from cause
    raise error(f"{shown}: {complaint}, not read")


def check_link(path: Path, error: type[InputError] = InputError) -> None:
    """Raise `error` for a link to outside of its folder, such as to a file of the user's.

    Files of the Hugging Face Hub's cache are links from `snapshots` to the `blobs` beside it:
    https://huggingface.co/docs/huggingface_hub/guides/manage-cache. These are followed.
    """
    # Path.resolve raises an error for a link that leads to itself.
    folder = Path(os.path.realpath(path.parent))
    leads_to = Path(os.path.realpath(path)).parent
    blobs = [above.parent / "blobs" for above in folder.parents if above.name == "snapshots"]
    if leads_to not in (folder, *blobs):
        shown = visible(str(path))
        raise error(f"{shown}: a link to outside of its folder, not read; copy the file there")


def _complaint(status: os.stat_result, most_bytes: int) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "not a file"
    return f"larger than {most_bytes} bytes" if status.st_size > most_bytes else None


def _open(path: str, flags: int) -> int:
    # A pipe that took its place blocks nobody; Windows knows no such flag, nor such pipes.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_untrusted(
    path: Path, most_bytes: int = MAX_FILE_BYTES, error: type[InputError] = InputError
) -> bytes:
    """Return the bytes of a file; see `open_untrusted`."""
    with open_untrusted(path, most_bytes, error) as stream:
        content = stream.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise error(f"{path}: grew beyond {most_bytes} bytes, not read")
    return content


def read_untrusted_text(
    path: Path, most_bytes: int = MAX_FILE_BYTES, error: type[InputError] = InputError
) -> str:
    """Return the text of a file in UTF-8; see `open_untrusted`."""
    try:
        return read_untrusted(path, most_bytes, error).decode()
    except UnicodeDecodeError as cause:
        raise error(f"{path}: not UTF-8 text") from cause


def contents_digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the contents of files, one after another; see `open_untrusted`."""
    digest = hashlib.sha256()
    for path in paths:
        with open_untrusted(path, sys.maxsize) as stream:
            hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()


def untrusted_digest(path: Path, error: type[InputError] = InputError) -> bytes:
    """Return the SHA-256 of a file; see `open_untrusted`."""
    with open_untrusted(path, MAX_HASHED_BYTES, error) as stream:
        return hashlib.file_digest(stream, "sha256").digest()
