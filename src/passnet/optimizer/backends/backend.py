"""The interface of a backend, and how one is built, loaded and kept from this process.

A backend is a file with a table `BACKENDS` of what this interface asks for; docs/backends.md shows
how to write one.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

import torch

from passnet.core.jobs.process import JobRunner
from passnet.errors import BackendError, PassError, boundary, naming
from passnet.inductor.compiler import inductor_settings
from passnet.optimizer.backends.in_child import MakeFile, do_in_child
from passnet.optimizer.call.compiled_check import extension
from passnet.optimizer.call.net_call import BuiltBackend, NetCall
from passnet.optimizer.compare.form import with_form
from passnet.optimizer.outside.quiet import quiet
from passnet.optimizer.record import BackendRecord, Precision

QUIET = {"autotune_num_choices_displayed": 0, "max_autotune_report_choices_stats": False}
"""Inductor's settings that silence autotuning."""

ROOM_BYTES = 4 << 20
"""Room on the disk for the code of a package; weights come twice besides, as a child reads them."""

Builder: TypeAlias = Callable[[NetCall, Path, str], BuiltBackend]
"""Build or load a backend for a call, in a folder, by name; BackendError where it cannot."""


Occasion: TypeAlias = Literal["usual", "freeze", "changing", "authors", "named"]
"""usual: always, if its packages are installed; freeze: where weights are constant; changing: where
they are not; authors: where authors of passes are named; named: only by its name.
"""


@dataclass(frozen=True, slots=True)
class Backend:
    """A compiler or runtime for nets."""

    says: str
    """Description for tables."""

    build: Builder
    """Builds it, from the files that a child made where there is `make`."""

    load: Builder
    """Loads it from the folder of its build."""

    is_frozen: bool = False

    is_inductor: bool = False

    is_unchecked: bool = False
    """It writes out of bounds where an index is out of range."""

    make: Callable[[NetCall, Path, str], MakeFile] | None = None
    """Returns the work of a child process that makes its files, and calls it once."""

    precision: Precision | None = None
    """A lower precision than the net's own in which it computes, where the user allows that."""

    when: Occasion = "usual"
    """When it is tried without being named."""

    packages: tuple[str, ...] = ()
    """The packages that it needs besides torch."""

    install: str = "passnet[runtimes]"
    """What pip installs to bring them."""

    is_of_one_size: bool = False
    """It cannot serve sizes that vary from call to call."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed."""
        return tuple(package for package in self.packages if find_spec(package) is None)

    @property
    def is_unstoppable(self) -> bool:
        """True where building takes long and nothing can end it but this process's end."""
        return self.is_inductor and self.make is None


def build_backend(
    name: str,
    backend: Backend,
    call: NetCall,
    folder: Path,
    freeze: bool = False,
    runner: JobRunner | None = None,
    seconds: float = 3600.0,
) -> BuiltBackend:
    """Build a backend of a net, with the files to load it in `folder`.

    Args:
        name: of the backend.
        backend: how it is built.
        call: the net and its example.
        folder: is made anew.
        freeze: the weights will not change.
        runner: runs child processes; None starts a new one.
        seconds: a child is ended when so many have passed.

    Raises:
        BackendError: it cannot run this net.
        OSError: there is no room for its files.
    """
    start = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if name == "eager":
        return backend.build(call, folder, name)
    if call.refusal:
        raise BackendError(call.refusal)
    if missing := backend.missing:
        names = " and ".join(missing)
        raise BackendError(f"{names} is not installed; pip install '{backend.install}'")
    if backend.is_inductor and call.is_on_cpu and call.divides_towards_zero:
        raise BackendError(
            "the net divides whole numbers towards zero, and code of Inductor ends the process "
            "where a divisor is zero"
        )
    if call.ranges and backend.is_of_one_size:
        raise BackendError(f"{backend.says}: serves one size alone, and sizes vary here")
    if backend.is_frozen and not freeze and (reason := _why_not_compared(call)):
        raise BackendError(
            f"{reason}, so folded weights cannot be compared at each call; give freeze=True "
            "(--freeze) if they will not change"
        )
    if backend.make is not None:
        _check_room(folder, 2 * call.num_bytes + ROOM_BYTES)
    with _building(name), inductor_settings(QUIET):
        if backend.make is not None:
            work = backend.make(call, folder, name)
            left_s = max(seconds - (time.monotonic() - start), 0.0)
            with call.weights_away():
                do_in_child(work, backend.says, folder, runner, left_s)
        return _with_form(call, backend, backend.build(call, folder, name))


def _check_room(folder: Path, num_bytes: int) -> None:
    """Raise OSError where a folder has no room for so many bytes."""
    path = folder / "room"
    with naming(path), path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, num_bytes)
    path.unlink()


def _why_not_compared(call: NetCall) -> str | None:
    if not call.is_on_cpu:
        return "weights are on a card"
    try:
        extension()
        return None
    except PassError as error:
        return str(error)


def load_backend(name: str, backend: Backend, call: NetCall, folder: Path) -> BuiltBackend:
    """Load a backend from the folder of its build; BackendError where its files do not fit."""
    with _building(name):
        return _with_form(call, backend, backend.load(call, folder, name))


@contextmanager
def _building(name: str) -> Iterator[None]:
    """Turn errors of compilers into BackendError, and silence their warnings and logs."""
    # warnings of passes are ours
    silence = nullcontext() if "passes" in name else quiet()
    with boundary(BackendError, name), torch.no_grad(), silence:
        yield


def _with_form(call: NetCall, backend: Backend, built: BuiltBackend) -> BuiltBackend:
    # an error in a loop that threads share, as for an index out of range, ends the process; one in
    # a package prints pages of C++
    is_shared = torch.get_num_threads() > 1 or backend.make is not None
    ends = backend.is_inductor and call.is_on_cpu and is_shared
    return replace(
        with_form(call, built),
        ends_process=ends or backend.is_unchecked,
        precision=backend.precision,
    )


def with_checks(built: BuiltBackend, freeze: bool, record: BackendRecord) -> BuiltBackend:
    """Return a backend with checks of its calls; `freeze` promises that weights will not change."""
    return replace(
        built,
        compares=built.is_frozen and not freeze,
        bound=record.bound,
        index_bounds=record.index_bounds,
        filled_rows=record.filled_rows,
    )
