"""The capture of one entry in this process: build, trace, check, record."""

import importlib
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from passnet.data.capture import constraints
from passnet.data.capture.capture import CapturedGraph, module_graph
from passnet.data.capture.catalog import build_entry, names_of, packages_of
from passnet.data.capture.net import Net, input_values
from passnet.data.capture.record import (
    CaptureFailure,
    CaptureSettings,
    Flow,
    GraphNote,
    Mode,
    NetRecord,
    is_file,
)
from passnet.data.capture.store import GraphRow, GraphSource, row_of
from passnet.data.capture.trace import Segment, Trace
from passnet.data.capture.weights import FakeWeights
from passnet.errors import CaptureError, GraphError, InputError
from passnet.inductor.compiler import reset_dynamo

MAX_ERROR_CHARACTERS = 600

_DATA_DEPENDENT = (
    "DataDependentOutput", "GuardOnDataDependent", "data-dependent",
    "Cannot copy out of meta tensor", "cannot be called on meta tensors",
)  # fmt: skip
"""Texts of errors about missing values."""


@dataclass(frozen=True)
class EntryResult:
    """The record of an entry, and a row for each graph that meets the static constraints."""

    record: NetRecord
    rows: list[GraphRow]


class _FailureError(Exception):
    """The known cause for which a net gave no graphs."""

    def __init__(self, cause: CaptureFailure, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}"[:MAX_ERROR_CHARACTERS])
        self.cause = cause


def capture_entry(entry: str, settings: CaptureSettings) -> EntryResult:
    """Capture one entry; the record of a failure gives its cause."""
    record = failed = NetRecord(entry, "failed", versions=_versions(entry))
    modes: tuple[Mode, ...] = ("fake", "real") if settings.mode == "auto" else (settings.mode,)
    for mode in modes:
        try:
            return _capture(record, settings, mode)
        except _FailureError as failure:
            failed = replace(record, cause=failure.cause, error=str(failure))
        if failed.cause in ("no_entry", "missing_package", "unsupported_graph"):
            break
        record = replace(record, fake_error=failed.error)
    return EntryResult(failed, [])


def _capture(record: NetRecord, settings: CaptureSettings, mode: Mode) -> EntryResult:
    weights = FakeWeights() if mode == "fake" else None
    sample = weights.sample if weights else None
    build = partial(_build, record.entry, weights, settings.train)
    start = time.perf_counter()
    net = build()
    built = time.perf_counter()
    forward: list[CapturedGraph] = []
    backward: dict[int, CapturedGraph] = {}

    def keep(segment: Segment) -> None:
        forward.append(module_graph(segment.module, segment.arguments, sample))

    def keep_backward(number: int, module: torch.fx.GraphModule, values: list[Any]) -> None:
        backward[number] = module_graph(module, values)

    trace = Trace(net.module, keep, keep_backward if settings.backward else None)
    _trace(trace, net, mode)
    source = GraphSource(record.entry, 0, settings.train)
    rows = [
        row_of(
            graph.graph,
            replace(source, number=segment.number),
            _axes(segment, graph, net),
            net.domain,
            net.task,
        )
        for segment, graph in zip(trace.segments, forward, strict=True)
    ]
    for number, graph in backward.items():
        of_gradients = replace(source, number=number, part="backward")
        rows.append(row_of(graph.graph, of_gradients, {}, net.domain, net.task))
    traced = time.perf_counter()
    graphs = [*forward, *backward.values()]
    checks = [constraints.static_constraints(graph.graph) for graph in graphs]
    notes = tuple(
        _note(row, graph, trace, is_kept=check.error is None)
        for row, graph, check in zip(rows, graphs, checks, strict=True)
    )
    common = constraints.common_constraints(checks)
    if not any(note.is_kept for note in notes):
        raise _FailureError("unsupported_graph", GraphError(str(common.error)))
    num_parameters = constraints.num_parameters(net.module)
    replay = constraints.Replay(net, trace, forward, sample, build)
    common = constraints.check_outputs(replay, settings, common)
    captured = replace(
        record,
        status="captured",
        mode=mode,
        domain=net.domain,
        task=net.task,
        changes=net.changes,
        num_parameters=num_parameters,
        graphs=notes[: len(forward)],
        backward=notes[len(forward) :],
        flow=Flow(tuple(trace.calls), tuple(trace.edges)) if len(forward) > 1 else Flow(),
        constraints=common,
        build_s=built - start,
        dynamo_s=trace.dynamo_s,
        trace_s=traced - built,
        check_s=time.perf_counter() - traced,
    )
    sound = [row for row, note in zip(rows, notes, strict=True) if note.is_kept]
    return EntryResult(captured, sound)


def _note(row: GraphRow, graph: CapturedGraph, trace: Trace, is_kept: bool) -> GraphNote:
    num_ops, num_args = len(row.op_sequence), len(graph.graph.tensors)
    num_calls = trace.segments[row.sources[0].number].num_calls
    return GraphNote(row.structure, row.literals, row.full, num_ops, num_args, num_calls, is_kept)


def _build(entry: str, weights: FakeWeights | None, train: bool) -> Net:
    try:
        return build_entry(entry, train, weights)
    except InputError as error:
        raise _FailureError("no_entry", error) from error
    except ImportError as error:
        raise _FailureError("missing_package", error) from error
    except Exception as error:  # boundary: a library raises anything
        cause: CaptureFailure = "build_error"
        if _is_memory(error):
            cause = "out_of_memory"
        elif weights and _needs_values(error):
            cause = "data_dependent"
        raise _FailureError(cause, error) from error


def _trace(trace: Trace, net: Net, mode: Mode) -> None:
    try:
        trace.run(*input_values(net))
    except (CaptureError, GraphError) as error:
        cause: CaptureFailure = "trace_error"
        errors = list(_causes(error))
        if any(map(_is_memory, (error, *errors))):
            cause = "out_of_memory"
        elif any(isinstance(inner, (CaptureError, GraphError)) for inner in errors):
            cause = "unsupported_graph"
        elif mode == "real" and not _can_run(net):
            cause = "forward_error"
        elif _needs_values(error):
            cause = "data_dependent"
        raise _FailureError(cause, error) from error


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause = error.__cause__ or error.__context__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _can_run(net: Net) -> bool:
    args, kwargs = input_values(net)
    with suppress(Exception), torch.no_grad():  # boundary: a net raises anything
        net.module(*args, **kwargs)
        return True
    return False


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def _needs_values(error: BaseException) -> bool:
    text = f"{type(error.__cause__).__name__} {type(error).__name__} {error}"
    return any(sign in text for sign in _DATA_DEPENDENT)


def _axes(segment: Segment, graph: CapturedGraph, net: Net) -> dict[str, list[str]]:
    """Return the axis names of the graph arguments that are inputs of the net."""
    named = {
        id(argument.value): list(argument.axes)
        for argument in (*net.args, *net.kwargs.values())
        if argument.axes and isinstance(argument.value, torch.Tensor)
    }
    return {
        spec.name: named[id(value)]
        for spec, value in zip(graph.graph.tensors, segment.arguments, strict=False)
        if id(value) in named
    }


def _versions(entry: str) -> dict[str, str]:
    versions = {"torch": str(torch.__version__)}
    for name in packages_of(entry):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def preload_library(name: str) -> None:
    """Import a library, and run Dynamo once, so that a fork of this process starts fast."""
    with suppress(InputError):  # its capture will say what is missing
        if not is_file(name):
            names_of(name)
    importlib.import_module("passnet.graph.values.fake_limits")
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), torch.nn.ReLU())
    for keep_backward in (None, lambda *_: None):  # autograd's part is imported when first used
        Trace(net, lambda _: None, keep_backward).run([torch.ones(1, 3, 4, 4)], {})
    reset_dynamo()
