"""`passnet.optimize`: every way to run a net is built, compared with eager torch, timed beside the
others as a user would call it, and the fastest is returned, eager torch itself included.
"""

import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from passnet.bench.environment import describe_environment
from passnet.core.records.serialise import make_folder, write_json, write_text
from passnet.errors import InputError
from passnet.optimizer.call.entry import Entry
from passnet.optimizer.call.fast_net import FastNet
from passnet.optimizer.call.net_call import NetCall, name_of
from passnet.optimizer.call.net_copy import copied, fast_net, process_state_kept
from passnet.optimizer.package import digest_of_weights, form_folder, save_example
from passnet.optimizer.record import (
    RECORD_FILE,
    OptimizedRecord,
)
from passnet.optimizer.settings import DEFAULTS, OptimizeSettings
from passnet.optimizer.tune import Progress, optimize_form
from passnet.pages.optimizer.page import optimized_page
from passnet.passes.library.kept import KEPT_FOLDER, read_kept_passes
from passnet.version import __version__

PAGE_FILE = "report.html"


@dataclass(frozen=True, slots=True)
class Optimized:
    """A net that was optimised, and the record of how."""

    net: FastNet
    record: OptimizedRecord


def optimize(
    net: Callable[..., Any],
    *args: Any,
    inputs: Sequence[Any] = (),
    out: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> FastNet:
    """A net that is called like another one, returns the same, and is as fast as can be.

    Args:
        net: a module in evaluation mode, or a function of tensors.
        args: an example of its arguments, by position.
        inputs: examples of several forms instead: each a tuple of arguments by position, or a dict
            of them by name.
        out: a folder to keep the result in, which `passnet.load` reads; None keeps nothing.
        resume: go on in that folder where an earlier run stopped.
        progress: told what came of each way that was tried.
        **settings: fields of `OptimizeSettings`.

    Raises:
        InputError: the net is in training mode, fails on its inputs, or returns no tensors; `out`
            is there already; a setting is unknown.

    Examples:
        >>> import torch
        >>> net = torch.nn.Linear(4, 2).eval()
        >>> fast = optimize(net, torch.ones(1, 4), engines=("graph",), seconds=0.1)
        >>> torch.equal(fast(torch.ones(1, 4)), net(torch.ones(1, 4)))
        True
    """
    if bool(args) == bool(inputs):
        raise InputError("give an example of the net's arguments, or several by inputs=[...]")
    unknown = sorted(set(settings) - set(OptimizeSettings.__dataclass_fields__))
    if unknown:
        known = ", ".join(OptimizeSettings.__dataclass_fields__)
        raise InputError(f"no setting {unknown[0]!r}; there are {known}")
    calls = [_arguments(each) for each in (inputs or [args])]
    return optimize_calls(net, calls, OptimizeSettings(**settings), out, resume, progress).net


def optimize_calls(
    net: Callable[..., Any],
    calls: Sequence[tuple[Sequence[Any], Mapping[str, Any]]],
    settings: OptimizeSettings = DEFAULTS,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Optimized:
    """The same as `optimize`, of calls with arguments by position and by name, with its record."""
    tried = settings.tried()
    if out is None:
        folder = Path(tempfile.mkdtemp(prefix="passnet-optimized-"))
        try:
            optimized = _optimize_in(folder, net, calls, settings, tried, False, progress)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(optimized.net, shutil.rmtree, folder, ignore_errors=True)
        return optimized
    folder = Path(out)
    if (folder / RECORD_FILE).exists():
        raise InputError(f"{folder}: holds an optimised net already; load it, or remove it")
    if folder.exists() and any(folder.iterdir()) and not resume:
        raise InputError(f"{folder}: is not empty; give resume=True (--resume) to go on there")
    make_folder(folder)
    optimized = _optimize_in(folder, net, calls, settings, tried, True, progress)
    homes = [form_folder(folder, number) for number in range(len(calls))]
    kept = [each for home in homes for each in read_kept_passes(home / KEPT_FOLDER)]
    write_text(folder / PAGE_FILE, optimized_page(optimized.record, kept))
    write_json(folder / RECORD_FILE, optimized.record)  # with which it is whole
    return optimized


def _optimize_in(
    folder: Path,
    net: Callable[..., Any],
    calls: Sequence[tuple[Sequence[Any], Mapping[str, Any]]],
    settings: OptimizeSettings,
    tried: Sequence[str],
    keeps_examples: bool,
    progress: Progress | None,
) -> Optimized:
    """Try all ways in a folder, for each form of inputs in turn."""
    deadline = time.monotonic() + settings.budget_s
    entries: list[Entry] = []
    forms = []
    with process_state_kept(settings.threads):
        net_copy, calls_copy = copied(net, calls)
        for number, (args, kwargs) in enumerate(calls_copy):
            home = form_folder(folder, number)
            make_folder(home)
            if keeps_examples:
                save_example(home, tuple(args), kwargs)
            call = NetCall(net_copy, args, kwargs)
            form, entry = optimize_form(call, home, tried, settings, deadline, progress)
            forms.append(form)
            if entry is not None:
                entries.append(entry)
        frozen = any(entry.is_frozen for entry in entries)
        record = OptimizedRecord(
            name_of(net),
            digest_of_weights(net),
            digest_of_weights(net, with_values=True) if frozen else "",
            torch.get_num_threads(),
            settings.freeze,
            describe_environment(),
            tuple(forms),
            __version__,
        )
    return Optimized(fast_net(net, entries, warns=len(entries) == len(forms)), record)


def _arguments(example: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    if isinstance(example, Mapping):
        return (), example
    if isinstance(example, (tuple, list)):
        return example, {}
    return (example,), {}
