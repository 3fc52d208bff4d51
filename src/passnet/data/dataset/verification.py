"""Checks of a dataset: files, rows against their text, and runs of a sample in own processes."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from itertools import count, islice, takewhile
from pathlib import Path
from typing import Any

from passnet.core.jobs.executors import run_local
from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobRunner
from passnet.core.records.parquet import check_shards, shard_path
from passnet.core.records.serialise import decode, encode, write_json
from passnet.core.terminal.progress import ProgressStep, no_progress
from passnet.data.dataset import store
from passnet.data.dataset.store import MANIFEST_FILE, SUBGRAPHS, DatasetManifest, SubgraphRow
from passnet.data.dataset.variant_sizes import is_variant_name, names_dtype
from passnet.data.mine.subgraphs import SUBGRAPH_KINDS
from passnet.errors import InputError
from passnet.graph.canonical import Fingerprints, fingerprints, op_sequence
from passnet.graph.fx.targets import check_targets

MAX_SHOWN = 20
MAX_REASON_CHARACTERS = 200
ROWS_A_JOB = 128
MAX_ROWS = 2**40
"""The most rows to expect of a manifest; more than any disk holds."""

BATCH_LIMITS = JobLimits(600.0, 8192)
RUN_LIMITS = JobLimits(120.0, 16384)


@dataclass(frozen=True, slots=True)
class Verification:
    """Counts of a check, and its first errors; `num_alone` variants without original are none.

    Rows of `not_run` did not end in time, which says nothing of them.
    """

    num_rows: int
    num_wrong: int
    num_alone: int
    num_run: int
    num_failed: int
    files: tuple[str, ...]
    rows: tuple[str, ...]
    runs: tuple[str, ...]
    num_not_run: int = 0
    not_run: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if there are no errors."""
        return not (self.files or self.num_wrong or self.num_failed)


def verify(
    folder: Path,
    num_runs: int = 0,
    num_processes: int = 1,
    seed: int = 0,
    announce: Callable[[str, int], ProgressStep] = no_progress,
    limits: JobLimits = RUN_LIMITS,
) -> Verification:
    """Check a dataset: checksums, schema, every row recomputed from its text, and runs of
    `num_runs` rows within `limits`. `seed` draws the rows to run, and their inputs. `announce` is
    called with the title and total of each phase, and returns the step to call after each.
    """
    manifest = store.read_manifest(folder)
    num_rows = max(0, min(manifest.num_subgraphs, MAX_ROWS))  # of a manifest that may say anything
    numbers = frozenset(random.Random(seed).sample(range(num_rows), min(num_runs, num_rows)))
    errors: list[str] = []
    sample: list[SubgraphRow] = []
    counts = store.RowCounts()
    families = _Families()
    step = announce("checking rows", num_rows)

    def rows() -> Iterator[SubgraphRow]:
        for number, row in enumerate(_rows(folder, manifest, errors)):
            if number in numbers:
                sample.append(row)
            counts.add(row)
            families.add(row)
            step()
            yield row

    wrong = _row_errors(rows(), num_processes)
    wrong += [f"{name[:16]}: stands {n} times" for name, n in counts.names.items() if n > 1]
    wrong += families.errors()
    errors += _differences(manifest, counts.manifest(manifest.versions, manifest.shards))
    failed: list[str] = []
    late: list[str] = []
    if sample:
        step = announce("running rows", len(sample))
    payloads = {row.full: encode((row, seed)).decode() for row in sample}
    run = partial(_run_isolated, payloads=payloads, limits=limits)
    for text, is_late in run_local(payloads, run, num_processes):
        (late if is_late else failed).extend([text] if text else [])
        step()
    return Verification(
        counts.names.total(),
        len(wrong),
        families.num_alone,
        len(sample) - len(late),
        len(failed),
        tuple(errors),
        tuple(wrong[:MAX_SHOWN]),
        tuple(failed[:MAX_SHOWN]),
        len(late),
        tuple(late[:MAX_SHOWN]),
    )


class _Families:
    """The variants of a dataset with their originals."""

    def __init__(self) -> None:
        self._captured: dict[str, tuple[str, str]] = {}
        self._variants: list[tuple[str, str, str, str]] = []

    def add(self, row: SubgraphRow) -> None:
        if row.variant:
            dtype = "" if names_dtype(row.variant) else row.dtype
            self._variants.append((row.full, row.original, row.structure, dtype))
        else:
            self._captured[row.full] = (row.structure, row.dtype)

    @property
    def num_alone(self) -> int:
        return sum(original not in self._captured for _, original, *_ in self._variants)

    def errors(self) -> list[str]:
        """Return an error for each variant with a structure, or unchanged dtype, of its own."""
        texts = []
        for full, original, structure, dtype in self._variants:
            parent = self._captured.get(original, (structure, dtype))
            if parent[0] != structure or dtype not in ("", parent[1]):
                texts.append(f"{full[:16]}: is no variant of {original[:16]}")
        return texts


def _rows(folder: Path, manifest: DatasetManifest, errors: list[str]) -> Iterator[SubgraphRow]:
    """Yield the rows of all readable files; errors of files go to `errors`."""
    for shard in manifest.shards:
        try:
            check_shards(folder, [shard], MANIFEST_FILE)
        except InputError as cause:
            errors.append(str(cause))
        try:
            yield from SUBGRAPHS.read(shard_path(folder, shard, MANIFEST_FILE))
        except InputError as cause:
            errors += [] if str(cause) in errors else [str(cause)]


def _differences(stated: DatasetManifest, actual: DatasetManifest) -> list[str]:
    """Return the differences of a manifest from its files as text."""
    names = [field.name for field in fields(DatasetManifest) if field.name != "versions"]
    values = {name: (getattr(stated, name), getattr(actual, name)) for name in names}
    return [
        f"{MANIFEST_FILE}: {name} is {value}, the files have {actual_value}"
        for name, (value, actual_value) in values.items()
        if value != actual_value
    ]


def _row_errors(rows: Iterator[SubgraphRow], num_processes: int) -> list[str]:
    """Return the errors of rows, in their order; batches of them are checked in parallel."""
    if num_processes <= 1:
        return [text for text in map(row_error, rows) if text]
    batches = takewhile(bool, (list(islice(rows, ROWS_A_JOB)) for _ in count()))
    payloads = (encode(numbered).decode() for numbered in enumerate(batches))
    errors = dict(run_local(payloads, _batch_errors, num_processes))
    return [text for number in sorted(errors) for text in errors[number]]


def _batch_errors(runner: JobRunner, payload: str) -> tuple[int, list[str]]:
    """Return the number of a batch, and the errors of its rows."""
    module = "passnet.data.dataset.verification"
    result = runner.run(Job(f"{module}:batch_errors_to", payload, BATCH_LIMITS, f"{module}:ready"))
    if outcome := result.outcome(list[str]):
        return decode(payload, tuple[int, list[Any]])[0], outcome.record
    number, batch = decode(payload, tuple[int, list[SubgraphRow]])
    names = f"{batch[0].full[:16]} to {batch[-1].full[:16]}"
    return number, [f"rows {names} could not be checked: {result.failure}"]


def batch_errors_to(payload: str, folder: Path) -> None:
    """Check a batch in the process, and write the errors of its rows to a folder."""
    _, batch = decode(payload, tuple[int, list[SubgraphRow]])
    write_json(folder / RECORD_FILE, [text for text in map(row_error, batch) if text])


def row_error(row: SubgraphRow) -> str | None:
    """Return the error of a row, all of it computed again from its text; None where it is right."""
    where = row.full[:16]
    try:
        graph = store.graph_of(row)
        check_targets(graph.program, where)
        prints = fingerprints(graph)
    except InputError as cause:
        text = str(cause)
        return text if text.startswith(where) else f"{where}: {text}"
    ops = op_sequence(graph.program)
    graphs = {occurrence.graph for occurrence in row.places}
    places_agree = len({*row.places}) == len(row.places) <= row.num_places
    places_agree = places_agree and len(graphs) <= row.num_graphs
    places_agree = places_agree and all(0 <= place.start < place.stop for place in row.places)
    wrong = [
        name
        for name, stored, actual in (
            ("fingerprints", Fingerprints(row.structure, row.literals, row.full), prints),
            ("op_sequence", row.op_sequence, ops),
            ("num_ops", row.num_ops, len(ops)),
            ("dtype", row.dtype, store.main_dtype(graph.tensors)),
            ("kinds", row.kinds, tuple(sorted({*row.kinds} & {*SUBGRAPH_KINDS}))),
            ("nets", row.nets, tuple(sorted({*row.nets}))),
            ("variant", True, not row.variant or is_variant_name(row.variant)),
            ("original", bool(row.original), bool(row.variant)),
            ("places", True, places_agree),
        )
        if stored != actual
    ]
    return f"{where}: wrong {', '.join(wrong)}" if wrong else None


def _run_isolated(
    worker: JobRunner, name: str, payloads: dict[str, str], limits: JobLimits
) -> tuple[str | None, bool]:
    """Return the error of a row's run, None where it succeeded, and whether time was up."""
    module = "passnet.data.dataset.verification"
    result = worker.run(Job(f"{module}:run_row", payloads[name], limits, f"{module}:ready"))
    if result.is_done:
        return None, False
    lines, is_late = result.log.splitlines(), result.end.timed_out
    reason = lines[-1] if lines and not is_late else result.failure
    return f"{name[:16]}: {reason[:MAX_REASON_CHARACTERS]}", is_late


def ready(_: str) -> None:
    """Import the modules of a run."""
    import torch

    torch.set_num_threads(1)


def run_row(payload: str, _: Path) -> None:
    """Build a row's graph on the CPU in the process, and call it with recorded inputs."""
    import torch

    from passnet.graph.fx.build import build
    from passnet.graph.spec import retarget
    from passnet.graph.values.cost import torch_arguments

    row, seed = decode(payload, tuple[SubgraphRow, int])
    graph = retarget(store.graph_of(row), "cpu")
    with torch.no_grad():
        build(graph.program, row.full[:16])(*torch_arguments(graph, "recorded", seed))
