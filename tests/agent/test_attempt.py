"""Attempts are read back as they were written, and faults of a file are named."""

from pathlib import Path

import pytest

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Attempt, read_attempts
from passnet.core.records.serialise import LineWriter
from passnet.errors import InputError
from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import Finding
from tests.agent.attempts import ATTEMPT, attempt, evaluation


def write(folder: Path, *attempts: Attempt) -> Path:
    with LineWriter(folder / ATTEMPTS_FILE) as writer:
        for attempt in attempts:
            writer.write(attempt)
    return folder


def test_attempts_of_folders_and_files_come_back_as_they_were(tmp_path: Path) -> None:
    cheat = Trial("relu", "relu-0", "passes", "cheat", findings=(Finding("reject", "x", "y"),))
    first = write(tmp_path / "one", ATTEMPT, attempt(number=1, judged=(cheat,)))
    second = write(tmp_path / "two", attempt(best=None, score=None, final_score=None))
    attempts = read_attempts([first, second / ATTEMPTS_FILE, first])
    assert attempts == [
        ATTEMPT,
        attempt(number=1, judged=(cheat,)),
        attempt(best=None, score=None, final_score=None),
    ]


def test_an_attempt_that_a_run_took_over_from_its_part_counts_once(tmp_path: Path) -> None:
    part = write(tmp_path / "part", ATTEMPT)
    whole = write(tmp_path / "whole", attempt(number=1), ATTEMPT)
    assert read_attempts([part, whole]) == [ATTEMPT, attempt(number=1)]
    again = write(tmp_path / "again", attempt(seed=7))
    assert len(read_attempts([part, again])) == 2, "another run of the same author"


def test_of_an_attempt_made_again_the_last_record_counts(tmp_path: Path) -> None:
    failed = attempt(ending="error", error="no answer")
    assert read_attempts([write(tmp_path, failed, ATTEMPT)]) == [ATTEMPT]


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    file = write(tmp_path, ATTEMPT, attempt(number=1)) / ATTEMPTS_FILE
    file.write_bytes(file.read_bytes()[:-20])
    assert read_attempts([file]) == [ATTEMPT]


def test_an_invalid_line_is_named(tmp_path: Path) -> None:
    file = write(tmp_path, ATTEMPT) / ATTEMPTS_FILE
    file.write_bytes(file.read_bytes() + b'{"task": 1}\n')
    with pytest.raises(InputError, match=r"attempts\.jsonl:2: not a valid Attempt"):
        read_attempts([file])


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has version 99"):
        read_attempts([write(tmp_path, attempt(schema_version=99))])


@pytest.mark.parametrize("name", ["absent", "."])
def test_a_place_without_attempts_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no such file|holds no attempts"):
        read_attempts([tmp_path / name])


def test_a_file_without_a_whole_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / ATTEMPTS_FILE).write_text("{")
    with pytest.raises(InputError, match="holds no attempt"):
        read_attempts([tmp_path])


def test_exploits_are_those_of_every_turn_and_of_the_end() -> None:
    flagged = Finding("flag", "odd", "")
    trial = Trial("relu", "r", "p", "cheat", findings=(Finding("reject", "late", ""), flagged))
    turns = (evaluation(1, None, findings=("early",)), evaluation(2, 1.5))
    assert attempt(evaluations=turns, judged=(trial,)).exploits == ("early", "late")
