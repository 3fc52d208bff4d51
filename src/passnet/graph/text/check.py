"""Checks of graph directories: that they parse, round-trip, and run under fake tensors."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from passnet.core.jobs.executors import run_local
from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobRunner
from passnet.core.records.serialise import decode, encode, write_json
from passnet.errors import GraphError, PassnetError
from passnet.graph.canonical import fingerprints
from passnet.graph.text.files import read_sample
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program

LIMITS = JobLimits(300.0, 8192)


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one graph directory's check.

    `parsed` includes the round trip and fingerprints; `built`, None if not tried, a run under fake
    tensors. `error` says what failed first; `crashed`: the graph ended its process.
    """

    path: str
    parsed: bool
    built: bool | None
    num_ops: int
    error: str | None = None
    structure: str | None = None
    full: str | None = None
    crashed: bool = False


def check_graph(path: Path, build: bool) -> Check:
    """Check one directory."""
    where = str(path / "model.py")
    try:
        graph = read_sample(path).graph
        again = parse_program(render_program(graph.program), f"{where} (printed)")
        if again != graph.program:
            raise GraphError(f"{where}: its print parses to another program")
        prints = fingerprints(graph)
    except PassnetError as cause:
        return Check(str(path), False, None, 0, str(cause))
    num_ops = len(graph.program.ops)
    check = Check(str(path), True, None, num_ops, None, prints.structure, prints.full)
    if not build:
        return check
    from passnet.graph.values.fake import infer_shapes

    try:
        infer_shapes(graph, where)
    except PassnetError as cause:
        return replace(check, built=False, error=str(cause))
    return replace(check, built=True)


def check_all(paths: Sequence[Path], build: bool, num_processes: int) -> Iterator[Check]:
    """Yield the checks of directories, in order; a crash is a failed check of its graph."""
    if num_processes <= 1 or len(paths) <= 1:
        yield from (check_graph(path, build) for path in paths)
        return
    names = [str(path) for path in paths]
    pending, checks = deque(names), {}
    for check in run_local(names, partial(_check_isolated, build=build), num_processes):
        checks[check.path] = check
        while pending and pending[0] in checks:
            yield checks.pop(pending.popleft())


def _check_isolated(runner: JobRunner, name: str, build: bool) -> Check:
    module = "passnet.graph.text.check"
    payload = encode((name, build)).decode()
    result = runner.run(Job(f"{module}:check_to", payload, LIMITS, f"{module}:ready"))
    if outcome := result.outcome(Check):
        return outcome.record
    text = f"{name}: the checking process ended: {result.failure}"
    return Check(name, False, None, 0, text, crashed=True)


def ready(_: str) -> None:
    """Import what a check needs, so that a fork of this process is quick."""
    import passnet.graph.values.fake  # noqa: F401


def check_to(payload: str, folder: Path) -> None:
    """Check one directory in a child process, and leave the record in a folder."""
    name, build = decode(payload, tuple[str, bool])
    write_json(folder / RECORD_FILE, check_graph(Path(name), build))
