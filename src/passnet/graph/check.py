"""Check of graph directories: that they parse, round-trip, and run under fake tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from passnet.errors import GraphError, PassnetError
from passnet.graph.canonical import fingerprints
from passnet.graph.files import read_sample
from passnet.graph.parse import parse_program
from passnet.graph.render import render_program


@dataclass(frozen=True, slots=True)
class Check:
    """What was found about one graph directory.

    `parsed`: it was read, its text parses back to the same program, and its fingerprints can be
    taken. `built`: it was built and ran under fake tensors; None when that was not asked for or the
    first failed. `error` says what failed first; `crashed`: it brought its process down.
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
    """The check of one directory."""
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
    from passnet.graph.fake import infer_shapes

    try:
        infer_shapes(graph, where)
    except PassnetError as cause:
        return replace(check, built=False, error=str(cause))
    return replace(check, built=True)


def check_all(paths: Sequence[Path], build: bool, num_processes: int) -> Iterator[Check]:
    """The checks of several directories, in order, in as many processes as asked for.

    A process that a graph brings down is a failed check of that graph, and the rest goes on.
    """
    if num_processes <= 1 or len(paths) <= 1:
        yield from (check_graph(path, build) for path in paths)
        return
    remaining = list(paths)
    while remaining:
        with ProcessPoolExecutor(num_processes, mp_context=get_context("spawn")) as pool:
            for future in [pool.submit(check_graph, path, build) for path in remaining]:
                if isinstance(future.exception(), BrokenProcessPool):
                    break
                yield future.result()
                del remaining[0]
        # Which graph broke the pool is seen by checking those that may have in processes of their
        # own; where it was a later one, the next pool breaks too.
        for path in remaining[:num_processes]:
            yield _check_alone(path, build)
        del remaining[:num_processes]


def _check_alone(path: Path, build: bool) -> Check:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(check_graph, path, build).result()
        except BrokenProcessPool as cause:
            text = f"{path}: the checking process ended ({type(cause).__name__})"
            return Check(str(path), False, None, 0, text, crashed=True)
