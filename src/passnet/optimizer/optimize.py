"""Optimisation of a net: build, check and time every backend, and return the fastest."""

import gc
import hashlib
import logging
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.utils._pytree import tree_leaves

from passnet.bench.environment import describe_environment
from passnet.core.jobs.process import JobRunner
from passnet.core.records.differences import first_difference
from passnet.core.records.folders import inductor_cache
from passnet.core.records.serialise import make_folder, read_json, write_json
from passnet.errors import InputError, boundary
from passnet.optimizer.backends.backend import Backend
from passnet.optimizer.backends.in_child import prepare_children
from passnet.optimizer.backends.registry import all_backends
from passnet.optimizer.call.attributes import code_of, plain_attributes
from passnet.optimizer.call.fast_net import Arguments, FastNet, copied, fast_net, unwrapped
from passnet.optimizer.call.net_call import (
    BuiltBackend,
    NetCall,
    as_module,
    leaf_in_words,
    name_of,
)
from passnet.optimizer.call.net_state import RememberedDict, change_of_net, remember_net
from passnet.optimizer.call.process_state import outside_inference_mode, process_state_kept
from passnet.optimizer.call.sizes import named_ranges, ranges_of_calls
from passnet.optimizer.call.values import is_dense
from passnet.optimizer.call.weight_file import LARGE_BYTES
from passnet.optimizer.choose.kept_passes import KEPT_FOLDER, KeptPass, read_kept_passes
from passnet.optimizer.decoding.encoder import source_call, source_ranges
from passnet.optimizer.decoding.proof import fault_of_steps
from passnet.optimizer.decoding.step import is_decoder, is_step, prefix_of
from passnet.optimizer.decoding.step_plan import StepPlan, step_plan
from passnet.optimizer.package import (
    NET_FILE,
    NetFacts,
    digest_of_weights,
    load,
    save_example,
    signature_folder,
)
from passnet.optimizer.record import RECORD_FILE, OptimizedRecord, SignatureRecord, SizeRange
from passnet.optimizer.settings import DEFAULTS, OptimizeSettings
from passnet.optimizer.tune import Progress, optimize_signature
from passnet.version import __version__

_log = logging.getLogger("passnet")

WEIGHT_FILE = "weights.bin"
MADE_FOR_FILE = "made_for.txt"
"""What the backends of an input signature were built for, as a digest, for resumed runs."""

PageWriter: TypeAlias = Callable[[Path, OptimizedRecord, Sequence[KeptPass]], None]
"""Write the page of a record, with the passes that it cites, into a folder."""


@dataclass(frozen=True, slots=True)
class Optimized:
    """An optimised net and its record."""

    net: FastNet
    record: OptimizedRecord


@outside_inference_mode()
def optimize_net(
    net: Callable[..., Any],
    calls: Sequence[Arguments],
    settings: OptimizeSettings = DEFAULTS,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    write_page: PageWriter | None = None,
    backends: Mapping[str, Backend] | None = None,
    serves: str = "",
) -> Optimized:
    """Optimise a net for some calls, with the arguments and errors of `passnet.optimize`.

    Calls that differ in sizes alone are served by one entry for all sizes between theirs, if any
    backend serves that. `backends` are those by name; None for all. The backend `serves`, as an
    audit asks for it, is chosen if it is right, fast or not.
    """
    _check_arguments(net, out, progress)
    inductor_cache()  # of our own, where the usual folder is another user's
    backends = all_backends() if backends is None else backends
    plan = {name: backends[name] for name in settings.tried(backends)}
    if out is None:
        folder = Path(tempfile.mkdtemp(prefix="passnet-optimized-"))
        try:
            optimized = _optimize_in(folder, net, calls, settings, plan, False, progress, serves)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(optimized.net, shutil.rmtree, folder, ignore_errors=True)
        return optimized
    folder = Path(out)
    if (folder / RECORD_FILE).exists():
        if not resume:
            raise InputError(f"{folder}: holds an optimised net already; load it, or remove it")
        return _finished(folder, net, _asked(settings, calls), backends)
    if folder.exists() and any(folder.iterdir()) and not resume:
        raise InputError(f"{folder}: is not empty; give resume=True (--resume) to go on there")
    make_folder(folder)
    optimized = _optimize_in(folder, net, calls, settings, plan, True, progress, serves)
    if write_page is not None:
        count = len(optimized.record.forms)
        homes = [signature_folder(folder, number) for number in range(count)]
        passes = [kept for home in homes for kept in read_kept_passes(home / KEPT_FOLDER)]
        write_page(folder, optimized.record, passes)
    write_json(folder / RECORD_FILE, optimized.record)  # last: with it the folder is complete
    return optimized


def _finished(
    folder: Path, net: Callable[..., Any], asked: dict[str, str], backends: Mapping[str, Backend]
) -> Optimized:
    """Load what an earlier run finished, if that was asked for the same."""
    loaded = load(folder, net, backends)
    if difference := first_difference(read_json(folder / NET_FILE, NetFacts).asked, asked):
        raise InputError(
            f"{folder}: holds a net that was optimised otherwise: {difference}; load it, or name "
            "another folder"
        )
    return Optimized(loaded, read_json(folder / RECORD_FILE, OptimizedRecord))


def _asked(settings: OptimizeSettings, calls: Sequence[Arguments]) -> dict[str, str]:
    """Return, as texts, what a run is asked for, besides its time."""
    names = {field.name for field in fields(settings)} - {"budget_s", "seconds", "evaluate"}
    texts = {name: repr(getattr(settings, name)) for name in sorted(names)}
    texts["evaluate"] = "" if settings.evaluate is None else name_of(settings.evaluate)
    texts["inputs"] = ", ".join(map(leaf_in_words, tree_leaves(list(calls))))
    return texts


def _check_arguments(net: Any, out: Any, progress: Any) -> None:
    """Raise InputError of an argument of another kind than `optimize_net` takes."""
    if not callable(net):
        raise InputError(f"the net is {type(net).__name__}; give a module or a function of tensors")
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {progress!r:.80}; give a function of a backend's record")
    if out is not None and not isinstance(out, (str, Path)):
        raise InputError(f"out is {out!r:.80}; give the path of a folder")
    if out is not None and Path(out).exists() and not Path(out).is_dir():
        raise InputError(f"{out}: is a file; give a folder that is empty or not there yet")


@contextmanager
def _removed(path: Path) -> Iterator[None]:
    """Remove a file in the end, however that comes."""
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Group:
    """A call to serve, the sizes of it that vary, and calls to serve singly if none serves these.

    Of a decoder the call is a step, with its plan.
    """

    net: Callable[..., Any]
    call: Arguments
    ranges: tuple[SizeRange, ...] = ()
    singly: Sequence[Arguments] = ()
    plan: StepPlan | None = None


def _groups(
    net: Callable[..., Any], calls: Sequence[Arguments], settings: OptimizeSettings
) -> list[_Group]:
    """Return the calls to serve, with ranges where calls differ in sizes alone."""
    if is_decoder(net) and (found := _decoder_groups(net, calls, settings.dynamic)):
        return found
    if settings.dynamic:
        return [
            _Group(net, call, named_ranges(settings.dynamic, tuple(call[0]), call[1], net))
            for call in calls
        ]
    ranges = ranges_of_calls(calls) if len(calls) > 1 else ()
    return [_Group(net, calls[0], ranges, calls)] if ranges else [_Group(net, c) for c in calls]


def _decoder_groups(net: Any, calls: Sequence[Arguments], asked: Mapping[Any, Any]) -> list[_Group]:
    """Return the step of a decoder, then its encoder if it has one; none if calls are others."""
    if not prefix_of(net):
        if not all(is_step(*call) for call in calls):
            return []
        plan = step_plan(net, asked)
        return [_step_group(plan)] if _is_proven(plan) else []
    encoder = net.get_encoder()
    sources = [source for call in calls if (source := source_call(encoder, *call))]
    if len(sources) < len(calls):
        return []
    source = max(sources, key=lambda source: source[encoder.main_input_name].numel())
    ranges = source_ranges(net, source, asked)
    with torch.no_grad(), boundary(InputError, "a call of the encoder"):
        encoded = encoder(**source)
    plan = step_plan(net, asked, encoded.last_hidden_state.shape[1])
    if not _is_proven(plan, encoded):
        return []
    return [_step_group(plan), _Group(encoder, ((), source), ranges)]


def _is_proven(plan: StepPlan, encoded: Any = None) -> bool:
    """Return whether steps return what calls of a decoder return; log why not."""
    fault = fault_of_steps(plan, encoded)
    if fault:
        _log.warning(
            "%s: its calls are not optimised as decoding steps (%s), but as they are given",
            name_of(plan.step.net),
            fault,
        )
    return fault is None


def _step_group(plan: StepPlan) -> _Group:
    return _Group(plan.step, (tuple(plan.example(plan.traced)), {}), plan.ranges, plan=plan)


def _optimize_in(*asked: Any) -> Optimized:
    """Try all backends in a folder, and free the copy of the net, which holds itself."""
    try:
        return _optimized(*asked)
    finally:
        gc.collect()


def _optimized(
    folder: Path,
    net: Callable[..., Any],
    calls: Sequence[Arguments],
    settings: OptimizeSettings,
    plan: Mapping[str, Backend],
    keeps_examples: bool,
    progress: Progress | None,
    serves: str,
) -> Optimized:
    """Try all backends in a folder, for one input signature after the other."""
    deadline = time.monotonic() + settings.budget_s
    built_backends: list[BuiltBackend] = []
    signatures: list[SignatureRecord] = []
    step_of: StepPlan | None = None
    weights = folder / WEIGHT_FILE
    with process_state_kept(settings.threads), JobRunner() as runner, _removed(weights):
        if any(backend.make is not None for backend in plan.values()):
            prepare_children(runner)
        original = as_module(unwrapped(net))
        former = remember_net(original, with_classes=False)  # whose attributes calls may set
        code = code_of(original) if keeps_examples else {}
        net_copy, calls_copy, weight_file = copied(net, calls, weights)
        folds = any(backend.is_frozen for backend in plan.values())
        values = digest_of_weights(net_copy, with_values=True) if folds or keeps_examples else ""
        groups = _groups(net_copy, calls_copy, settings)
        while groups:
            group = groups.pop(0)
            args, kwargs = group.call
            home = signature_folder(folder, len(signatures))
            make_folder(home)
            if keeps_examples:
                _clear_others(home, original, code, values, group)
                save_example(home, tuple(args), kwargs)
            parts = weight_file, group.ranges, group.plan
            call = NetCall(group.net, args, kwargs, *parts, original=original)
            if group.net is net_copy:
                call.compare_with(original)
            now = time.monotonic()
            own = now + (deadline - now) / (len(groups) + 1 + bool(group.singly))
            num_folded = 1 + sum(built.is_frozen for built in built_backends)
            may_fold = num_folded == 1 or num_folded * call.num_bytes <= LARGE_BYTES
            may_fold = may_fold or step_of is not None  # an encoder's weights are its own
            kept = {n: b for n, b in plan.items() if not settings.leaves_out(b, may_fold)}
            asked = (call, home, kept, settings, own, progress, runner, serves, may_fold)
            signature, built = optimize_signature(*asked)
            if built is None and group.singly:  # no backend serves all sizes
                shutil.rmtree(home)
                groups = [_Group(net_copy, each) for each in group.singly]
                continue
            step_of = step_of or group.plan
            signatures.append(signature)
            if built is not None:
                built_backends.append(built)
        frozen = any(built.is_frozen for built in built_backends)
        if built_backends:
            _check_unchanged(original, former, values if frozen else "")
        if keeps_examples:
            after = as_module(net_copy)
            attributes = plain_attributes(original), plain_attributes(after)
            facts = NetFacts(attributes, (code, code_of(after)), _asked(settings, calls))
            write_json(folder / NET_FILE, facts)
        record = OptimizedRecord(
            name_of(net),
            digest_of_weights(net),
            values if frozen else "",
            torch.get_num_threads(),
            settings.freeze,
            describe_environment(),
            tuple(signatures),
            __version__,
            step_of is not None,
        )
    warns = len(built_backends) == len(signatures)
    output_type = None if step_of is None else step_of.output_type
    return Optimized(fast_net(net, built_backends, warns, output_type), record)


def _clear_others(
    home: Path, net: torch.nn.Module, code: Mapping[str, str], values: str, group: _Group
) -> None:
    """Remove what an interrupted run built for other weights, code, attributes or arguments."""
    leaves = tree_leaves(group.call)
    forms = [f"{leaf_in_words(x)} {x.stride() if is_dense(x) else ''}" for x in leaves]
    facts = values, plain_attributes(net), code, forms, group.ranges, __version__, torch.__version__
    made_for, file = hashlib.sha256(repr(facts).encode()).hexdigest(), home / MADE_FOR_FILE
    if not file.is_file() or file.read_text(encoding="ascii") != made_for:
        shutil.rmtree(home)
        make_folder(home)
        file.write_text(made_for, encoding="ascii")


def _check_unchanged(net: torch.nn.Module, former: tuple[RememberedDict, ...], values: str) -> None:
    """Raise InputError if a net, or the values that were folded in, changed meanwhile."""
    change = change_of_net(former).says
    if change is None and values and digest_of_weights(net, with_values=True) != values:
        change = "its weights have other values"
    if change:
        raise InputError(
            f"the net was changed while it was optimised ({change}); optimise it while nothing "
            "trains or changes it"
        )
