"""Import of graph directories, or of an exported dataset."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from passnet.core.records.folders import atomic_folder
from passnet.core.terminal.progress import ProgressStep, no_progress
from passnet.core.terminal.visible_text import visible
from passnet.data.dataset.licences import named_nets
from passnet.data.dataset.store import (
    MAX_PLACES,
    SUBGRAPHS,
    DatasetManifest,
    SubgraphRow,
    write_dataset,
)
from passnet.errors import InputError, boundary
from passnet.graph.fx.targets import check_targets
from passnet.graph.text.files import find_graphs, read_sample
from passnet_exchange.folders import FACTS_KEY, row_of
from passnet_exchange.origins import ORIGINS, Origin, origin_of, shortened, write_origins

DATA_FOLDER = "data"
"""The folder of Parquet files of an exported dataset."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A directory that could not be read, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: directories read, directories left out, the dataset."""

    num_read: int
    left_out: tuple[LeftOut, ...]
    dataset: DatasetManifest


def import_dataset(
    folder: Path,
    out: Path,
    strict: bool = False,
    announce: Callable[[int], ProgressStep] = no_progress,
) -> Imported:
    """Make a dataset of all graph directories below a folder, or of an exported dataset.

    Args:
        folder: with directories of the GraphNet or PassNet layout, or with `data/*.parquet`.
        out: the folder of the dataset; must be empty or absent.
        strict: stop at a directory that cannot be read; else it is left out.
        announce: called with the number of directories or files; returns the step after each.

    Raises:
        InputError: there is no graph, none can be read, or one cannot and `strict` is on.
    """
    files = sorted((folder / DATA_FOLDER).glob("*.parquet"))
    with atomic_folder(out) as partial:
        if files:
            return _import_files(files, partial, announce(len(files)))
        paths = list(find_graphs(folder))
        if not paths:
            raise InputError(f"{folder}: holds no graph (a folder with graph_net.json, model.py)")
        return _import_directories(folder, paths, partial, strict, announce(len(paths)))


def _import_directories(
    folder: Path, paths: list[Path], out: Path, strict: bool, step: ProgressStep
) -> Imported:
    same: dict[str, list[SubgraphRow]] = defaultdict(list)
    origins: list[Origin] = []
    left_out: list[LeftOut] = []
    for path in paths:
        try:
            row, origin = _read(path, folder)
            _check_joins(row, same.get(row.full, []))
            same[row.full].append(row)
            origins += [origin] if origin is not None else []
        except InputError as cause:
            if strict:
                raise
            left_out.append(LeftOut(visible(str(path.relative_to(folder))), str(cause)))
        step(path.name[:40])
    if not same:
        raise InputError(f"{folder}: holds no graph that can be read; {left_out[0].reason}")
    rows = {full: _merged(group) for full, group in same.items()}
    if origins:
        origins = [shortened(origin, rows[origin.full]) for origin in origins]
        write_origins(out, sorted(origins, key=lambda origin: (origin.full, origin.path)))
    manifest = write_dataset(out, rows.values(), {})
    return Imported(len(paths) - len(left_out), tuple(left_out), manifest)


def _read(path: Path, root: Path) -> tuple[SubgraphRow, Origin | None]:
    """Return the row of a directory, and its origin if another program wrote it.

    Both can be stored; what cannot is an InputError.
    """
    sample = read_sample(path)
    check_targets(sample.graph.program, str(path / "model.py"))
    relative = PurePosixPath(*path.relative_to(root).parts)
    relative = relative if relative.parts else PurePosixPath(path.resolve().name)
    with boundary(InputError, f"{visible(str(relative))}: cannot be stored"):
        row = row_of(sample, relative)
        origin = None if FACTS_KEY in sample.info else origin_of(sample, relative, row)
        SUBGRAPHS.table([row])
        ORIGINS.table([] if origin is None else [origin])
    for place in row.places:
        if place.start >= place.stop:
            raise InputError(f"{relative}: ops [{place.start}, {place.stop}) are none")
    return row, origin


def _import_files(files: list[Path], out: Path, step: ProgressStep) -> Imported:
    rows: dict[str, SubgraphRow] = {}
    num_read = 0
    for file in files:
        for row in SUBGRAPHS.read(file):
            rows[row.full] = row
            num_read += 1
        step(file.name)
    if len(rows) != num_read:
        raise InputError(f"{files[0].parent}: {num_read - len(rows)} rows stand there twice")
    return Imported(num_read, (), write_dataset(out, rows.values(), {}))


def _check_joins(row: SubgraphRow, others: list[SubgraphRow]) -> None:
    """Raise InputError if a row cannot be merged with the others of its graph."""
    if others and not (_lists_all(row) and _lists_all(others[0])):
        first, second = (replace(each, program="", tensors="") for each in (others[0], row))
        if first != second:
            raise InputError(f"another directory of graph {row.full[:16]} states different places")


def _lists_all(row: SubgraphRow) -> bool:
    """Return whether a captured row lists all its places, so that they can be counted anew."""
    return row.num_places == len(row.places) and not row.variant


def _merged(rows: list[SubgraphRow]) -> SubgraphRow:
    """Merge rows of one graph; text and arguments are the first row's."""
    if not _lists_all(rows[0]):
        return rows[0]
    occurrences = sorted({occurrence for row in rows for occurrence in row.places})
    return replace(
        rows[0],
        kinds=tuple(sorted({kind for row in rows for kind in row.kinds})),
        domain=min(rows, key=lambda row: row.nets).domain,
        nets=named_nets(net for row in rows for net in row.nets),
        num_graphs=len({occurrence.graph for occurrence in occurrences}),
        num_places=len(occurrences),
        places=tuple(occurrences[:MAX_PLACES]),
    )
