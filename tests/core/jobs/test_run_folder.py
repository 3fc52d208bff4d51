"""A run goes on where it stopped, and only as the run that it was."""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from passnet.agent.run import agent_folder
from passnet.bench.profiling.run import profile_folder
from passnet.bench.run_record import run_folder as bench_run
from passnet.core.jobs.process import JobOutcome
from passnet.core.jobs.run_folder import COMMANDS, RunFolder, unchanged, used_runs
from passnet.core.records.serialise import pack_lines
from passnet.errors import InputError, WorkerError
from passnet_loops.data.build import data_run
from passnet_loops.data.judge_rows import judging_run
from passnet_loops.data.own_answers import answer_run
from passnet_loops.evaluate import evaluation_run
from tests.faults import limited_files


@dataclass(frozen=True)
class Info:
    seed: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    name: str
    status: str = "captured"


SAME = unchanged("was begun with another seed; choose another --out")


def folder_of(path: Path) -> RunFolder[Info, Record, str]:
    return RunFolder(
        path, "run.json", Info, "records.jsonl", Record, lambda record: record.name, "nets"
    )


def begin(
    run: RunFolder[Info, Record, str],
    info: Info,
    resume: bool,
    continued: Callable[[Info, Info], Info] = SAME,
) -> None:
    """Begin a run in which nothing happens."""
    with run.begin(info, resume, continued):
        pass


def test_a_run_is_begun_once_and_resumed_as_it_was(tmp_path: Path) -> None:
    run = folder_of(tmp_path / "run")
    begin(run, Info(1), False)
    assert run.read_info() == Info(1)
    with pytest.raises(InputError, match="already holds nets; add --resume"):
        begin(run, Info(1), False)
    begin(run, Info(1), True)
    with pytest.raises(InputError, match="another seed"):
        begin(run, Info(2), True)


def test_what_may_differ_is_written_down(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    begin(run, Info(1, ("a",)), False)
    begin(run, Info(1, ("b",)), True, lambda old, new: Info(old.seed, old.names + new.names))
    assert run.read_info() == Info(1, ("a", "b"))


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("file", COMMANDS)
def test_a_folder_with_a_run_of_another_kind_is_refused(
    file: str, resume: bool, tmp_path: Path
) -> None:
    (tmp_path / file).touch()
    (tmp_path / "run.json").write_text("{}")
    kind = f"holds {file} of `passnet {COMMANDS[file]}`, a run of another kind; choose another"
    with pytest.raises(InputError, match=kind):
        begin(folder_of(tmp_path), Info(1), resume)
    assert not folder_of(tmp_path).records_path.exists()


@pytest.mark.parametrize(
    "run_of",
    [bench_run, agent_folder, profile_folder, judging_run, answer_run, data_run, evaluation_run],
)
def test_every_kind_of_run_has_its_command(run_of: Callable[[Path], Any], tmp_path: Path) -> None:
    assert run_of(tmp_path).records_path.name in COMMANDS


def test_records_without_settings_are_no_run(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text('{"name": "a"}\n')
    with pytest.raises(InputError, match=r"holds records.jsonl but no run.json"):
        begin(folder_of(tmp_path), Info(1), True)


def test_outcomes_are_stored_as_they_come_and_the_last_of_an_item_counts(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    outcomes = [
        JobOutcome(Record("a"), b"rows of a"),
        JobOutcome(Record("b", "failed")),
        JobOutcome(Record("a", "failed")),
    ]
    kept = run.keep(iter(outcomes), 0, lambda record: tmp_path / "rows" / record.name)
    assert next(kept) == Record("a")
    assert (tmp_path / "rows" / "a").read_bytes() == b"rows of a"
    assert run.records() == {"a": Record("a")}
    assert len(list(kept)) == 2
    assert run.records() == {"a": Record("a", "failed"), "b": Record("b", "failed")}


def test_a_torn_line_is_left_out_and_cut_off(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    list(run.keep([JobOutcome(Record("a"))], 0))
    with run.records_path.open("ab") as stream:
        stream.write(b'{"name": "to')
    assert list(run.records()) == ["a"]
    list(run.keep([JobOutcome(Record("b"))], 1))
    assert list(run.records()) == ["a", "b"]


def test_a_process_knows_its_runs_and_what_they_hold(tmp_path: Path) -> None:
    begun, stored, read = (folder_of(tmp_path / name) for name in ("begun", "stored", "read"))
    begin(begun, Info(1), False)
    stored.out.mkdir()
    assert begun.held() is None and stored.held() is None
    list(stored.keep([JobOutcome(Record("a"))], 0))
    assert stored.held() == "1 net"
    list(stored.keep([JobOutcome(Record("b"))], 1))
    assert stored.held() == "2 nets"
    assert begun in used_runs() and stored in used_runs() and read not in used_runs()


def test_stale_records_are_forgotten(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    run.forget(lambda record: True)  # nothing is there yet
    list(run.keep([JobOutcome(Record("a")), JobOutcome(Record("b", "failed"))], 0))
    run.forget(lambda record: record.status == "failed")
    assert list(run.records()) == ["a"]


def test_a_folder_that_cannot_be_written_says_what_is_safe(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    list(run.keep([JobOutcome(Record("a"))], 0))

    def outcomes(cause: Exception):  # type: ignore[no-untyped-def]
        yield JobOutcome(Record("b"))
        raise cause

    for cause, kind, text in (
        (OSError(errno.ENOSPC, ""), InputError, "No space left on device; make room"),
        (WorkerError("its helper was killed"), WorkerError, "its helper was killed"),
    ):
        with pytest.raises(kind, match=f"^{text}.*; 2 nets are safe in .*--resume$"):
            list(run.keep(outcomes(cause), 1))


def test_a_record_that_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    list(run.keep([JobOutcome(Record("a"))], 0))
    room = run.records_path.stat().st_size + 10
    with limited_files(room), pytest.raises(InputError, match=r"records.jsonl: File too large"):
        list(run.keep([JobOutcome(Record("b"))], 1))
    assert list(run.records()) == ["a"] and run.records_path.read_bytes().endswith(b"\n")


def test_a_packed_run_is_as_good_as_another(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    begin(run, Info(1), False)
    list(run.keep([JobOutcome(Record("a")), JobOutcome(Record("b", "failed"))], 0))
    pack_lines(run.records_path)
    assert run.held() == "2 nets"
    run.forget(lambda record: record.status == "failed")
    assert list(run.records()) == ["a"] and run.held() == "1 net"
    pack_lines(run.records_path)
    (tmp_path / run.info_file).unlink()
    with pytest.raises(InputError, match=r"holds records.jsonl but no run.json"):
        begin(run, Info(1), False)
