"""A folder that is there with all that belongs in it, or not at all."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from passnet.errors import InputError, naming, os_error_sentence


@contextmanager
def atomic_folder(out: Path) -> Iterator[Path]:
    """A folder to write to, which becomes `out` when the block ends without an error.

    Raises:
        InputError: `out` is there already, or cannot be made; or the disk is full.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: is there already; choose another --out, or remove it")
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
