"""Totals of a dataset: rows by kind, ops, sizes and places."""

from collections import Counter
from dataclasses import dataclass

from passnet.data.dataset import build_records
from passnet.data.dataset.build_records import MinedCounts, SizedCounts
from passnet.data.dataset.query import Dataset
from passnet.errors import InputError

_OPS = """
    SELECT op, sum(calls)::BIGINT AS calls, count(*) AS rows FROM (
        SELECT op, count(*) AS calls
        FROM (SELECT "full", unnest(op_sequence) AS op FROM subgraphs) GROUP BY "full", op)
    GROUP BY op ORDER BY calls DESC, op LIMIT 40"""
_LIBRARIES = """
    SELECT split_part(net, '/', 1) AS library, count(DISTINCT "full"), count(DISTINCT net)
    FROM (SELECT "full", unnest(nets) AS net FROM subgraphs)
    GROUP BY library ORDER BY count(DISTINCT "full") DESC, library"""


@dataclass(frozen=True, slots=True)
class OpCount:
    """The number of calls of an op, and of rows that call it."""

    op: str
    calls: int
    rows: int


@dataclass(frozen=True, slots=True)
class LibraryCount:
    """The numbers of rows from a library's nets, and of these nets."""

    library: str
    rows: int
    nets: int


@dataclass(frozen=True, slots=True)
class Stats:
    """Totals of a dataset. A row with several kinds is counted in each. `variants` counts rows by
    dtype or sizes, "" for those captured. `sizes` and `multiplicity` count rows by their number of
    ops and of places, from the first of these numbers to the second. `mined` is None for a dataset
    that was not mined in its folder, `sized` for one made there without other sizes.
    """

    num_rows: int
    num_literals: int
    num_structures: int
    num_op_sequences: int
    num_ops: int
    num_distinct_ops: int
    num_places: int
    num_repeated: int
    kinds: dict[str, int]
    domains: dict[str, int]
    dtypes: dict[str, int]
    variants: dict[str, int]
    ops: tuple[OpCount, ...]
    sizes: tuple[tuple[int, int, int], ...]
    multiplicity: tuple[tuple[int, int, int], ...]
    libraries: tuple[LibraryCount, ...]
    mined: MinedCounts | None
    sized: SizedCounts | None


def stats(dataset: Dataset) -> Stats:
    """Compute the totals of a dataset; raise InputError if it has no rows."""
    [(num_rows, *counts)] = dataset.run_sql(
        "SELECT count(*), count(DISTINCT literals), count(DISTINCT structure),"
        " count(DISTINCT op_sequence), sum(num_ops)::BIGINT,"
        " (SELECT count(DISTINCT op) FROM (SELECT unnest(op_sequence) AS op FROM subgraphs)),"
        " sum(num_places)::BIGINT, count(*) FILTER (num_places > 1) FROM subgraphs"
    )
    if not num_rows:
        raise InputError(f"{dataset.folder}: the dataset has no rows")
    return Stats(
        num_rows,
        *counts,
        kinds=_counts(dataset, "unnest(kinds)"),
        domains=_counts(dataset, "domain"),
        dtypes=_counts(dataset, "dtype"),
        variants=_counts(dataset, "variant"),
        ops=tuple(OpCount(*row) for row in dataset.run_sql(_OPS)),
        sizes=_by_powers_of_two(dataset, "num_ops"),
        multiplicity=_by_powers_of_two(dataset, "num_places"),
        libraries=tuple(LibraryCount(*row) for row in dataset.run_sql(_LIBRARIES)),
        mined=build_records.count_mined(build_records.read_mined_records(dataset.folder).values()),
        sized=build_records.count_sized(build_records.read_sized_records(dataset.folder).values()),
    )


def _counts(dataset: Dataset, value: str) -> dict[str, int]:
    """Count rows by a value, the most frequent first."""
    return dict(
        dataset.run_sql(
            f"SELECT value, count(*) FROM (SELECT {value} AS value FROM subgraphs)"
            " GROUP BY value ORDER BY count(*) DESC, value"
        )
    )


def _by_powers_of_two(dataset: Dataset, column: str) -> tuple[tuple[int, int, int], ...]:
    """Count rows by a number: 0, 1, 2 to 3, 4 to 7, and so on."""
    counts: Counter[int] = Counter()
    for number, count in dataset.run_sql(f"SELECT {column}, count(*) FROM subgraphs GROUP BY 1"):
        counts[number.bit_length()] += count
    return tuple(
        (2**bits // 2, 2**bits - 1, counts[bits]) for bits in range(min(counts), max(counts) + 1)
    )
