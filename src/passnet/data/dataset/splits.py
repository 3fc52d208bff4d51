"""Splits of rows into training and evaluation, separated by op sequence, and leak checks."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

from passnet.core.records.parquet import Format, Shard, check_shards, write_shards
from passnet.core.records.serialise import SCHEMA_VERSION, make_folder, read_json, write_json
from passnet.errors import InputError

SPLIT_FILE = "split.json"
SHARD_NAME = "split"
MAX_NAMED = 10

Side: TypeAlias = Literal["train", "eval"]
SIDES: tuple[Side, ...] = ("train", "eval")

Ops: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowKeys:
    """The keys of a row for a split; `original` is the full fingerprint of a variant's original."""

    full: str
    structure: str
    ops: Ops
    original: str = ""


@dataclass(frozen=True, slots=True)
class SplitRow:
    """The side of one row, named by its full fingerprint."""

    full: str
    side: Side


SPLITS: Format[SplitRow] = Format(SplitRow, "a split", hashes=("full",))


@dataclass(frozen=True, slots=True)
class SplitManifest:
    """The settings and content of a split: a `share` of the op sequences, chosen by `seed`, and
    those of `suites` are evaluation. `near_sequences` counts evaluation sequences of two ops and
    more that are a contiguous part of a training sequence; this is no leak.
    """

    schema_version: int
    share: float
    seed: int
    suites: dict[str, str]
    rows: dict[str, int]
    sequences: dict[str, int]
    near_sequences: int
    shards: tuple[Shard, ...]


@dataclass(frozen=True, slots=True)
class Leak:
    """A training row with an op sequence, structure or original of evaluation's `other`, or a
    suite's.
    """

    row: str
    what: Literal["op sequence", "structure", "variant"]
    other: str


@dataclass(frozen=True, slots=True)
class SuiteKeys:
    """Content hashes of suites by name; their op sequences and structures, each with a suite."""

    hashes: dict[str, str]
    sequences: dict[Ops, str]
    structures: dict[str, str]


def side_of(ops: Ops, share: float, seed: int, evaluation: Collection[Ops] = ()) -> Side:
    """Return the side of an op sequence; it does not depend on other sequences. A `share` from 0 to
    1 of all sequences is evaluation, and those of `evaluation` in any case.

    Examples:
        >>> side_of(("torch.relu",), 0.0, 0), side_of(("torch.relu",), 1.0, 0)
        ('train', 'eval')
    """
    digest = hashlib.sha256("\n".join((str(seed), *ops)).encode()).digest()
    is_eval = ops in evaluation or int.from_bytes(digest[:8], "big") < share * 2**64
    return "eval" if is_eval else "train"


def leaks(rows: Iterable[RowKeys], sides: dict[str, Side], suites: SuiteKeys) -> list[Leak]:
    """Return the training rows that evaluation, or a suite, gives away, by their `sides`."""
    sequences = dict(suites.sequences)
    structures = dict(suites.structures)
    variants: dict[str, str] = {}
    train = []
    for row in rows:
        if row.full not in sides:
            raise InputError(f"row {row.full[:16]} is in no part of the split; split again")
        if sides[row.full] == "train":
            train.append(row)
        else:
            sequences.setdefault(row.ops, row.full)
            structures.setdefault(row.structure, row.full)
            variants.setdefault(row.original or row.full, row.full)
    leaking: dict[str, list[Leak]] = {"op sequence": [], "structure": [], "variant": []}
    for row in train:
        family = row.original or row.full
        if row.ops in sequences:
            leaking["op sequence"].append(Leak(row.full, "op sequence", sequences[row.ops]))
        elif row.structure in structures:
            leaking["structure"].append(Leak(row.full, "structure", structures[row.structure]))
        elif family in variants:
            leaking["variant"].append(Leak(row.full, "variant", variants[family]))
    return [*chain(*leaking.values())]


def check_leaks(rows: Iterable[RowKeys], sides: dict[str, Side], suites: SuiteKeys) -> None:
    """Raise an InputError that names the leaking rows, if there are any."""
    leaking = leaks(rows, sides, suites)
    if leaking:
        names = ", ".join(
            f"{leak.row[:16]} ({leak.what} of {leak.other[:16]})" for leak in leaking[:MAX_NAMED]
        )
        raise InputError(
            f"{len(leaking)} rows to train on leak from evaluation: {names}; split again with "
            "--suite for each suite"
        )


def num_near(train: Collection[Ops], evaluation: Collection[Ops]) -> int:
    """Count evaluation sequences of two ops and more that are a contiguous part of a training
    sequence.

    Examples:
        >>> num_near([("a", "b", "c")], [("b", "c"), ("a", "c"), ("c",)])
        1
    """
    names = sorted({op for ops in (*train, *evaluation) for op in ops})
    # A character an op, so that it is a search for a text in a text; surrogates are left out.
    letters = {name: chr(0xE000 + number) for number, name in enumerate(names)}
    text = "\n".join("".join(letters[op] for op in ops) for ops in train)
    return sum(len(ops) > 1 and "".join(letters[op] for op in ops) in text for ops in evaluation)


def split(
    rows: Sequence[RowKeys], share: float, seed: int, suites: SuiteKeys
) -> tuple[dict[str, Side], SplitManifest]:
    """Return a side for each row, checked for leaks, and the manifest without its files.

    Raises:
        InputError: there are no rows, the share is none, or the sides leak.
    """
    if not 0 <= share < 1:
        raise InputError(f"share {share}: give one from 0 to below 1")
    if not rows:
        raise InputError("there are no rows to split")
    sides = {row.full: side_of(row.ops, share, seed, suites.sequences) for row in rows}
    check_leaks(rows, sides, suites)
    sequences: dict[Side, set[Ops]] = {
        side: {row.ops for row in rows if sides[row.full] == side} for side in SIDES
    }
    sizes = Counter(sides.values())
    manifest = SplitManifest(
        SCHEMA_VERSION,
        share,
        seed,
        suites.hashes,
        {side: sizes[side] for side in SIDES},
        {side: len(sequences[side]) for side in SIDES},
        num_near(sequences["train"], sequences["eval"]),
        (),
    )
    return sides, manifest


def write_split(out: Path, sides: dict[str, Side], manifest: SplitManifest) -> SplitManifest:
    """Write a split to a folder, replacing an earlier one."""
    make_folder(out)
    rows = [SplitRow(full, sides[full]) for full in sorted(sides)]
    shards = write_shards(out, SHARD_NAME, rows, SPLITS, lambda row: len(row.full))
    manifest = replace(manifest, shards=shards)
    write_json(out / SPLIT_FILE, manifest)
    return manifest


def read_split(folder: Path) -> tuple[SplitManifest, dict[str, Side]]:
    """Read a split; raise InputError if there is none, or its files are others."""
    manifest = read_json(folder / SPLIT_FILE, SplitManifest)
    files = check_shards(folder, manifest.shards, SPLIT_FILE)
    return manifest, {row.full: row.side for file in files for row in SPLITS.read(file)}
