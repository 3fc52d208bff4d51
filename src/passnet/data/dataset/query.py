"""SQL queries over a dataset's files by DuckDB, each in its own process, with limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from passnet.core.jobs.process import RECORD_FILE, ROWS_FILE, Job, JobLimits, JobResult, JobRunner
from passnet.core.records.parquet import shard_path
from passnet.core.records.serialise import decode, encode, write_json
from passnet.data.dataset.licences import licence_column, under
from passnet.data.dataset.store import MANIFEST_FILE, SUBGRAPHS, SubgraphRow, read_manifest
from passnet.errors import InputError, naming, no_such

COLUMNS: tuple[str, ...] = tuple(SUBGRAPHS.schema.names)
QUERIED: tuple[str, ...] = (*COLUMNS, "licences")
"""The columns of the files, and one made of `nets`."""
BRIEF: tuple[str, ...] = ("full", "kinds", "num_ops", "dtype", "domain", "num_places", "nets")

BATCH_ROWS = 65_536
"""Rows in one batch of a table, whose text may have 2 GiB."""

QUESTION_LIMITS = JobLimits(120.0, 8192)
"""Limits of a query; filters of 300,000 rows are answered in a second."""

DUCKDB_SHARE = 0.75
"""The share of a query's memory for DuckDB; the rest is for the answer as a table."""

_GLOB = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Question:
    """A query for rows where all of `filters` are true, or for their number; or our own `sql`."""

    files: tuple[str, ...]
    memory_mib: int
    filters: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    limit: int | None = None
    sql: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """DuckDB's error text for a query, None where it was answered."""

    error: str | None
    lacks_memory: bool = False


class Dataset:
    """A dataset that is open for queries, each bounded by `limits`. Files must be as stated by the
    manifest, with as many rows and of this version; their checksums are not computed (see
    `verification.verify`).

    Raises:
        InputError: it holds no dataset, or a file is missing, damaged or of another version.

    Examples:
        with Dataset(Path("subgraphs")) as dataset:
            dataset.count("domain = 'nlp' and 'fusible' in kinds")
    """

    def __init__(self, folder: Path, limits: JobLimits = QUESTION_LIMITS) -> None:
        self.folder = folder
        self.limits = limits
        self.manifest = read_manifest(folder)
        files = [shard_path(folder, shard, MANIFEST_FILE) for shard in self.manifest.shards]
        for file, shard in zip(files, self.manifest.shards, strict=True):
            num_rows = SUBGRAPHS.check(file)
            if num_rows != shard.num_rows:
                raise InputError(
                    f"{file}: {num_rows} rows, and not the {shard.num_rows} that {MANIFEST_FILE} "
                    "says; make the dataset again"
                )
        self._files = tuple(str(file.resolve()) for file in files)
        odd = [file for file in self._files if _GLOB & {*file}]
        if odd:
            raise InputError(f"{odd[0]}: a path with *, ? or [ cannot be queried; move the dataset")
        self._runner = JobRunner()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def count(self, where: str | None = None, licences: Sequence[str] = ()) -> int:
        """Count the rows for which an expression is true; see `table`."""
        return self._ask(where, licences).column(0).to_pylist()[0]

    def table(
        self,
        where: str | None = None,
        columns: Sequence[str] = COLUMNS,
        limit: int | None = None,
        licences: Sequence[str] = (),
    ) -> pa.Table:
        """Return rows in the order of the dataset, as a table.

        Args:
            where: an expression of SQL that is true for the rows; all rows without it.
            columns: their names.
            limit: the most rows.
            licences: the only licences that nets of the rows may be under; any without it.

        Raises:
            InputError: `where` is no expression, a column is unknown, or the answer takes more than
                the limits.
        """
        unknown = [name for name in columns if name not in QUERIED]
        if unknown:
            raise InputError(no_such("column", unknown[0], QUERIED))
        return self._ask(where, licences, columns=tuple(columns), limit=limit)

    def rows(
        self, where: str | None = None, limit: int | None = None, licences: Sequence[str] = ()
    ) -> Iterator[SubgraphRow]:
        """Yield rows as records, in the order of the dataset; see `table`."""
        table = self.table(where, limit=limit, licences=licences)
        return SUBGRAPHS.rows(table, str(self.folder))

    def run_sql(self, sql: str) -> list[tuple]:
        """Run a query of our own over `subgraphs`; not for text of a user."""
        columns = [column.to_pylist() for column in self._ask(sql=sql).columns]
        return list(zip(*columns, strict=True))

    def _ask(
        self, where: str | None = None, licences: Sequence[str] = (), **details: Any
    ) -> pa.Table:
        filters = ((under(licences),) if licences else ()) + (() if where is None else (where,))
        question = Question(self._files, self.limits.memory_mib, filters, **details)
        module = "passnet.data.dataset.query"
        payload = encode(question).decode()
        result = self._runner.run(
            Job(f"{module}:answer_to", payload, self.limits, f"{module}:ready")
        )
        outcome = result.outcome(Answer)
        if outcome is not None and outcome.rows is not None:
            return pq.read_table(BytesIO(outcome.rows))
        subject = "cannot be read" if where is None else f"filter {where!r}"
        answer = None if outcome is None else outcome.record
        if answer is None or answer.lacks_memory:
            raise InputError(f"{self.folder}: {subject}: {_unanswered(result)}")
        names = ", ".join(f'"{name}"' if name == "full" else name for name in QUERIED)
        hint = "" if where is None else f"; columns are {names}"
        raise InputError(f"{self.folder}: {subject}: {answer.error}{hint}")


def _unanswered(result: JobResult) -> str:
    limits = result.job.limits
    if result.end.timed_out:
        return f"not answered in {limits.seconds:g} s; ask for less, or allow more (--timeout)"
    if not (result.is_done or result.end.signal or "memory" in result.log.lower()):
        return f"not answered: {result.failure.splitlines()[-1]}"
    return f"takes more than {limits.memory_mib} MiB; ask for less, or allow more (--memory)"


def ready(_: str) -> None:
    """Import the modules of an answer, as importing this module does."""


def answer_to(payload: str, folder: Path) -> None:
    """Answer in the process, and write answer and table to a folder."""
    question = decode(payload, Question)
    try:
        table = _answer(_connect(question), question)
        with naming(folder / ROWS_FILE):
            pq.write_table(table, folder / ROWS_FILE)
        answer = Answer(None)
    except (MemoryError, duckdb.OutOfMemoryException):
        answer = Answer("out of memory", lacks_memory=True)
    except duckdb.Error as cause:
        answer = Answer(" ".join(str(cause).split("\n\nLINE")[0].split()))
    write_json(folder / RECORD_FILE, answer)


def _answer(connection: duckdb.DuckDBPyConnection, question: Question) -> pa.Table:
    if question.sql is not None:
        return connection.execute(question.sql).to_arrow_table(BATCH_ROWS)
    rows = connection.table("subgraphs")
    for condition in question.filters:  # each is parsed alone, so that none changes another
        rows = rows.filter(condition)
    if question.columns is None:
        return rows.aggregate("count(*)").to_arrow_table(BATCH_ROWS)
    rows = rows.project(", ".join(f'"{name}"' for name in question.columns))
    return (rows if question.limit is None else rows.limit(question.limit)).to_arrow_table(
        BATCH_ROWS
    )


def _connect(question: Question) -> duckdb.DuckDBPyConnection:
    """Open a database in memory that sees only the files, as `subgraphs`."""
    names = ", ".join("'" + file.replace("'", "''") + "'" for file in question.files)
    connection = duckdb.connect()
    for setting in (
        f"memory_limit = '{int(DUCKDB_SHARE * question.memory_mib)}MiB'",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "temp_directory = ''",
        f"allowed_paths = [{names}]",
        "enable_external_access = false",
    ):
        connection.execute(f"SET {setting}")
    columns = f"SELECT *, {licence_column()} AS licences"
    connection.execute(f"CREATE VIEW subgraphs AS {columns} FROM read_parquet([{names}])")
    connection.execute("SET lock_configuration = true")
    return connection
