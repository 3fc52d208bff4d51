"""The directories of imported rows, with all that rows do not hold, so that an export restores
them.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from passnet.core.records.parquet import Format, Shard, check_shards, write_shards
from passnet.core.records.serialise import SCHEMA_VERSION, read_json, write_json
from passnet.data.dataset.store import SubgraphRow, graph_of
from passnet.errors import InputError
from passnet.graph.text.files import GraphSample

ORIGINS_FILE = "origins.json"
SHARD_NAME = "origins"


@dataclass(frozen=True, slots=True)
class Origin:
    """A directory that a row was read from. `path` is relative to the imported folder. `info` to
    `sources` are the content of its files, "" for an absent one. `program` and `tensors` are empty
    where they equal the row's.
    """

    full: str
    path: str
    info: str
    constraints: str
    graph_hash: str
    sources: str
    program: str
    tensors: str


ORIGINS: Format[Origin] = Format(Origin, "origins of rows", hashes=("full",))


@dataclass(frozen=True, slots=True)
class OriginsManifest:
    """The files of origins."""

    schema_version: int
    num_origins: int
    shards: tuple[Shard, ...]


def origin_of(sample: GraphSample, path: PurePosixPath, row: SubgraphRow) -> Origin:
    """Return the origin of the row of one directory."""
    return Origin(
        row.full,
        str(path),
        json.dumps(sample.info),
        sample.constraints,
        sample.graph_hash or "",
        "" if sample.sources is None else json.dumps(sample.sources),
        row.program,
        row.tensors,
    )


def shortened(origin: Origin, row: SubgraphRow) -> Origin:
    """Return the origin without fields equal to its row's."""
    return replace(
        origin,
        program="" if origin.program == row.program else origin.program,
        tensors="" if origin.tensors == row.tensors else origin.tensors,
    )


def sample_of_origin(origin: Origin, row: SubgraphRow) -> GraphSample:
    """Return the content of an origin's directory."""
    program, tensors = origin.program or row.program, origin.tensors or row.tensors
    return GraphSample(
        graph_of(replace(row, program=program, tensors=tensors)),
        _object(origin.info, origin),
        origin.constraints,
        origin.graph_hash or None,
        _object(origin.sources, origin) if origin.sources else None,
    )


def _object(text: str, origin: Origin) -> dict:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise InputError(f"origin {origin.path}: not JSON: {cause}") from cause
    if not isinstance(value, dict):
        raise InputError(f"origin {origin.path}: expected a JSON object")
    return value


def folder_of(origin: Origin) -> PurePosixPath:
    """Return the path of an origin, checked to stay within the output folder."""
    path = PurePosixPath(origin.path)
    if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in origin.path:
        raise InputError(f"origin {origin.path!r}: not a path within a folder")
    return path


def write_origins(out: Path, origins: Sequence[Origin]) -> None:
    """Write origins next to the dataset in a folder."""
    shards = write_shards(
        out, SHARD_NAME, origins, ORIGINS, lambda row: len(row.program) + len(row.tensors)
    )
    write_json(out / ORIGINS_FILE, OriginsManifest(SCHEMA_VERSION, len(origins), shards))


def read_origins(folder: Path, names: Iterable[str]) -> dict[str, list[Origin]]:
    """Read the origins of rows by their full fingerprints; empty where a dataset has none."""
    if not (folder / ORIGINS_FILE).exists():
        return {}
    manifest = read_json(folder / ORIGINS_FILE, OriginsManifest)
    rows = {*names}
    origins: dict[str, list[Origin]] = {}
    for file in check_shards(folder, manifest.shards, ORIGINS_FILE):
        for origin in ORIGINS.read(file):
            if origin.full in rows:
                origins.setdefault(origin.full, []).append(origin)
    return origins
