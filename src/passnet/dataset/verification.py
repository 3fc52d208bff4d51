"""Whether a dataset is what it says: its files, every row against its text, and runs of a sample.

Rows come from anyone: nothing of them is executed but in a process of its own, and there only ops
of tensors.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from passnet.dataset.layout import TYPES
from passnet.dataset.store import (
    MANIFEST_FILE,
    SUBGRAPHS,
    DatasetManifest,
    SubgraphRow,
    graph_of,
    main_dtype,
    read_manifest,
)
from passnet.errors import InputError
from passnet.graph.canonical import Fingerprints, fingerprints, op_sequence
from passnet.graph.targets import check_targets
from passnet.jobs.executors import run_local
from passnet.jobs.process import Job, JobLimits, JobRunner
from passnet.records.parquet import check_shards
from passnet.records.serialise import decode, encode

MAX_SHOWN = 20
MAX_REASON_CHARACTERS = 200
ROWS_A_TASK = 128
RUN_LIMITS = JobLimits(120.0, 16384)
"""What a run of one row may use."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found: how many rows were read and were wrong, how many were run and failed, and
    the first of what is wrong, in words. `files` are errors of manifest and files.
    """

    num_rows: int
    num_wrong: int
    num_run: int
    num_failed: int
    files: tuple[str, ...]
    rows: tuple[str, ...]
    runs: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.files or self.num_wrong or self.num_failed)


def verify(
    folder: Path,
    num_runs: int = 0,
    num_processes: int = 1,
    seed: int = 0,
    announce: Callable[[str, int], Callable[[], None]] | None = None,
) -> Verification:
    """Check a dataset: checksums, schema, every row recomputed from its text, and runs.

    Args:
        folder: of the dataset.
        num_runs: how many rows to build and run, drawn by `seed`, with recorded inputs.
        num_processes: how many at a time.
        seed: of the draw, and of the inputs.
        announce: told what is done and how often; what it gives is called after each.

    Raises:
        InputError: there is no manifest, or one of another version.
    """
    manifest = read_manifest(folder)
    files: list[str] = []
    drawn = _drawn(manifest.num_subgraphs, num_runs, seed)
    sample: list[SubgraphRow] = []
    counted = _Counted()
    step = announce("checking rows", manifest.num_subgraphs) if announce else None

    def rows() -> Iterator[SubgraphRow]:
        for row in _rows(folder, manifest, files):
            if counted.num_rows in drawn:
                sample.append(row)
            counted.add(row)
            if step is not None:
                step()
            yield row

    wrong = [text for text in _checked(rows(), num_processes) if text]
    wrong += [f"{name[:16]}: stands {count} times" for name, count in counted.repeated()]
    files += counted.differences(manifest)
    step = announce("running rows", len(sample)) if announce and sample else None
    failed = []
    for text in _run(sample, num_processes, seed):
        failed += [text] if text else []
        if step is not None:
            step()
    return Verification(
        counted.num_rows,
        len(wrong),
        len(sample),
        len(failed),
        tuple(files),
        tuple(wrong[:MAX_SHOWN]),
        tuple(failed[:MAX_SHOWN]),
    )


def _drawn(num_rows: int, num_runs: int, seed: int) -> frozenset[int]:
    return frozenset(random.Random(seed).sample(range(num_rows), min(num_runs, num_rows)))


def _rows(folder: Path, manifest: DatasetManifest, errors: list[str]) -> Iterator[SubgraphRow]:
    """The rows of all files that can be read; what is wrong with files goes to `errors`."""
    for shard in manifest.shards:
        try:
            [file] = check_shards(folder, [shard], MANIFEST_FILE)
        except InputError as cause:
            errors.append(str(cause))
            file = folder / shard.file
        if not file.is_file():
            continue
        try:
            yield from SUBGRAPHS.read(file)
        except InputError as cause:
            errors.append(str(cause))


class _Counted:
    """What the rows that went by add up to."""

    def __init__(self) -> None:
        self.num_rows = 0
        self._names: Counter[str] = Counter()
        self._structures: set[str] = set()
        self._sequences: set[tuple[str, ...]] = set()
        self._num_places = 0
        self._kinds: Counter[str] = Counter()
        self._domains: Counter[str] = Counter()

    def add(self, row: SubgraphRow) -> None:
        self.num_rows += 1
        self._names[row.full] += 1
        self._structures.add(row.structure)
        self._sequences.add(row.op_sequence)
        self._num_places += row.num_places
        self._kinds.update(row.kinds)
        self._domains[row.domain] += 1

    def repeated(self) -> Iterator[tuple[str, int]]:
        return ((name, count) for name, count in self._names.items() if count > 1)

    def differences(self, manifest: DatasetManifest) -> list[str]:
        """What the manifest says otherwise."""
        pairs = {
            "num_subgraphs": (manifest.num_subgraphs, self.num_rows),
            "num_structures": (manifest.num_structures, len(self._structures)),
            "num_op_sequences": (manifest.num_op_sequences, len(self._sequences)),
            "num_places": (manifest.num_places, self._num_places),
            "kinds": (manifest.kinds, dict(self._kinds)),
            "domains": (manifest.domains, dict(self._domains)),
        }
        return [
            f"{MANIFEST_FILE}: {name} is {said}, the files have {found}"
            for name, (said, found) in pairs.items()
            if said != found
        ]


def _checked(rows: Iterator[SubgraphRow], num_processes: int) -> Iterator[str | None]:
    """What is wrong with each row, in order; a few batches are under way at a time."""
    if num_processes <= 1:
        yield from map(row_error, rows)
        return
    waiting: deque[Future[list[str | None]]] = deque()
    with ProcessPoolExecutor(num_processes, mp_context=get_context("spawn")) as pool:
        while batch := list(islice(rows, ROWS_A_TASK)):
            waiting.append(pool.submit(_row_errors, batch))
            if len(waiting) > 2 * num_processes:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _row_errors(rows: Iterable[SubgraphRow]) -> list[str | None]:
    return [row_error(row) for row in rows]


def row_error(row: SubgraphRow) -> str | None:
    """What is wrong with a row, in words; None where nothing is.

    Everything that follows from its text and arguments is computed again.
    """
    where = row.full[:16]
    try:
        graph = graph_of(row)
        check_targets(graph.program, where)
        prints = fingerprints(graph)
    except InputError as cause:
        text = str(cause)
        return text if text.startswith(where) else f"{where}: {text}"
    ops = op_sequence(graph.program)
    wrong = [
        name
        for name, stored, found in (
            ("fingerprints", Fingerprints(row.structure, row.literals, row.full), prints),
            ("op_sequence", row.op_sequence, ops),
            ("num_ops", row.num_ops, len(ops)),
            ("dtype", row.dtype, main_dtype(graph.tensors)),
            ("kinds", row.kinds, tuple(sorted({*row.kinds} & {*TYPES}))),
            ("nets", row.nets, tuple(sorted({*row.nets}))),
            ("original", bool(row.original), bool(row.variant)),
        )
        if stored != found
    ]
    if not _places_agree(row):
        wrong.append("places")
    return f"{where}: wrong {', '.join(wrong)}" if wrong else None


def _places_agree(row: SubgraphRow) -> bool:
    named = len({item.graph for item in row.places})
    ranges = all(0 <= item.start < item.stop for item in row.places)
    return ranges and len(row.places) <= row.num_places and named <= row.num_graphs


def _run(rows: list[SubgraphRow], num_processes: int, seed: int) -> Iterator[str | None]:
    """How the run of each row failed, in any order; None where it did not."""
    jobs = {row.full: (row, seed) for row in rows}
    return run_local(list(jobs), partial(_run_isolated, jobs=jobs), num_processes)


def _run_isolated(
    worker: JobRunner, name: str, jobs: dict[str, tuple[SubgraphRow, int]]
) -> str | None:
    module = "passnet.dataset.verification"
    payload = encode(jobs[name]).decode()
    result = worker.run(Job(f"{module}:run_row", payload, RUN_LIMITS, f"{module}:ready"))
    if result.is_done:
        return None
    lines = result.log.splitlines()
    reason = lines[-1] if lines and not result.end.timed_out else result.failure
    return f"{name[:16]}: {reason[:MAX_REASON_CHARACTERS]}"


def ready(_: str) -> None:
    """Import what a run needs."""
    import torch

    torch.set_num_threads(1)


def run_row(payload: str, _: Path) -> None:
    """What runs in the process: build a row's graph on the CPU, and call it with recorded inputs.

    Raises:
        GraphError: it cannot be built, or its inputs cannot be drawn.
    """
    import torch

    from passnet.graph.build import build
    from passnet.graph.device import retarget
    from passnet.graph.inputs import make_inputs

    row, seed = decode(payload, tuple[SubgraphRow, int])
    graph = retarget(graph_of(row), "cpu")
    values = make_inputs(graph, "recorded", seed)
    inputs = [
        value
        if isinstance(value, int)
        else torch.from_numpy(value).view(getattr(torch, item.dtype))
        for value, item in zip(values, graph.tensors, strict=True)
    ]
    with torch.no_grad():
        build(graph.program, row.full[:16])(*inputs)
