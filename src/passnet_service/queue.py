"""The queue of submissions on disk: a killed service loses nothing and judges nothing twice."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from passnet.core.records.serialise import decode, encode
from passnet.errors import InputError
from passnet.train.service.submission import Judged, JudgeReport, QueueCounts
from passnet_service.jobs import JudgeJob

QUEUE_FILE = "queue.sqlite"

PRIVATE = 0o600
"""Mode of the files of a service: only its owner reads them."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS submissions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE NOT NULL,
    state TEXT NOT NULL,
    item BLOB,
    judged BLOB,
    judge TEXT,
    num_losses INTEGER NOT NULL DEFAULT 0,
    put_at REAL NOT NULL,
    began_at REAL,
    ended_at REAL
);
CREATE INDEX IF NOT EXISTS by_state ON submissions (state, number);
CREATE TABLE IF NOT EXISTS answers (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL);
"""


class QueueFullError(Exception):
    """Too many submissions wait."""


class UnavailableError(Exception):
    """The service cannot do its work for now, as on a full disk; the text says why."""


class SubmissionQueue:
    """Submissions in their order of arrival, in a file; used from one thread at a time.

    A method's effect is on disk when it returns. Submissions that were with a judge when a service
    ended wait again when the next one opens the queue.
    """

    def __init__(self, folder: Path, max_waiting: int) -> None:
        self.max_waiting = max_waiting
        self._path = folder / QUEUE_FILE
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, PRIVATE))
            self._path.chmod(PRIVATE)  # SQLite gives its other files the same mode
            self._rows = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"):
                self._rows.execute(statement)
            self._rows.executescript(_SCHEMA)
            self._rows.execute("UPDATE submissions SET state='waiting' WHERE state='judging'")
        except (sqlite3.Error, OSError) as cause:
            raise InputError(f"{self._path}: {cause}; choose another --out") from cause

    def close(self) -> None:
        """Close the file."""
        self._rows.close()

    def put(self, submission: str, job: JudgeJob) -> JudgeReport:
        """Return the state of a submission, which starts to wait if it is new or not final.

        Raises:
            QueueFullError: too many wait.
        """
        report = self.report(submission)
        if report is not None and (report.judged is None or report.judged.is_final):
            return replace(report, is_cached=report.judged is not None)
        if self.counts().waiting >= self.max_waiting:
            raise QueueFullError
        self._execute(
            "INSERT INTO submissions (id, state, item, put_at) VALUES (?, 'waiting', ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET state='waiting', item=excluded.item, judged=NULL,"
            " num_losses=0, put_at=excluded.put_at, began_at=NULL, ended_at=NULL",
            (submission, encode(job), time.time()),
        )
        return JudgeReport(submission, "waiting")

    def take(self, judge: str) -> tuple[str, bytes] | None:
        """Return id and job (JSON) of the submission that has waited longest; None without any."""
        rows = self._execute(
            "UPDATE submissions SET state='judging', judge=?, began_at=? WHERE number="
            " (SELECT number FROM submissions WHERE state='waiting' ORDER BY put_at, number"
            " LIMIT 1) RETURNING id, item",
            (judge, time.time()),
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def lose(self, submission: str) -> int:
        """Put a submission whose judge was lost first in line; return the judges it has cost."""
        [(num_losses,)] = self._execute(
            "UPDATE submissions SET state='waiting', num_losses=num_losses+1 WHERE id=?"
            " RETURNING num_losses",
            (submission,),
        )
        return num_losses

    def finish(self, submission: str, judged: Judged) -> None:
        """Record the result of a submission; its files stay on record only if it cheats."""
        job = "item" if judged.has_cheat else "NULL"
        self._execute(
            f"UPDATE submissions SET state='done', judged=?, item={job}, ended_at=?"
            " WHERE id=? AND state!='done'",
            (encode(judged), time.time(), submission),
        )

    def report(self, submission: str) -> JudgeReport | None:
        """Return the state of a submission; None where there is none of this id."""
        rows = self._execute(
            "SELECT state, judged, num_losses, put_at, began_at, ended_at, judge FROM submissions"
            " WHERE id=?",
            (submission,),
        )
        if not rows:
            return None
        state, judged, num_losses, put_at, began_at, ended_at, judge = rows[0]
        return JudgeReport(
            id=submission,
            state=state,
            judged=None if judged is None else decode(judged, Judged),
            num_losses=num_losses,
            waited_s=None if began_at is None else max(began_at - put_at, 0.0),
            judged_s=None if ended_at is None else max(ended_at - began_at, 0.0),
            judge=judge,
        )

    def counts(self) -> QueueCounts:
        """Count the submissions in each state."""
        by_state = dict(self._execute("SELECT state, COUNT(*) FROM submissions GROUP BY state"))
        return QueueCounts(*(by_state.get(state, 0) for state in ("waiting", "judging", "done")))

    def count_answer(self, answer: str) -> int:
        """Count an answer that asks for its reward, once; return the number of those before it."""
        self._execute("INSERT OR IGNORE INTO answers (id) VALUES (?)", (answer,))
        [(number,)] = self._execute("SELECT number FROM answers WHERE id=?", (answer,))
        return number - 1

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; raise UnavailableError if the disk does not take it."""
        try:
            return self._rows.execute(statement, values).fetchall()
        except sqlite3.OperationalError as cause:
            raise UnavailableError(f"{self._path}: {cause}; make room on its disk") from cause
