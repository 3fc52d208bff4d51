"""`passnet.optimize`: every way to run a net is built, compared with eager torch, timed beside the
others as a user would call it, and the fastest is returned, eager torch itself included.
"""

import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from passnet import __version__
from passnet.agent.settings import LlmSettings
from passnet.bench.environment import describe_environment
from passnet.errors import EngineError, InputError, PassnetError, boundary
from passnet.jobs.cache import cache_folder
from passnet.optimizer.agreement import EagerComparison
from passnet.optimizer.blocks import block_times
from passnet.optimizer.engines import ENGINES, build_entry_of, checked_as_asked, load_entry_of
from passnet.optimizer.entry import Entry, leaf_in_words
from passnet.optimizer.fast_net import FastNet
from passnet.optimizer.interleaved import CallTimes, time_calls
from passnet.optimizer.kept_passes import KEPT_FOLDER, read_kept_passes
from passnet.optimizer.net_call import NetCall, name_of
from passnet.optimizer.other_runtimes import RUNTIMES, is_installed
from passnet.optimizer.package import digest_of_weights, form_folder, save_example
from passnet.optimizer.page import optimized_page
from passnet.optimizer.record import (
    RECORD_FILE,
    EngineRecord,
    FormRecord,
    OptimizedRecord,
    RangesRecord,
)
from passnet.records.serialise import make_folder, read_json, write_json, write_text

ENGINE_FILE = "engine.json"
"""What came of building one way, beside what it needs: a run that goes on takes it from there."""

USUAL = ("eager", "compile", "graph", "aot")
WITH_PASSES = ("passes", "passes_compiled", "aot_passes", "aot_passes_frozen")
FOLDING = ("aot_frozen", "script_frozen", "aot_autotune_frozen", *RUNTIMES)
FROZEN = ("compile_frozen",)
"""Ways that are tried in any case, those where authors of passes are named, those that fold weights
in, which are compared at each call if they may change (other runtimes only where they are
installed), and what is tried only if they may not."""

PAGE_FILE = "report.html"

Progress = Callable[[EngineRecord], None]


@dataclass(frozen=True, slots=True)
class OptimizeSettings:
    """How a net is optimised.

    Args:
        freeze: whether weights will not change, so that those that were folded in need not be
            compared at each call.
        finite: whether arguments may be taken as finite, and indices among them as within what
            they index. NaN and infinities need then not be looked for at each call of a way that
            does not treat them as eager torch does (a ReLU that is fused into a product by oneDNN
            makes 0 of NaN), and ways may be used that raise no error for such an index.
        budget_s: seconds after which no further way is begun.
        threads: torch's threads while ways are built and timed; None for as many as it has.
        seconds: seconds that each way is timed.
        engines: the ways that are tried; None for `USUAL`, `FOLDING` as far as it is installed,
            `FROZEN` where weights will not change, and `WITH_PASSES` where there are authors.
        authors: who gives passes for the ranges of the net: "library" for what was judged before,
            and programs that write passes, "compiler" and "search". They have what is left of the
            budget when torch's own ways are built.
        library: the folder of the library of passes; None for the user's own.
        llm: an llm that writes passes too, "provider/name" or how it is asked; what it says is kept
            with the net.
    """

    freeze: bool = False
    finite: bool = False
    budget_s: float = 600.0
    threads: int | None = None
    seconds: float = 2.0
    engines: tuple[str, ...] | None = None
    authors: tuple[str, ...] = ()
    library: str | None = None
    llm: str | LlmSettings | None = None

    @property
    def asked(self) -> LlmSettings | None:
        """The llm, and how it is asked."""
        return LlmSettings(self.llm) if isinstance(self.llm, str) else self.llm

    def tried(self) -> tuple[str, ...]:
        """The ways that are tried.

        Raises:
            InputError: one of them, or an author, is not known; llms cannot be asked here.
            AuthorError: this llm cannot be asked at all (no key, no such provider).
        """
        frozen = FROZEN if self.freeze else ()
        passes = WITH_PASSES if self.authors or self.llm else ()
        folding = tuple(name for name in FOLDING if is_installed(name))
        usual = USUAL + folding + frozen + passes
        names = self.engines or usual
        unknown = [name for name in names if name not in ENGINES]
        if unknown:
            raise InputError(f"no engine {unknown[0]!r}; there are {', '.join(ENGINES)}")
        if self.authors:
            from passnet.optimizer.pass_choice import writers_of

            writers_of(self.authors)
        if self.asked is not None:
            from passnet.agent.run import open_author

            open_author(self.asked)
        return tuple(dict.fromkeys(("eager", *names)))


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
    settings: OptimizeSettings = OptimizeSettings(),
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
    with _threads(settings.threads):
        for number, (args, kwargs) in enumerate(calls):
            call = NetCall(net, args, kwargs)
            home = form_folder(folder, number)
            make_folder(home)
            if keeps_examples:
                save_example(home, call.args, call.kwargs)
            form, entry = _optimize_form(call, home, tried, settings, deadline, progress)
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
    return Optimized(FastNet(net, entries, warns=len(entries) == len(forms)), record)


def _arguments(example: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    if isinstance(example, Mapping):
        return (), example
    if isinstance(example, (tuple, list)):
        return example, {}
    return (example,), {}


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Torch with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _optimize_form(
    call: NetCall,
    folder: Path,
    tried: Sequence[str],
    settings: OptimizeSettings,
    deadline: float,
    progress: Progress | None,
) -> tuple[FormRecord, Entry | None]:
    """Build, compare and time all ways for one form of inputs; the chosen one, None for eager."""
    comparison = EagerComparison(call, settings.finite)
    records: dict[str, EngineRecord] = {}
    considered: RangesRecord | None = None
    entries: dict[str, Entry] = {}
    for name in tried:
        is_asked = name in WITH_PASSES and considered is not None  # what took the time is used
        is_late = time.monotonic() > deadline and not is_asked
        if name != "eager" and is_late:
            records[name] = EngineRecord(name, "untried", "the budget was spent")
        else:
            if name in WITH_PASSES and considered is None:
                considered = _considered(call, folder, settings, deadline)
            records[name], entry = _tried(name, call, folder / name, comparison, settings.freeze)
            if entry is not None:
                entries[name] = checked_as_asked(entry, settings.freeze, records[name])
        records[name] = replace(records[name], says=records[name].says or ENGINES[name].says)
        if progress is not None:
            progress(records[name])
    times = _time(call, entries, settings.seconds)
    for name in entries:
        records[name] = _timed(records[name], times)
    usable = {name: times.ms[name if name != "eager" else _plain(name)] for name in entries}
    chosen = min(usable, key=usable.__getitem__)
    instead = _instead(chosen, entries, usable)
    timed = chosen if chosen != "eager" else _plain(chosen)
    gained = times.speedup(timed, over=_plain("eager"))
    form = FormRecord(
        tuple(map(leaf_in_words, call.leaves)),
        chosen,
        tuple(records.values()),
        times.ms[timed],
        times.ms[_plain("eager")],
        gained.value,
        gained.low,
        gained.high,
        block_times(call),
        considered.ranges if considered else (),
        instead,
        considered.op_blocks if considered else (),
        not {chosen, instead}.isdisjoint(WITH_PASSES),
    )
    for name in tried:
        if name not in (chosen, instead):
            shutil.rmtree(folder / name, ignore_errors=True)
    if chosen == "eager":
        return form, None
    return form, replace(entries[chosen], instead=entries.get(instead))


def _instead(chosen: str, entries: Mapping[str, Entry], ms: Mapping[str, float]) -> str:
    """The fastest way that runs what the chosen one does not because of the values of weights or
    arguments: one that holds for any; "" where the chosen one does too, or eager torch is best.
    """
    if chosen == "eager" or not (entries[chosen].compares or entries[chosen].is_bounded):
        return ""
    for_any = [name for name, entry in entries.items() if not (entry.is_frozen or entry.is_bounded)]
    best = min(for_any, key=ms.__getitem__)
    return "" if best == "eager" else best


def _considered(
    call: NetCall, folder: Path, settings: OptimizeSettings, deadline: float
) -> RangesRecord:
    from passnet.optimizer.chosen_passes import passes_of_form

    library = Path(settings.library) if settings.library else cache_folder("library")
    seconds = max(deadline - time.monotonic(), 1.0)
    return passes_of_form(
        call, folder, WITH_PASSES, library, settings.authors, settings.asked, seconds
    )


def _tried(
    name: str, call: NetCall, folder: Path, comparison: EagerComparison, freeze: bool
) -> tuple[EngineRecord, Entry | None]:
    """Build one way, or have it back from an earlier run, and compare it with eager torch."""
    start = time.monotonic()
    file = folder / ENGINE_FILE
    try:
        if file.is_file():
            record = read_json(file, EngineRecord)
            if record.status != "ok":
                return record, None
            return record, load_entry_of(name, call, folder)
        entry = build_entry_of(name, call, folder, freeze)
        with boundary(EngineError, f"{name}, on other arguments"):
            found = comparison.agreement(entry)
    except PassnetError as cause:  # of a pass too
        text = " ".join(str(cause).split())[:400]
        record = EngineRecord(name, "refused", text, time.monotonic() - start)
        make_folder(folder)
        write_json(file, record)
        return record, None
    seconds = time.monotonic() - start
    status = "wrong" if found.wrong else "ok"
    record = EngineRecord(
        name, status, found.wrong, seconds, None, None, found.error, found.eager_error,
        bound=found.bound, index_bounds=found.index_bounds, says=entry.says,
    )  # fmt: skip
    write_json(file, record)
    return record, None if found.wrong else entry


def _time(call: NetCall, entries: Mapping[str, Entry], seconds: float) -> CallTimes:
    """Time all ways as the returned net calls them, and those that torch has as torch does."""

    def run(net: Callable[..., Any]) -> Any:
        return net(*call.args, **call.kwargs)

    calls: dict[str, Callable[[], object]] = {}
    for name, entry in entries.items():
        if name != "eager":
            calls[name] = partial(run, FastNet(call.given, [entry]))
        if entry.is_frozen and not entry.compares and call.is_on_cpu:
            compared = replace(entry, compares=True)
            calls[_compared(name)] = partial(run, FastNet(call.given, [compared]))
        plain = call.given if name == "eager" else entry.plain
        if plain is not None:
            calls[_plain(name)] = partial(run, plain)
    with torch.no_grad():
        return time_calls(calls, seconds, always=(_plain("eager"),))


def _timed(record: EngineRecord, times: CallTimes) -> EngineRecord:
    """A record with the times of its way, and its speedup as the returned net calls it."""
    name, plain = record.engine, _plain(record.engine)
    gained = times.speedup(name if name in times.ms else plain, over=_plain("eager"))
    return replace(
        record,
        ms=times.ms.get(name),
        plain_ms=times.ms.get(plain),
        compared_ms=times.ms.get(_compared(name)),
        speedup=gained.value,
        speedup_low=gained.low,
        speedup_high=gained.high,
    )


def _plain(name: str) -> str:
    return f"{name} of torch"


def _compared(name: str) -> str:
    return f"{name} compared"
