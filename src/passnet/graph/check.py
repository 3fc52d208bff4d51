"""Check of graph directories: that they parse, round-trip, and run under fake tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from passnet.errors import PassnetError
from passnet.graph.canonical import fingerprints
from passnet.graph.files import find_graphs, read_sample
from passnet.graph.parse import parse_program
from passnet.graph.render import render_program


@dataclass(frozen=True, slots=True)
class Check:
    """What was found about one graph directory.

    `parsed`: it was read, its text parses back to the same program, and its fingerprints can be
    taken. `built`: it was built and ran under fake tensors; None when that was not asked for or the
    first failed. `error` says what failed first.
    """

    path: str
    parsed: bool
    built: bool | None
    num_ops: int
    error: str | None = None
    structure: str | None = None
    full: str | None = None


def check_graph(path: Path, build: bool) -> Check:
    """The check of one directory."""
    try:
        graph = read_sample(path).graph
        where = str(path / "model.py")
        again = parse_program(render_program(graph.program), f"{where} (printed)")
        if again != graph.program:
            return Check(str(path), False, None, 0, f"{where}: its print parses to another program")
        prints = fingerprints(graph)
    except PassnetError as cause:
        return Check(str(path), False, None, 0, str(cause))
    num_ops = len(graph.program.ops)
    built: bool | None = None
    error = None
    if build:
        from passnet.graph.fake import infer_shapes

        try:
            infer_shapes(graph, where)
            built = True
        except PassnetError as cause:
            built, error = False, str(cause)
    return Check(str(path), True, built, num_ops, error, prints.structure, prints.full)


def find_all(roots: Sequence[Path]) -> list[Path]:
    """The graph directories below several folders.

    Raises:
        GraphError: a folder does not exist.
    """
    return [path for root in roots for path in find_graphs(root)]


def check_all(
    paths: Sequence[Path], build: bool, num_processes: int, done: Callable[[Check], None]
) -> Iterator[Check]:
    """The checks of several directories, in order, in as many processes as asked for.

    A process that a graph brings down is a failed check of that graph, and the rest goes on.
    """
    if num_processes <= 1 or len(paths) <= 1:
        for path in paths:
            check = check_graph(path, build)
            done(check)
            yield check
        return
    remaining = list(paths)
    context = get_context("spawn")
    while remaining:
        with ProcessPoolExecutor(num_processes, mp_context=context) as pool:
            futures = [pool.submit(check_graph, path, build) for path in remaining]
            for path, future in zip(list(remaining), futures, strict=True):
                try:
                    check = future.result()
                except BrokenProcessPool as cause:
                    text = f"{path}: the checking process ended ({type(cause).__name__})"
                    check = Check(str(path), False, None, 0, text)
                remaining.remove(path)
                done(check)
                yield check
                if check.error and "the checking process ended" in check.error:
                    break
