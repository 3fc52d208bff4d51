"""Folders on disk: complete or absent, and the user's cache."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from passnet.errors import InputError, naming, os_error_sentence

CACHE_VARIABLE = "PASSNET_CACHE"


@contextmanager
def atomic_folder(out: Path) -> Iterator[Path]:
    """Yield a folder that becomes `out` if the block succeeds; raise InputError if it cannot."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: already exists; remove it, or choose another --out")
    partial = out.with_name(out.name + ".partial")
    try:
        with naming(out):
            if partial.exists():
                shutil.rmtree(partial)
            partial.mkdir(parents=True)
            yield partial
            if out.exists():
                out.rmdir()
            partial.replace(out)
    except OSError as cause:
        raise InputError(os_error_sentence(cause).replace(str(partial), str(out))) from cause
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def cache_folder(name: str) -> Path:
    """Return the cache folder of a name, in `PASSNET_CACHE` or `~/.cache/passnet`; make it.

    If that is not writable, it lies among the temporary files.
    """
    folder = Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "passnet") / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / "passnet" / name
        folder.mkdir(parents=True, exist_ok=True)
    return folder
