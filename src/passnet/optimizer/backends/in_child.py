"""Work of foreign compilers in a child process: a crash or a hang there is a refused backend."""

import os
import pickle
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import torch
from torch.export import ExportedProgram

from passnet.core.jobs.children import end_with_parent
from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobRunner
from passnet.core.records.serialise import write_json
from passnet.errors import BackendError, StoppedError
from passnet.inductor.compiler import import_compilers
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.call.weight_file import WeightFile

T = TypeVar("T")

PROGRAM_FILE, PLACES_FILE, LOG_FILE = "program.pt2", "places.pickle", "log.txt"
"""The exported net as a child reads it, where its weights are, and what a child printed."""

RunTensors: TypeAlias = Callable[[list[torch.Tensor]], Sequence[Any]]
"""Takes the tensors of a call, and returns distinct outputs."""

MakeFile: TypeAlias = Callable[[], object]
"""What a child does; it is pickled, so it may hold functions of modules, paths and plain values."""


@dataclass(frozen=True, slots=True)
class WorkEnd:
    """The end of work that did not end its process; `error` is None where it is done."""

    error: str | None


def save_program(call: NetCall, folder: Path, program: ExportedProgram | None = None) -> None:
    """Export a net, or take its program, with the tensors of its example, into a folder.

    Weights that are mapped from a file are left out.
    """
    if program is None:
        with redirect_stderr(StringIO()):  # of a net that it refuses, torch prints the graph
            program = call.exported_flat
    weights, file = dict(program.state_dict), call.weight_file
    found = {name: file.place(weight) for name, weight in weights.items()} if file else {}
    places = {name: place for name, place in found.items() if place is not None}
    order = (file.path.absolute() if file else None, places)
    if file and not file.is_written:  # one of an earlier run may be there
        file.write()
    (folder / PLACES_FILE).write_bytes(pickle.dumps(order))
    try:
        program.state_dict.update({name: _without_values(weights[name]) for name in places})
        torch.export.save(program, folder / PROGRAM_FILE)
    finally:
        program.state_dict.update(weights)


def _without_values(weight: torch.Tensor) -> torch.Tensor:
    """Return a weight of the same shape that is saved as one element."""
    return _like(weight, torch.zeros((), dtype=weight.dtype).expand(weight.shape))


def _like(weight: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return values as a parameter if the weight is one."""
    is_parameter = isinstance(weight, torch.nn.Parameter)
    return torch.nn.Parameter(values, weight.requires_grad) if is_parameter else values


def read_program(folder: Path) -> tuple[ExportedProgram, list[torch.Tensor]]:
    """Return an exported net and the tensors of its example."""
    program = torch.export.load(folder / PROGRAM_FILE)
    assert program.example_inputs is not None, "it was saved with them"
    path, places = pickle.loads((folder / PLACES_FILE).read_bytes())  # noqa: S301 (our own)
    if path is not None:
        file, weights = WeightFile.mapped(path), program.state_dict
        mapped = {name: _like(weights[name], file.weight(place)) for name, place in places.items()}
        weights.update(mapped)
    return program, list(program.example_inputs[0])


def in_fork(work: Callable[[Path], T], folder: Path) -> T:
    """Do some work in a process of its own, with whose end all its memory is free.

    It ends with this process, which may be killed: a worker of a pool would not.
    """
    with ProcessPoolExecutor(1, get_context("fork"), end_with_parent) as pool:
        return pool.submit(work, folder).result()


def with_repeated(call: NetCall, run: RunTensors) -> RunTensors:
    """Return a function of all outputs from one of distinct outputs."""
    first = list(call.distinct_outputs)
    numbers = [first.index(id(output)) for output in call.outputs]

    def all_outputs(tensors: list[torch.Tensor]) -> Sequence[Any]:
        outputs = run(tensors)
        return [outputs[number] for number in numbers]

    return all_outputs if len(first) < len(numbers) else run


def do_in_child(
    work: MakeFile, says: str, folder: Path, runner: JobRunner | None, seconds: float
) -> None:
    """Do some work of a backend in a child process, and keep what it prints in the folder.

    Raises:
        BackendError: it fails, or ends its process.
        StoppedError: it takes longer than so many seconds.
    """
    if runner is None:
        with JobRunner() as own:
            return do_in_child(work, says, folder, own, seconds)
    order = (work, torch.get_num_threads(), _packages_of_ops())
    job = Job(f"{__name__}:do", pickle.dumps(order).hex(), _limits(seconds), f"{__name__}:prepare")
    result = runner.run(job)
    for name in (PROGRAM_FILE, PLACES_FILE):
        (folder / name).unlink(missing_ok=True)
    if result.log:
        (folder / LOG_FILE).write_text(result.log, encoding="utf-8")
    if result.end.timed_out:
        raise StoppedError(f"{says} was stopped, as its share of the budget was spent")
    if result.end.signal is not None:
        raise BackendError(f"{says} ended its process by {signal.Signals(result.end.signal).name}")
    end = result.outcome(WorkEnd)
    if end is None:
        raise BackendError(f"{says} ended its process with status {result.end.status}")
    if end.record.error is not None:
        raise BackendError(f"{says}: {end.record.error}")
    return None


def prepare_children(runner: JobRunner) -> None:
    """Start imports in the parent of all children."""
    runner.start(f"{__name__}:prepare")


def _limits(seconds: float) -> JobLimits:
    """Return the limits of a child: memory as this process has it, else the machine's."""
    of_machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    return JobLimits(seconds, (of_machine if hard < 0 else min(of_machine, hard)) >> 20)


def _packages_of_ops() -> list[str]:
    """Return imported packages that define ops under their own names, as torchvision does."""
    namespaces = {name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names()}
    return sorted(namespaces & set(sys.modules))


def prepare(_: str) -> None:
    """Import the modules of the children once in their parent."""
    import_compilers()


def do(payload: str, folder: Path) -> None:
    """Do the work of an order; runs in the child."""
    work, num_threads, packages = pickle.loads(bytes.fromhex(payload))  # noqa: S301 (our own)
    torch.set_num_threads(num_threads)
    for package in packages:
        with suppress(Exception):  # a net whose ops are then missing cannot be read
            import_module(package)
    error = None
    try:
        with torch.no_grad():
            work()
    except Exception as cause:  # noqa: BLE001 (boundary: foreign code may raise anything)
        traceback.print_exc()
        error = f"{type(cause).__name__}: {cause}"
    write_json(folder / RECORD_FILE, WorkEnd(error))
