"""A release of the corpus as one Hugging Face repository: `python -m recipes.publication --help`.

Each part is a configuration that `datasets.load_dataset` reads by name: `graphs`, with the kinds of
captured graphs as splits; `subgraphs`; every suite under its own name; and `trajectories`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from passnet.core.records.folders import atomic_folder
from passnet.core.records.parquet import ROW_GROUP_ROWS, split_rows
from passnet.core.records.serialise import encode, read_lines, replace_file
from passnet.core.terminal.progress import ProgressStep, no_progress
from passnet.data.capture.store import GRAPH_KINDS, GRAPHS, GraphRow, read_set, text_bytes
from passnet.data.dataset.licences import LICENCES, UNKNOWN, licences_of
from passnet.data.dataset.query import Dataset
from passnet.data.dataset.splits import Side
from passnet.data.dataset.store import SUBGRAPHS
from passnet.errors import InputError
from passnet.judge.suite.shipped import shipped_suites
from passnet.judge.suite.suite import SUITES, load_suite
from recipes.publication.card import (
    CARD_FILE,
    CITATION_FILE,
    ConfigFacts,
    PublicationFacts,
    citation,
    publication_card,
)

TRAJECTORIES = "trajectories"
TEST = "test"

LIBRARIES = {"segmentation-models-pytorch": "smp", "open_clip_torch": "open_clip"}
"""Package -> the library of the catalog, where their names differ in more than a hyphen."""


def licence_of_package(package: str) -> str:
    """Return the licence of a package whose version decides a library's graphs."""
    if package == "torch":
        return "BSD-3-Clause"
    return LICENCES.get(LIBRARIES.get(package, package.replace("-", "_")), UNKNOWN)


@dataclass(frozen=True, slots=True)
class PublicationPlan:
    """The parts of a release, with its name and licence.

    Args:
        name: of the release on its card.
        version: of the release.
        graphs: folders of sets of captured graphs.
        subgraphs: the folder of a dataset of subgraphs.
        sides: its split of rows by their full fingerprint; all train without it.
        suites: names of suites that ship with passnet, or files of suites.
        trajectories: files of JSON lines that `passnet agent export` wrote.
        license_name: of the release, one that Hugging Face knows.
        url: where it is kept.
    """

    name: str
    version: str
    graphs: tuple[Path, ...] = ()
    subgraphs: Path | None = None
    sides: Mapping[str, Side] = field(default_factory=dict)
    suites: tuple[str, ...] = ()
    trajectories: tuple[Path, ...] = ()
    license_name: str = "mit"
    url: str | None = None


def publish(
    plan: PublicationPlan, out: Path, announce: Callable[[str, int], ProgressStep] = no_progress
) -> PublicationFacts:
    """Write a release into the folder `out`, which is there whole or not at all.

    Raises:
        InputError: the plan names nothing; a part of it cannot be read; or `out` is there already.
    """
    if not (plan.graphs or plan.subgraphs or plan.suites or plan.trajectories):
        raise InputError("nothing to publish: give --graphs, --dataset, --suite or --trajectories")
    versions: dict[str, set[str]] = {}
    configs: list[ConfigFacts] = []
    with atomic_folder(out) as partial:
        if plan.graphs:
            configs.append(_graphs(plan.graphs, partial, versions, announce))
        if plan.subgraphs is not None:
            configs.append(_subgraphs(plan.subgraphs, plan.sides, partial, versions, announce))
        configs += [_suite(name, partial) for name in plan.suites]
        if plan.trajectories:
            configs.append(_trajectories(plan.trajectories, partial))
        facts = PublicationFacts(
            plan.name,
            plan.version,
            plan.license_name,
            tuple(configs),
            {package: sorted(versions[package]) for package in sorted(versions)},
            {package: licence_of_package(package) for package in sorted(versions)},
            plan.url,
        )
        (partial / CARD_FILE).write_text(publication_card(facts), encoding="utf-8")
        (partial / CITATION_FILE).write_text(citation(facts), encoding="utf-8")
    return facts


def _graphs(
    folders: Sequence[Path],
    out: Path,
    versions: dict[str, set[str]],
    announce: Callable[[str, int], ProgressStep],
) -> ConfigFacts:
    """Write captured graphs, each kind a split."""
    rows: dict[str, GraphRow] = {}
    for folder in folders:
        manifest, files = read_set(folder)
        _add(versions, manifest.versions)
        rows |= {row.full: row for file in files for row in GRAPHS.read(file)}
    step = announce("writing graphs", len(rows))
    ordered = sorted(rows.values(), key=lambda row: (row.structure, row.full))
    by_kind = {kind: [row for row in ordered if row.kind == kind] for kind in GRAPH_KINDS}
    splits = {kind: group for kind, group in by_kind.items() if group}
    for kind, group in splits.items():
        shards = list(split_rows(group, text_bytes))
        for number, shard in enumerate(shards):
            path = _file(out, "graphs", kind, number, len(shards))
            nets = [[source.entry for source in row.sources] for row in shard]
            _write_with_licences(path, GRAPHS.table(shard), nets)
            for row in shard:
                step(row.full[:12])
    domains = Counter(row.domain for row in ordered)
    sizes: dict[str, int] = {kind: len(group) for kind, group in splits.items()}
    return ConfigFacts("graphs", sizes, dict(domains.most_common()), _with_licences(GRAPHS.schema))


def _subgraphs(
    folder: Path,
    sides: Mapping[str, Side],
    out: Path,
    versions: dict[str, set[str]],
    announce: Callable[[str, int], ProgressStep],
) -> ConfigFacts:
    """Write rows of a dataset, with its training and evaluation parts as splits."""
    with Dataset(folder) as dataset:
        table = dataset.table()
        _add(versions, dataset.manifest.versions)
    step = announce("writing subgraphs", len(table))
    numbers: dict[str, list[int]] = {}
    for number, full in enumerate(table["full"].to_pylist()):
        side = sides.get(full) if sides else "train"
        if side is None:
            raise InputError(f"row {full[:16]} is in no part of the split; split again")
        numbers.setdefault(side, []).append(number)
    lengths = [len(text) for text in table["program"].to_pylist()]
    for side, chosen in numbers.items():
        shards = list(split_rows(chosen, lambda number: lengths[number]))
        for count, shard in enumerate(shards):
            path = _file(out, "subgraphs", side, count, len(shards))
            taken = table.take(shard).cast(SUBGRAPHS.schema)
            _write_with_licences(path, taken, taken["nets"].to_pylist())
            for _ in shard:
                step(path.name)
    domains = Counter(table["domain"].to_pylist())
    sizes = {side: len(numbers[side]) for side in sorted(numbers, reverse=True)}
    schema = _with_licences(SUBGRAPHS.schema)
    return ConfigFacts("subgraphs", sizes, dict(domains.most_common()), schema)


def _write_with_licences(path: Path, table: pa.Table, nets: Sequence[Sequence[str]]) -> None:
    """Write a table with the licences of the libraries of each row, as a last column."""
    column = pa.array([licences_of(names) for names in nets], pa.list_(pa.string()))
    table = table.append_column("licences", column)
    pq.write_table(table, path, row_group_size=ROW_GROUP_ROWS, compression="zstd")


def _with_licences(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field("licences", pa.list_(pa.string())))


def _suite(where: str, out: Path) -> ConfigFacts:
    """Check a suite, and write it as it was."""
    suite = load_suite(where)
    path = shipped_suites().get(where, Path(where))
    target = _file(out, suite.name, TEST, 0, 1)
    replace_file(target, path.read_bytes())
    domains = Counter(graph.source.domain for graph in suite.graphs if graph.source)
    return ConfigFacts(
        suite.name, {TEST: len(suite.graphs)}, dict(domains.most_common()), SUITES.schema,
        num_tasks=len(suite.tasks),
    )  # fmt: skip


def _trajectories(files: Sequence[Path], out: Path) -> ConfigFacts:
    """Write exported attempts, a column for each key; values other than text and numbers are JSON.

    A repository of files of one format is read without naming it, and chats with any tool calls
    have no one type of column.
    """
    rows: list[dict[str, str | int | float | None]] = []
    for file in files:
        attempts = [*read_lines(file, dict[str, Any])]
        if not attempts:
            raise InputError(f"{file}: holds no attempt; write it with passnet agent export")
        rows += [{key: _cell(value) for key, value in each.items()} for each in attempts]
    names = dict.fromkeys(key for row in rows for key in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    pq.write_table(pa.table(columns), _file(out, TRAJECTORIES, "train", 0, 1), compression="zstd")
    return ConfigFacts(TRAJECTORIES, {"train": len(rows)}, {}, None)


def _cell(value: Any) -> str | int | float | None:
    is_plain = value is None or isinstance(value, (str, int, float))
    return value if is_plain else encode(value).decode()


def _file(out: Path, config: str, split: str, number: int, total: int) -> Path:
    (out / config).mkdir(exist_ok=True)
    return out / config / f"{split}-{number:05}-of-{total:05}.parquet"


def _add(versions: dict[str, set[str]], more: Mapping[str, Sequence[str]]) -> None:
    for package, numbers in more.items():
        versions.setdefault(package, set()).update(numbers)
