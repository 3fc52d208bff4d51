"""Rows to train on and rows to evaluate on, apart by op sequence; and the check that they are."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from passnet.errors import InputError
from passnet.records.parquet import Format, Shard, check_shards, write_shards
from passnet.records.serialise import SCHEMA_VERSION, make_folder, read_json, write_json

SPLIT_FILE = "split.json"
SHARD_NAME = "split"
MAX_NAMED = 10
"""Rows that an error names."""

Side: TypeAlias = Literal["train", "eval"]
SIDES: tuple[Side, ...] = ("train", "eval")

Ops: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowKeys:
    """What of a row a split looks at."""

    full: str
    structure: str
    ops: Ops


@dataclass(frozen=True, slots=True)
class SplitRow:
    """The side of one row, named by its full fingerprint."""

    full: str
    side: Side


SPLITS: Format[SplitRow] = Format(SplitRow, "a split", hashes=("full",))


@dataclass(frozen=True, slots=True)
class SplitManifest:
    """How a split was made, and what it has: `share` of the op sequences are evaluation, chosen by
    `seed`, besides those of `suites`. `near_sequences` counts evaluation sequences of two ops and
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
    """A row to train on that shares its op sequence or its structure with evaluation.

    `other` is the first such row of evaluation, or the name of a suite.
    """

    row: str
    what: Literal["op sequence", "structure"]
    other: str


@dataclass(frozen=True, slots=True)
class SuiteKeys:
    """The op sequences and structures of suites, each with the name of one that has it, and the
    content hash of every suite by its name.
    """

    hashes: dict[str, str]
    sequences: dict[Ops, str]
    structures: dict[str, str]


def side_of(ops: Ops, share: float, seed: int, kept: Collection[Ops] = ()) -> Side:
    """The side of an op sequence; the same for the same sequence, whatever else there is.

    Args:
        ops: the sequence.
        share: of all sequences that are evaluation, from 0 to 1.
        seed: other seeds choose others.
        kept: sequences that are evaluation in any case.

    Examples:
        >>> side_of(("torch.relu",), 0.0, 0), side_of(("torch.relu",), 1.0, 0)
        ('train', 'eval')
    """
    digest = hashlib.sha256("\n".join((str(seed), *ops)).encode()).digest()
    chosen = int.from_bytes(digest[:8], "big") < share * 2**64
    return "eval" if chosen or ops in kept else "train"


def leaks(parts: Iterable[RowKeys], sides: dict[str, Side], suites: SuiteKeys) -> list[Leak]:
    """The rows to train on that evaluation, or a suite, gives away.

    Args:
        parts: all rows.
        sides: of each row, by its full fingerprint.
        suites: to keep apart from training as well.

    Raises:
        InputError: a row has no side.
    """
    sequences = dict(suites.sequences)
    structures = dict(suites.structures)
    train = []
    for part in parts:
        if part.full not in sides:
            raise InputError(f"row {part.full[:16]} is in no part of the split; split again")
        if sides[part.full] == "train":
            train.append(part)
        else:
            sequences.setdefault(part.ops, part.full)
            structures.setdefault(part.structure, part.full)
    found = [Leak(item.full, "op sequence", sequences[item.ops]) for item in train
             if item.ops in sequences]  # fmt: skip
    return found + [
        Leak(item.full, "structure", structures[item.structure])
        for item in train
        if item.structure in structures and item.ops not in sequences
    ]


def check_leaks(parts: Iterable[RowKeys], sides: dict[str, Side], suites: SuiteKeys) -> None:
    """Raise an InputError that names the rows if training and evaluation are not apart."""
    found = leaks(parts, sides, suites)
    if found:
        rows = ", ".join(
            f"{item.row[:16]} ({item.what} of {item.other[:16]})" for item in found[:MAX_NAMED]
        )
        raise InputError(
            f"{len(found)} rows to train on leak from evaluation: {rows}; split again with "
            "--suite for each suite"
        )


def num_near(train: Collection[Ops], evaluation: Collection[Ops]) -> int:
    """How many sequences of evaluation, of two ops and more, are a contiguous part of a training
    sequence.

    Examples:
        >>> num_near([("a", "b", "c")], [("b", "c"), ("a", "c"), ("c",)])
        1
    """
    names = sorted({op for ops in (*train, *evaluation) for op in ops})
    # A character an op, so that it is a search for a text in a text; surrogates are left out.
    letters = {name: chr(0xE000 + number) for number, name in enumerate(names)}
    whole = "\n".join("".join(letters[op] for op in ops) for ops in train)
    return sum(len(ops) > 1 and "".join(letters[op] for op in ops) in whole for ops in evaluation)


def split(
    parts: Sequence[RowKeys], share: float, seed: int, suites: SuiteKeys
) -> tuple[dict[str, Side], SplitManifest]:
    """A side for each row, checked for leaks, and the manifest without its files.

    Args:
        parts: the rows.
        share: of op sequences that are evaluation, besides those of suites.
        seed: other seeds choose others.
        suites: whose op sequences are evaluation.

    Raises:
        InputError: there are no rows, the share is none, or the sides leak.
    """
    if not 0 <= share < 1:
        raise InputError(f"share {share}: give one from 0 to below 1")
    if not parts:
        raise InputError("there are no rows to split")
    sides = {item.full: side_of(item.ops, share, seed, suites.sequences) for item in parts}
    check_leaks(parts, sides, suites)
    sequences: dict[Side, set[Ops]] = {
        side: {item.ops for item in parts if sides[item.full] == side} for side in SIDES
    }
    manifest = SplitManifest(
        SCHEMA_VERSION,
        share,
        seed,
        suites.hashes,
        {side: sum(found == side for found in sides.values()) for side in SIDES},
        {side: len(sequences[side]) for side in SIDES},
        num_near(sequences["train"], sequences["eval"]),
        (),
    )
    return sides, manifest


def write_split(out: Path, sides: dict[str, Side], manifest: SplitManifest) -> SplitManifest:
    """Write a split to a folder; one that is there is replaced."""
    make_folder(out)
    rows = [SplitRow(full, sides[full]) for full in sorted(sides)]
    shards = write_shards(out, SHARD_NAME, rows, SPLITS, lambda row: len(row.full))
    written = replace(manifest, shards=shards)
    write_json(out / SPLIT_FILE, written)
    return written


def read_split(folder: Path) -> tuple[SplitManifest, dict[str, Side]]:
    """A split that was written.

    Raises:
        InputError: there is none, or its files are not those described.
    """
    manifest = read_json(folder / SPLIT_FILE, SplitManifest)
    files = check_shards(folder, manifest.shards, SPLIT_FILE)
    return manifest, {row.full: row.side for file in files for row in SPLITS.read(file)}
