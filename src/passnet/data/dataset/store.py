"""A dataset of subgraphs on disk: Parquet files with one row for equal graphs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, TypeAlias

from msgspec import Meta

from passnet.core.records.parquet import Format, Shard, check_shards, write_shards
from passnet.core.records.serialise import SCHEMA_VERSION, encode, read_json, write_json
from passnet.data.capture.record import Domain
from passnet.data.dataset.licences import named_nets
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.spec import Graph, TensorSpec, main_float
from passnet.graph.text.files import graph_from_row
from passnet.graph.text.render import render_program

MANIFEST_FILE = "dataset.json"
SHARD_NAME = "subgraphs"
MAX_PLACES = 8
"""The most places that a row names; it counts them all."""

StoredInt: TypeAlias = Annotated[int, Meta(ge=0, le=2**62)]
"""A number of ops, graphs or places; a column of a file holds up to 64 bits."""


@dataclass(frozen=True, slots=True, order=True)
class Occurrence:
    """The ops [start, stop) of a captured graph, named by its full fingerprint."""

    graph: str
    start: StoredInt
    stop: StoredInt


@dataclass(frozen=True, slots=True)
class Provenance:
    """The columns of a row besides its graph; see `SubgraphRow`."""

    kinds: tuple[str, ...]
    variant: str
    original: str
    domain: Domain
    nets: tuple[str, ...]
    num_graphs: StoredInt
    num_places: StoredInt
    places: tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True)
class SubgraphRow:
    """One subgraph: fingerprints, text, arguments (JSON), ops, and its origin.

    `dtype` is that of most float elements of its arguments, or "none". `variant` is the dtype of a
    converted subgraph ("float16"), or the sizes of its net's axes ("batch=4,sequence=16"),
    `original` its captured row's full fingerprint; both are empty for captured rows. `places` are
    the first few of `num_places` in `num_graphs` captured graphs; `nets` are the `named_nets` of
    their entries; `domain` is the first's.
    """

    full: str
    literals: str
    structure: str
    kinds: tuple[str, ...]
    program: str
    tensors: str
    op_sequence: tuple[str, ...]
    num_ops: int
    dtype: str
    variant: str
    original: str
    domain: Domain
    nets: tuple[str, ...]
    num_graphs: int
    num_places: int
    places: tuple[Occurrence, ...]


SUBGRAPHS: Format[SubgraphRow] = Format(
    SubgraphRow, "subgraphs", hashes=("full", "literals", "structure")
)


def row_of_graph(graph: Graph, provenance: Provenance, where: str) -> SubgraphRow:
    """Return the row of a graph."""
    prints = fingerprints(graph)
    if prints.full is None:
        raise InputError(f"{where}: its arguments have no shapes and dtypes")
    ops = op_sequence(graph.program)
    try:
        tensors = encode(graph.tensors).decode()
    except ValueError as cause:
        raise InputError(f"{where}: cannot be stored: {cause}") from cause
    return SubgraphRow(
        full=prints.full,
        literals=prints.literals,
        structure=prints.structure,
        program=render_program(graph.program),
        tensors=tensors,
        op_sequence=ops,
        num_ops=len(ops),
        dtype=main_dtype(graph.tensors),
        **{field.name: getattr(provenance, field.name) for field in fields(provenance)},
    )


def graph_of(row: SubgraphRow) -> Graph:
    """Return the graph of a row; raise InputError if its text or arguments are wrong."""
    return graph_from_row(row.program, row.tensors, row.full[:16])


@dataclass(frozen=True, slots=True)
class DatasetManifest:
    """The content of a dataset; equal datasets have equal manifests."""

    schema_version: int
    num_subgraphs: int
    num_structures: int
    num_op_sequences: int
    num_places: int
    kinds: dict[str, int]
    domains: dict[str, int]
    versions: dict[str, list[str]]
    shards: tuple[Shard, ...]


def main_dtype(tensors: Iterable[TensorSpec]) -> str:
    """Return the floating-point dtype of most elements of some arguments; "none" without any.

    Examples:
        >>> main_dtype([TensorSpec("x", (2,), "bfloat16"), TensorSpec("i", (2,), "int64")])
        'bfloat16'
    """
    return main_float(tensors) or "none"


class RowCounts:
    """Totals of rows for a manifest; `names` counts full fingerprints."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self._structures: set[str] = set()
        self._sequences: set[tuple[str, ...]] = set()
        self._num_places = 0
        self._kinds: Counter[str] = Counter()
        self._domains: Counter[str] = Counter()

    def add(self, row: SubgraphRow) -> None:
        """Count one more row."""
        self.names[row.full] += 1
        self._structures.add(row.structure)
        self._sequences.add(row.op_sequence)
        self._num_places += row.num_places
        self._kinds.update(row.kinds)
        self._domains[row.domain] += 1

    def manifest(
        self, versions: Mapping[str, Iterable[str]], shards: tuple[Shard, ...]
    ) -> DatasetManifest:
        """Return the manifest of these rows in some files."""
        return DatasetManifest(
            SCHEMA_VERSION,
            self.names.total(),
            len(self._structures),
            len(self._sequences),
            self._num_places,
            dict(sorted(self._kinds.items())),
            dict(sorted(self._domains.items())),
            {package: sorted(numbers) for package, numbers in sorted(versions.items())},
            shards,
        )


def merge_subgraphs(
    paths: Iterable[Path], out: Path, versions: Mapping[str, Iterable[str]]
) -> DatasetManifest:
    """Write one dataset with each subgraph of some files once; equal places count once.

    The rows of the files name all their places.
    """
    merged: dict[str, SubgraphRow] = {}
    varied: Ranges = defaultdict(set)
    for path in sorted(paths):
        for row in SUBGRAPHS.read(path):
            if row.variant:  # a net at two sizes may have it at the same place
                row = _at_new_places(row, varied)
            row = replace(row, places=row.places[:MAX_PLACES])
            merged[row.full] = union(merged[row.full], row) if row.full in merged else row
    return write_dataset(out, merged.values(), versions)


Ranges: TypeAlias = dict[tuple[str, str], set[tuple[int, int]]]
"""The places of a row in a captured graph, by the full fingerprints of both."""


def _at_new_places(row: SubgraphRow, known: Ranges) -> SubgraphRow:
    """Return a row without the known places, and add its others to them."""
    graphs = {place.graph for place in row.places if (row.full, place.graph) not in known}
    new = tuple(
        place
        for place in row.places
        if (place.start, place.stop) not in known[row.full, place.graph]
    )
    for place in new:
        known[row.full, place.graph].add((place.start, place.stop))
    return replace(row, num_graphs=len(graphs), num_places=len(new), places=new)


def union(first: SubgraphRow, second: SubgraphRow) -> SubgraphRow:
    """Merge two rows of one subgraph: captured before variants, then by the name of the variant."""
    if bool(first.variant) != bool(second.variant):
        return second if first.variant else first
    nets = named_nets((*first.nets, *second.nets))
    variant, original = min((row.variant, row.original) for row in (first, second))
    return replace(
        first if nets and nets[0] in first.nets else second,
        variant=variant,
        original=original,
        kinds=tuple(sorted({*first.kinds, *second.kinds})),
        nets=nets,
        num_graphs=first.num_graphs + second.num_graphs,
        num_places=first.num_places + second.num_places,
        places=tuple(sorted(first.places + second.places)[:MAX_PLACES]),
    )


def write_dataset(
    out: Path, rows: Iterable[SubgraphRow], versions: Mapping[str, Iterable[str]]
) -> DatasetManifest:
    """Write rows, sorted by structure, as shards with a manifest; existing ones are replaced."""
    rows = sorted(rows, key=lambda row: (row.structure, row.full))
    counts = RowCounts()
    for row in rows:
        counts.add(row)
    shards = write_shards(out, SHARD_NAME, rows, SUBGRAPHS, lambda row: len(row.program))
    manifest = counts.manifest(versions, shards)
    write_json(out / MANIFEST_FILE, manifest)
    return manifest


@dataclass(frozen=True, slots=True)
class _Version:
    schema_version: int


def read_manifest(folder: Path) -> DatasetManifest:
    """Read the manifest of a dataset; raise InputError without one of this version."""
    path = folder / MANIFEST_FILE
    if folder.is_dir() and not path.exists():
        raise InputError(
            f"{folder}: no finished dataset; passnet dataset build makes one, and with --resume "
            "goes on with one that it began"
        )
    version = read_json(path, _Version).schema_version
    if version != SCHEMA_VERSION:
        raise InputError(
            f"{path}: schema version {version}, this passnet reads {SCHEMA_VERSION}; "
            "make the dataset again or install the matching passnet"
        )
    return read_json(path, DatasetManifest)


def read_dataset(folder: Path) -> tuple[DatasetManifest, list[Path]]:
    """Read the manifest of a dataset, and check its files; raise InputError if one is another."""
    manifest = read_manifest(folder)
    return manifest, check_shards(folder, manifest.shards, MANIFEST_FILE)


@dataclass(slots=True)
class MinedSubgraph:
    """A subgraph with the kinds of its ranges in the graph, and its original if a variant."""

    graph: Graph
    ranges: dict[tuple[int, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    original: str = ""


Mined: TypeAlias = dict[str, MinedSubgraph]
"""The subgraphs of one graph by full fingerprint."""


def mined_as(graph: Graph, mined: Mined) -> MinedSubgraph:
    """Return the entry of a subgraph in `mined`; a new one where there is none."""
    full = fingerprints(graph).full
    assert full is not None, "a cut graph has specs"
    return mined.setdefault(full, MinedSubgraph(graph))


def mined_rows(
    mined: Mined, variant: str, captured: str, domain: Domain, nets: Iterable[str]
) -> list[SubgraphRow]:
    """Return the rows of a captured graph's subgraphs, named by `captured` and `variant`."""
    names = named_nets(nets)
    rows = []
    for full, subgraph in sorted(mined.items()):
        places = tuple(Occurrence(captured, *ops) for ops in sorted(subgraph.ranges))
        kinds = {kind for kinds in subgraph.ranges.values() for kind in kinds}
        provenance = Provenance(
            tuple(sorted(kinds)), variant, subgraph.original, domain, names, 1, len(places), places
        )
        rows.append(row_of_graph(subgraph.graph, provenance, full[:16]))
    return rows
