"""Folders on disk: complete or absent, and the user's cache."""

import atexit
import getpass
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from passnet.core.records.untrusted import untrusted_digest
from passnet.errors import InputError, naming, os_error_sentence

CACHE_VARIABLE = "PASSNET_CACHE"
INDUCTOR_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
LENT_VARIABLE = "PASSNET_LENT_INDUCTOR_CACHE"
"""Variable that names a cache of Inductor that a process may read, beside its own."""


def check_free(out: Path) -> None:
    """Raise InputError if there is something at `out` but an empty folder."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: already exists; remove it, or choose another --out")


def check_outside(out: Path) -> None:
    """Raise InputError if this process runs in a folder that is to be replaced."""
    if Path.cwd().is_relative_to(out.resolve()):
        raise InputError(f"{out}: this runs in it; name a new folder, or begin from outside")


def is_inner(name: str) -> bool:
    """Return whether a foreign name is a path within the folder that it is joined to.

    Examples:
        >>> [is_inner(name) for name in ("a b/c", "", "/a", "a/../../b", "a//b", "a\\0b")]
        [True, False, False, False, False, False]
    """
    return name.isprintable() and {"", ".", ".."}.isdisjoint(name.split("/"))


def below(folder: Path, name: str) -> Path:
    """Return the path of a foreign name within a folder; raise InputError if it leaves that."""
    if not is_inner(name):
        raise InputError(f"{name[:99]!r} is no name of a file or folder within {folder}")
    return folder / name


_PARTIAL = ".passnet-partial"
"""What the name of an unfinished folder ends with; what a kill left of one is removed."""

_LEAST_AGE_S = 60.0
"""Age at which an unfinished folder without a lock is left over; a new one is about to get its."""


@contextmanager
def atomic_folder(out: Path, replaces: bool = False) -> Iterator[Path]:
    """Yield a folder that becomes `out` if the block succeeds; raise InputError if it cannot.

    Each process fills a folder of its own beside `out`; the first one that is done makes `out`. If
    it `replaces` a folder, that one stays until the block succeeds; see `restore_replaced`.
    """
    check = check_outside if replaces else check_free
    check(out)
    check_outside(out)
    partial = out.with_name(f".{out.name}.{secrets.token_hex(8)}{_PARTIAL}")
    lock = None
    try:
        with naming(out):
            partial.mkdir(parents=True)
            lock = _locked(partial)
            _remove_left(out)
            yield partial
            check(out)
            _put(partial, out)
    except OSError as cause:
        raise InputError(os_error_sentence(cause).replace(str(partial), str(out))) from cause
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _put(folder: Path, out: Path) -> None:
    """Rename a folder to `out`, in place of another one, which goes last."""
    old = _replaced(out)
    if out.exists():
        shutil.rmtree(old, ignore_errors=True)  # of a process that was killed removing it
        out.replace(old)
    try:
        folder.replace(out)
    except BaseException:
        restore_replaced(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _replaced(out: Path) -> Path:
    return out.with_name(f".{out.name}.passnet-replaced")


def restore_replaced(out: Path) -> None:
    """Put a replaced folder back if there is none in its place, as after a kill."""
    if not out.exists() and _replaced(out).exists():
        _replaced(out).replace(out)


def _remove_left(out: Path) -> None:
    """Remove unfinished folders of `out` whose processes have ended, and which hold no lock."""
    for path in out.parent.iterdir():
        if path.name.startswith(f".{out.name}.") and path.name.endswith(_PARTIAL):
            with suppress(OSError):  # another process removes it, or it is nobody's to remove
                status = path.lstat()
                is_old = time.time() - status.st_mtime > _LEAST_AGE_S
                if status.st_uid == _user() and is_old and (lock := _locked(path)) is not None:
                    shutil.rmtree(path, ignore_errors=True)
                    os.close(lock)


def _locked(folder: Path) -> int | None:
    """Lock a folder until its descriptor is closed; None where that cannot be, or one has it."""
    try:
        import fcntl
    except ModuleNotFoundError:  # on Windows
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def cache_folder(name: str) -> Path:
    """Return the cache folder of a name, in `PASSNET_CACHE` or `~/.cache/passnet`; make it.

    If that cannot be written to, or another user owns it or may write to it, it lies among the
    temporary files, under this user's number or else in a folder of this process alone.
    """
    own = Path(tempfile.gettempdir()) / f"passnet-{_user()}"
    given = os.environ.get(CACHE_VARIABLE)
    for home in (Path(given) if given else Path("~/.cache/passnet"), own):
        with suppress(OSError, RuntimeError):  # a user without an entry has no home
            home = home if given else home.expanduser()
            folder = home / name
            home.mkdir(mode=0o755, parents=True, exist_ok=True)
            folder.mkdir(mode=0o755, exist_ok=True)
            if is_private(home) and is_private(folder) and os.access(folder, os.W_OK):
                return folder
    return _process_folder(name)


def inductor_cache() -> Path:
    """Return Inductor's cache folder, as torch names it, and make it.

    Inductor loads what it finds there. If torch would take a folder among the temporary files that
    another user owns or may write to, this process and its children take one of our own.
    """
    if given := os.environ.get(INDUCTOR_VARIABLE):
        folder = Path(given).absolute()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
    try:
        name = getpass.getuser()
    except (KeyError, ImportError, OSError):  # as torch, for a user without an entry
        name = f"uid_{_user()}"
    folder = Path(tempfile.gettempdir(), f"torchinductor_{name}")
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        if is_private(folder):
            return folder
    folder = cache_folder("inductor")
    os.environ[INDUCTOR_VARIABLE] = str(folder)
    return folder


def _user() -> int:
    """Return this user's number, which is 0 for all on Windows."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


@cache
def _process_folder(name: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"passnet-{name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def is_private(path: Path) -> bool:
    """Return whether a file or folder is this user's, and nobody else may write to it."""
    status = path.lstat()
    is_link = stat.S_ISLNK(status.st_mode)
    return status.st_uid == _user() and not is_link and not status.st_mode & 0o022


def cached_file(folder: Path, key: str, suffix: str) -> Path | None:
    """Return the file kept under a key, if it is this user's and as it was kept; None otherwise."""
    for path in folder.glob(f"{key}-*{suffix}"):
        if is_private(path) and path.stem == f"{key}-{untrusted_digest(path).hex()[:32]}":
            return path
    return None


def keep_file(result: Path, folder: Path, key: str) -> Path:
    """Move a file into a cache folder under a key and its own hash; return its new path."""
    result.chmod(0o644)
    kept = folder / f"{key}-{untrusted_digest(result).hex()[:32]}{result.suffix}"
    result.replace(kept)
    return kept
