"""Graph directories, or an exported dataset, to a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from passnet.dataset.layout import FACTS_KEY, row_of
from passnet.dataset.origins import Origin, origin_of, shortened, write_origins
from passnet.dataset.store import (
    MAX_PLACES,
    SUBGRAPHS,
    DatasetManifest,
    Occurrence,
    SubgraphRow,
    write_dataset,
)
from passnet.errors import InputError
from passnet.graph.files import find_graphs, read_sample
from passnet.graph.targets import check_targets
from passnet.records.atomic_folder import atomic_folder

DATA_FOLDER = "data"
"""Of an exported dataset: its Parquet files."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A directory that could not be read, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of an import: how many directories were read, what was left out, the dataset."""

    num_read: int
    left_out: tuple[LeftOut, ...]
    dataset: DatasetManifest


def import_dataset(
    folder: Path,
    out: Path,
    strict: bool = False,
    announce: Callable[[int], Callable[[str], None]] | None = None,
) -> Imported:
    """Make a dataset of the graph directories at and below a folder, or of an exported dataset.

    Directories of one graph (same ops, literals, shapes and dtypes) become one row.

    Args:
        folder: with directories of the GraphNet or PassNet layout, or with `data/*.parquet`.
        out: the folder of the dataset; must be empty or absent.
        strict: stop at a directory that cannot be read; else it is left out.
        announce: told how many directories or files there are; what it gives is called after each.

    Raises:
        InputError: there is no graph, none can be read, or one cannot and `strict` is on.
    """
    files = sorted((folder / DATA_FOLDER).glob("*.parquet"))
    with atomic_folder(out) as partial:
        if files:
            return _from_files(files, partial, announce)
        found = _Found()
        paths = list(find_graphs(folder))
        if not paths:
            raise InputError(f"{folder}: holds no graph (a folder with graph_net.json, model.py)")
        step = announce(len(paths)) if announce else None
        for path in paths:
            try:
                found.add(path, folder)
            except InputError as cause:
                if strict:
                    raise
                found.left_out.append(LeftOut(str(path.relative_to(folder)), str(cause)))
            if step is not None:
                step(path.name[:40])
        if not found.rows:
            first = found.left_out[0].reason
            raise InputError(f"{folder}: holds no graph that can be read; {first}")
        rows = {full: _merged(items) for full, items in found.rows.items()}
        if found.origins:
            origins = [shortened(item, rows[item.full]) for item in found.origins]
            write_origins(partial, sorted(origins, key=lambda item: (item.full, item.path)))
        manifest = write_dataset(partial, sorted(rows.values(), key=_order), {})
        return Imported(len(paths) - len(found.left_out), tuple(found.left_out), manifest)


class _Found:
    """What was read so far."""

    def __init__(self) -> None:
        self.rows: dict[str, list[SubgraphRow]] = {}
        self.origins: list[Origin] = []
        self.left_out: list[LeftOut] = []

    def add(self, path: Path, root: Path) -> None:
        """Read a directory.

        Raises:
            InputError: it cannot be read, or calls what no graph may call.
        """
        sample = read_sample(path)
        check_targets(sample.graph.program, str(path / "model.py"))
        place = PurePosixPath(*path.relative_to(root).parts)
        place = place if place.parts else PurePosixPath(path.resolve().name)
        row = row_of(sample, place)
        self.rows.setdefault(row.full, []).append(row)
        if FACTS_KEY not in sample.info:
            self.origins.append(origin_of(sample, place, row))


def _from_files(
    files: list[Path], out: Path, announce: Callable[[int], Callable[[str], None]] | None
) -> Imported:
    step = announce(len(files)) if announce else None
    rows: dict[str, SubgraphRow] = {}
    num_read = 0
    for file in files:
        for row in SUBGRAPHS.read(file):
            rows[row.full] = row
            num_read += 1
        if step is not None:
            step(file.name)
    if len(rows) != num_read:
        raise InputError(f"{files[0].parent}: {num_read - len(rows)} rows stand there twice")
    return Imported(num_read, (), write_dataset(out, sorted(rows.values(), key=_order), {}))


def _merged(rows: list[SubgraphRow]) -> SubgraphRow:
    """One row of the directories of one graph; text and arguments are those of the first.

    Raises:
        InputError: they state what cannot be true of one row.
    """
    if any(item.num_places != len(item.places) or item.variant for item in rows):
        facts = {replace(item, program="", tensors="") for item in rows}
        if len(facts) > 1:
            raise InputError(f"directories of graph {rows[0].full[:16]} state different places")
        return rows[0]
    named = min(rows, key=lambda item: item.nets)
    places: set[Occurrence] = {place for item in rows for place in item.places}
    ordered = sorted(places, key=lambda item: (item.graph, item.start, item.stop))
    return replace(
        rows[0],
        kinds=tuple(sorted({kind for item in rows for kind in item.kinds})),
        domain=named.domain,
        nets=tuple(sorted({net for item in rows for net in item.nets})[:MAX_PLACES]),
        num_graphs=len({item.graph for item in ordered}),
        num_places=len(ordered),
        places=tuple(ordered[:MAX_PLACES]),
    )


def _order(row: SubgraphRow) -> tuple[str, str]:
    return row.structure, row.full
