"""A dataset asked with expressions of SQL, by DuckDB, which reads no file but the dataset's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from passnet.dataset.store import MANIFEST_FILE, SUBGRAPHS, SubgraphRow, read_manifest
from passnet.errors import InputError

COLUMNS: tuple[str, ...] = tuple(SUBGRAPHS.schema.names)
BRIEF: tuple[str, ...] = ("full", "kinds", "num_ops", "dtype", "domain", "num_places", "nets")
"""Columns that tell most of what a row is without its text."""

BATCH_ROWS = 65_536
"""Rows in one piece of a table, whose text may have 2 GiB."""

_GLOB = frozenset("*?[")


class Dataset:
    """A dataset that is open for questions.

    The files are those that the manifest names, with as many rows as it says, and of this version;
    their checksums are not computed (see `verification.verify`).

    Raises:
        InputError: it holds no dataset, or a file is missing, damaged or of another version.

    Examples:
        with Dataset(Path("subgraphs")) as dataset:
            dataset.count("domain = 'nlp' and 'fusible' in kinds")
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder)
        files = [folder / shard.file for shard in self.manifest.shards]
        for file, shard in zip(files, self.manifest.shards, strict=True):
            if not file.is_file():
                raise InputError(f"{file}: missing, though {MANIFEST_FILE} names it")
            num_rows = SUBGRAPHS.check(file)
            if num_rows != shard.num_rows:
                raise InputError(
                    f"{file}: {num_rows} rows, and not the {shard.num_rows} that {MANIFEST_FILE} "
                    "says; make the dataset again"
                )
        self._connection = _connect([str(file.resolve()) for file in files])

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def count(self, where: str | None = None) -> int:
        """The number of rows for which an expression is true."""
        with self._errors(where):
            return self._relation(where).aggregate("count(*)").fetchall()[0][0]

    def table(
        self, where: str | None = None, columns: Sequence[str] = COLUMNS, limit: int | None = None
    ) -> pa.Table:
        """Rows in the order of the dataset, as a table; those for which an expression of SQL over
        the columns is true, or the first of these.

        Raises:
            InputError: the expression is none, asks for other files, or names no column; or a
                column is none.
        """
        unknown = [name for name in columns if name not in COLUMNS]
        if unknown:
            raise InputError(f"no column {unknown[0]!r}; there are {', '.join(COLUMNS)}")
        with self._errors(where):
            rows = self._relation(where).project(", ".join(f'"{name}"' for name in columns))
            return (rows if limit is None else rows.limit(limit)).to_arrow_table(BATCH_ROWS)

    def rows(self, where: str | None = None, limit: int | None = None) -> Iterator[SubgraphRow]:
        """Rows as records, in the order of the dataset; see `table`."""
        return SUBGRAPHS.rows(self.table(where, limit=limit), str(self.folder))

    def run_sql(self, sql: str) -> list[tuple]:
        """The rows that a query of our own over `subgraphs` gives; not for text of a user."""
        with self._errors(None):
            return self._connection.execute(sql).fetchall()

    def _relation(self, where: str | None) -> duckdb.DuckDBPyRelation:
        whole = self._connection.table("subgraphs")
        return whole if where is None else whole.filter(where)

    @contextmanager
    def _errors(self, where: str | None) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as cause:
            text = " ".join(str(cause).split("\n\nLINE")[0].split())
            if where is None:
                raise InputError(f"{self.folder}: cannot be read: {text}") from cause
            names = ", ".join(f'"{name}"' if name == "full" else name for name in COLUMNS)
            raise InputError(
                f"{self.folder}: filter {where!r}: {text}; columns are {names}"
            ) from cause


def _connect(files: list[str]) -> duckdb.DuckDBPyConnection:
    """A database in memory with the rows of files as `subgraphs`, and no way to anything else."""
    odd = [file for file in files if _GLOB & {*file}]
    if odd:
        raise InputError(f"{odd[0]}: a path with *, ? or [ cannot be queried; move the dataset")
    names = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    connection = duckdb.connect()
    for setting in (
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "temp_directory = ''",
        f"allowed_paths = [{names}]",
        "enable_external_access = false",
    ):
        connection.execute(f"SET {setting}")
    connection.execute(f"CREATE VIEW subgraphs AS FROM read_parquet([{names}])")
    connection.execute("SET lock_configuration = true")
    return connection
