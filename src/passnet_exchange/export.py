"""A dataset as directories of the GraphNet or PassNet layout, or as files for Hugging Face."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from passnet.core.records.folders import atomic_folder, below
from passnet.core.records.parquet import split_rows
from passnet.core.terminal.progress import ProgressStep, no_progress
from passnet.data.dataset.query import Dataset
from passnet.data.dataset.splits import Side
from passnet.data.dataset.store import SUBGRAPHS, SubgraphRow
from passnet.errors import InputError
from passnet.graph.text.files import GraphSample, write_sample
from passnet.version import __version__
from passnet_exchange import folders
from passnet_exchange.card import CARD_FILE, CardFacts, card
from passnet_exchange.importer import DATA_FOLDER
from passnet_exchange.origins import Origin, folder_of, read_origins, sample_of_origin

Layout: TypeAlias = Literal["graphnet", "passnet", "hf"]

RowSamples: TypeAlias = Iterator[tuple[SubgraphRow, list[tuple[Origin | None, GraphSample]]]]
"""Rows with their directories: the imported ones, else one of our own."""


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """The rows to export, by an expression of SQL and the licences of their sources (any without
    it), and their layout. `name` is of the set in the PassNet layout; `name`, `license_name` and
    the `sides` of rows, by full fingerprint, are for Hugging Face.
    """

    layout: Layout
    where: str | None = None
    source_licenses: tuple[str, ...] = ()
    name: str = "subgraphs"
    sides: Mapping[str, Side] = field(default_factory=dict)
    license_name: str = "mit"


@dataclass(frozen=True, slots=True)
class Exported:
    """The numbers of exported rows, of written directories or files, and of tasks."""

    num_rows: int
    num_written: int
    num_tasks: int = 0


def export_dataset(
    dataset: Dataset,
    out: Path,
    plan: ExportPlan,
    announce: Callable[[int], ProgressStep] = no_progress,
) -> Exported:
    """Write the rows of a dataset in another layout; `import_dataset` reads it back. `out` must be
    empty or absent; it is written whole or not at all. `announce` is called with the number of
    rows, and returns the step to call after each.

    Raises:
        InputError: the plan names no row; a row cannot be read, or is in no part of the split.
    """
    table = dataset.table(plan.where, licences=plan.source_licenses)
    if not len(table):
        condition = "" if plan.where is None else f" with {plan.where}"
        condition += f" under {', '.join(plan.source_licenses)}" if plan.source_licenses else ""
        raise InputError(f"{dataset.folder}: has no rows{condition}, nothing to export")
    step = announce(len(table))
    with atomic_folder(out) as partial:
        if plan.layout == "hf":
            num_files = _hugging_face(table, partial, plan, dataset.manifest.versions, step)
            return Exported(len(table), num_files)
        samples = _samples(table, dataset.folder, step)
        if plan.layout == "graphnet":
            return Exported(len(table), _graphnet(samples, partial))
        return Exported(len(table), *_passnet(samples, partial, plan.name))


def _samples(table: pa.Table, folder: Path, step: ProgressStep) -> RowSamples:
    origins = read_origins(folder, table["full"].to_pylist())
    for row in SUBGRAPHS.rows(table, str(folder)):
        sources = origins.get(row.full, ())
        yield (
            row,
            [(origin, sample_of_origin(origin, row)) for origin in sources]
            or [(None, folders.sample_of(row))],
        )
        step(row.full[:12])


def _graphnet(samples: RowSamples, out: Path) -> int:
    """Write GraphNet's layout; return the number of directories."""
    num_written = 0
    for row, directories in samples:
        for origin, sample in directories:
            own = PurePosixPath(folders.library_folder(row), folders.name_of(row))
            path = below(out, str(own)) if origin is None else out / folder_of(origin)
            write_sample(path, sample)
        num_written += len(directories)
    return num_written


def _passnet(samples: RowSamples, out: Path, name: str) -> tuple[int, int]:
    """Write PassNet's layout; return the numbers of directories and of tasks."""
    tasks: dict[tuple[str, tuple[str, ...]], dict[str, list[PurePosixPath]]] = {}
    num_written = 0
    for row, directories in samples:
        types = [folder for kind, folder in folders.TYPE_FOLDERS.items() if kind in row.kinds]
        for type_folder in types or [folders.NO_TYPE_FOLDER]:
            graphs = tasks.setdefault((type_folder, row.op_sequence), {})
            first = folders.passnet_folder(row, name, type_folder)
            for number, (_, sample) in enumerate(directories):
                path = first if not number else first.with_name(f"{first.name}_{number}")
                write_sample(below(out, str(path)), sample)
                graphs.setdefault(row.full, []).append(path)
            num_written += len(directories)
    for (type_folder, _), graphs in tasks.items():
        _write_task(out, PurePosixPath("samples", name, type_folder), graphs)
    return num_written, len(tasks)


def _write_task(out: Path, tasks: PurePosixPath, graphs: Mapping[str, list[PurePosixPath]]) -> None:
    """Write a task directory: a list of its graphs, a link to all graphs, a pass folder."""
    ids = sorted(graphs)
    name = hashlib.sha256("\n".join(ids).encode()).hexdigest()
    task = tasks / name[:2] / name[2:4] / name
    folder = below(out, str(task))
    (folder / "pass_dir").mkdir(parents=True)
    lines = [f"{path}\n" for graph_id in ids for path in graphs[graph_id]]
    (folder / "graph_list.txt").write_text("".join(lines))
    (folder / "sample_uids.txt").write_text(",".join(ids))
    (folder / "graphs").symlink_to(PurePosixPath(*[".."] * len(task.parts), "graphs"))


def _hugging_face(
    table: pa.Table,
    out: Path,
    plan: ExportPlan,
    versions: Mapping[str, list[str]],
    step: ProgressStep,
) -> int:
    """Write files for Hugging Face as columns, without decoding rows; return their number."""
    numbers: dict[Side, list[int]] = {}
    for number, full in enumerate(table["full"].to_pylist()):
        side = plan.sides.get(full) if plan.sides else "train"
        if side is None:
            raise InputError(f"row {full[:16]} is in no part of the split; split again")
        numbers.setdefault(side, []).append(number)
    num_bytes = pc.call_function("binary_length", [table["program"]]).to_pylist()
    num_files = 0
    (out / DATA_FOLDER).mkdir()
    for side in numbers:
        shards = list(split_rows(numbers[side], lambda number: num_bytes[number]))
        for number, shard in enumerate(shards):
            name = f"{side}-{number:05}-of-{len(shards):05}.parquet"
            SUBGRAPHS.write_table(out / DATA_FOLDER / name, table.take(shard))
            for _ in shard:
                step(name)
        num_files += len(shards)
    sequences = table["op_sequence"].iterchunks()
    facts = CardFacts(
        plan.name,
        {side: len(numbers[side]) for side in sorted(numbers, reverse=True)},
        _counts(chain.from_iterable(table["kinds"].to_pylist())),
        _counts(table["domain"].to_pylist()),
        _counts(table["dtype"].to_pylist()),
        len({tuple(ops) for chunk in sequences for ops in chunk.to_pylist()}),
        sum(table["num_places"].to_pylist()),
        versions,
        __version__,
        plan.license_name,
    )
    (out / CARD_FILE).write_text(card(facts), encoding="utf-8")
    return num_files


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
