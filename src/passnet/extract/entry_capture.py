"""One entry, captured in this process: the net is built, traced, checked, and what came of it."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from passnet.errors import CaptureError, GraphError, InputError
from passnet.extract.capture import CapturedGraph, module_graph, segment_graph
from passnet.extract.catalog import build_entry, is_file, library, packages_of
from passnet.extract.constraints import (
    check_outputs,
    common_constraints,
    num_parameters,
    static_constraints,
)
from passnet.extract.net import Net
from passnet.extract.record import (
    CaptureFailure,
    CaptureSettings,
    Flow,
    GraphNote,
    Mode,
    NetRecord,
)
from passnet.extract.store import GraphRow, GraphSource
from passnet.extract.trace import Segment, Trace
from passnet.extract.weights import FakeWeights
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.render import render_program
from passnet.records.serialise import encode

MAX_ERROR_CHARACTERS = 600

_DATA_DEPENDENT = (
    "DataDependentOutput",
    "GuardOnDataDependent",
    "data-dependent",
    "Cannot copy out of meta tensor",
    "cannot be called on meta tensors",
)
"""What an error says that comes of missing values."""


@dataclass(frozen=True)
class EntryResult:
    """What came of an entry: its record, and a row for each graph that meets the constraints which
    need no run.
    """

    record: NetRecord
    rows: list[GraphRow]


class _FailureError(Exception):
    """A net gave no graphs, for a known cause."""

    def __init__(self, cause: CaptureFailure, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}"[:MAX_ERROR_CHARACTERS])
        self.cause = cause


def capture_entry(entry: str, settings: CaptureSettings) -> EntryResult:
    """Capture one entry; what cannot be captured gives a record that says why."""
    record = NetRecord(entry, "failed", versions=_versions(entry))
    first: Mode = "real" if settings.mode == "real" else "fake"
    try:
        return _capture(record, settings, first)
    except _FailureError as failure:
        failed = replace(record, cause=failure.cause, error=str(failure))
    hopeless = ("no_entry", "missing_package", "unsupported_graph")
    if settings.mode != "auto" or failed.cause in hopeless:
        return EntryResult(failed, [])
    try:
        result = _capture(record, settings, "real")
    except _FailureError as failure:
        real = replace(failed, cause=failure.cause, error=str(failure), fake_error=failed.error)
        return EntryResult(real, [])
    return EntryResult(replace(result.record, fake_error=failed.error), result.rows)


def _capture(record: NetRecord, settings: CaptureSettings, mode: Mode) -> EntryResult:
    weights = FakeWeights() if mode == "fake" else None
    start = time.perf_counter()
    net = _build(record.entry, weights, settings.train)
    built = time.perf_counter()
    sample = weights.sample if weights else None
    graphs: list[CapturedGraph] = []
    backward: dict[int, CapturedGraph] = {}

    def keep(segment: Segment) -> None:
        graphs.append(segment_graph(segment, sample))

    def keep_backward(number: int, module: torch.fx.GraphModule, values: list[Any]) -> None:
        backward[number] = module_graph(module, values)

    trace = Trace(net.module, keep, keep_backward if settings.backward else None)
    args = [item.value for item in net.args]
    kwargs = {name: item.value for name, item in net.kwargs.items()}
    _trace(trace, args, kwargs, net, mode)
    rows = [
        _row(
            item, net, _axes(segment, item, net), GraphSource(record.entry, number, settings.train)
        )
        for number, (segment, item) in enumerate(zip(trace.segments, graphs, strict=True))
    ]
    gradients = [
        _row(item, net, {}, GraphSource(record.entry, number, settings.train, "backward"))
        for number, item in backward.items()
    ]
    traced = time.perf_counter()
    size = num_parameters(net.module)
    checks = [static_constraints(item.graph) for item in (*graphs, *backward.values())]
    is_sound = [check.error is None for check in checks]
    sound = [row for row, kept in zip([*rows, *gradients], is_sound, strict=True) if kept]
    constraints = common_constraints(checks)
    if not sound:
        raise _FailureError("unsupported_graph", GraphError(str(constraints.error)))
    if settings.check and not constraints.serialisable:
        constraints = replace(constraints, unchecked="a graph cannot be read again")
    elif settings.check:
        rebuild = partial(_build, record.entry, weights, settings.train)
        constraints = check_outputs(net, trace, graphs, sample, settings, constraints, rebuild)
    else:
        constraints = replace(constraints, unchecked="not asked for")
    calls = [segment.num_calls for segment in trace.segments]
    notes = tuple(
        _note(row, item, count, kept)
        for row, item, count, kept in zip(rows, graphs, calls, is_sound[: len(rows)], strict=True)
    )
    edges = tuple((item.call, item.argument, item.source, item.output) for item in trace.edges)
    done = replace(
        record,
        status="captured",
        mode=mode,
        domain=net.domain,
        task=net.task,
        changes=net.changes,
        num_parameters=size,
        graphs=notes,
        backward=tuple(
            _note(row, item, calls[number], kept)
            for row, (number, item), kept in zip(
                gradients, backward.items(), is_sound[len(rows) :], strict=True
            )
        ),
        flow=Flow(tuple(trace.calls), edges) if len(notes) > 1 else Flow(),
        constraints=constraints,
        build_s=built - start,
        dynamo_s=trace.dynamo_s,
        trace_s=traced - built,
        check_s=time.perf_counter() - traced,
    )
    return EntryResult(done, sound)


def _note(row: GraphRow, item: CapturedGraph, num_calls: int, is_kept: bool) -> GraphNote:
    return GraphNote(
        row.structure,
        row.literals,
        row.full,
        len(row.op_sequence),
        len(item.graph.tensors),
        num_calls,
        is_kept,
    )


def _build(entry: str, weights: FakeWeights | None, train: bool) -> Net:
    """The net of an entry; the same every time."""
    torch.manual_seed(0)
    try:
        with weights or nullcontext():
            net = build_entry(entry)
            if isinstance(net.module, torch.nn.Module):
                net.module.train(train)
            return net
    except InputError as cause:
        raise _FailureError("no_entry", cause) from cause
    except ImportError as cause:
        raise _FailureError("missing_package", cause) from cause
    except Exception as cause:  # boundary: a library raises anything
        if _is_memory(cause):
            raise _FailureError("out_of_memory", cause) from cause
        failed: CaptureFailure = (
            "data_dependent" if weights and _needs_values(cause) else "build_error"
        )
        raise _FailureError(failed, cause) from cause


def _trace(trace: Trace, args: Sequence[Any], kwargs: dict[str, Any], net: Net, mode: Mode) -> None:
    try:
        trace.run(args, kwargs)
    except (CaptureError, GraphError) as error:
        behind = list(_behind(error))
        if any(_is_memory(item) for item in (error, *behind)):
            raise _FailureError("out_of_memory", error) from error
        if any(isinstance(item, (CaptureError, GraphError)) for item in behind):
            raise _FailureError("unsupported_graph", error) from error
        if mode == "real" and not _runs(net, args, kwargs):
            raise _FailureError("forward_error", error) from error
        if _needs_values(error):
            raise _FailureError("data_dependent", error) from error
        raise _FailureError("trace_error", error) from error


def _behind(error: BaseException) -> Iterator[BaseException]:
    """The errors that one was raised from, Dynamo's and what it wraps."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _runs(net: Net, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether the net can be called at all."""
    try:
        with torch.no_grad():
            net.module(*args, **kwargs)
    except Exception:  # noqa: BLE001 (boundary: a net raises anything)
        return False
    return True


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def _needs_values(error: BaseException) -> bool:
    text = f"{type(error.__cause__).__name__} {type(error).__name__} {error}"
    return any(item in text for item in _DATA_DEPENDENT)


def _axes(segment: Segment, item: CapturedGraph, net: Net) -> dict[str, list[str]]:
    """The names of the axes of those arguments that are what the net was called with."""
    named: dict[int, tuple[str, ...]] = {}
    for given in (*net.args, *net.kwargs.values()):
        if given.axes and isinstance(given.value, torch.Tensor):
            named[id(given.value)] = given.axes
    return {
        spec.name: list(named[id(value)])
        for spec, value in zip(item.graph.tensors, segment.arguments, strict=False)
        if id(value) in named
    }


def _row(
    item: CapturedGraph, net: Net, axes: dict[str, list[str]], source: GraphSource
) -> GraphRow:
    prints = fingerprints(item.graph)
    assert prints.full is not None, "a captured graph has specs"
    return GraphRow(
        full=prints.full,
        literals=prints.literals,
        structure=prints.structure,
        program=render_program(item.graph.program),
        tensors=encode(item.graph.tensors).decode(),
        op_sequence=op_sequence(item.graph.program),
        axes=encode(axes).decode(),
        domain=net.domain,
        task=net.task,
        sources=(source,),
    )


def _versions(entry: str) -> dict[str, str]:
    found = {"torch": str(torch.__version__)}
    for name in packages_of(entry):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def preload_library(name: str) -> None:
    """Import a library, and run Dynamo once, so that a fork of this process is quick.

    Args:
        name: of the library; or an entry that is a file, which needs none.
    """
    try:
        if not is_file(name):
            library(name).names()
    except (InputError, ImportError, OSError, RuntimeError):
        pass  # its capture will say what is missing
    importlib.import_module("passnet.graph.fake_limits")
    with torch.no_grad():
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), torch.nn.ReLU())
        Trace(net, lambda segment: None).run([torch.ones(1, 3, 4, 4)], {})
    torch._dynamo.reset()
