"""Kernels that replacements made at their first call, listed for graphs in Inductor's caches.

The cache folder has a list for each pass folder's content: a token, then names of ops, whose
shared objects lie beside it. The token is part of the `uuid()` of passes. A list that has lost
anything gives way to one with another token, so no cached graph calls an op that is not there.
"""

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import torch

from passnet.core.records.folders import cache_folder, is_private
from passnet.passes.kernel_op import kernel_library


def known_kernels(digest: str, more: Iterable[str] = ()) -> str:
    """Return the token of a folder's list; make the ops on it, and add more.

    Without room on the disk it is empty.
    """
    kernel_library()
    with suppress(OSError), _locked(digest) as file:
        token, *names = file.read().split() or [""]
        if not token or not all(hasattr(torch.ops.passnet_kernel, name) for name in names):
            token, names = secrets.token_hex(), []
            file.truncate(0)
            file.write(token)
        file.writelines(f"\n{name}" for name in sorted({*more}.difference(names)))
        return token
    return ""


@contextmanager
def _locked(digest: str) -> Iterator[TextIO]:
    """Yield a folder's list, read from the start and written at the end, for this process alone."""
    import fcntl  # not on Windows, where pass folders can be read

    path = cache_folder("kernels") / f"{digest}.txt"
    if path.is_symlink() or (path.exists() and not is_private(path)):
        path.unlink()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    with os.fdopen(descriptor, "a+", encoding="ascii", errors="replace") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            file.seek(0)
            yield file
            file.flush()
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # a child that was forked meanwhile has the file, too
