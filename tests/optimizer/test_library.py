"""The library of passes: what is kept, what counts, and that nothing of it is lost."""

import logging
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from passnet.core.hardware import this_hardware
from passnet.errors import InputError
from passnet.optimizer.choose.judging import trial_status
from passnet.passes.library.entries import (
    ENTRIES,
    PassEntry,
    all_entries,
    winning,
    winning_folders,
)
from passnet.passes.library.store import PassLibrary, PassOutcome, entry_range
from tests.optimizer.libraries import GUARD, HERE, folder, outcome, tanh_mul, trial


@pytest.fixture
def library(tmp_path: Path) -> PassLibrary:
    return PassLibrary(tmp_path / "library")


def add(library: PassLibrary, result: str = "a.tanh() * b", **fields: object) -> PassEntry:
    return library.add(tanh_mul(), "compiler", HERE, folder(result), outcome(**fields))


def test_the_pass_that_saves_most_is_found(library: PassLibrary) -> None:
    assert library.entries() == []
    add(library)
    best = add(library, "torch.tanh(a) * b", speedup_low=2.5)
    add(library, "b * a.tanh()", speedup_low=0.99)
    [found] = winning(library.entries(), HERE)
    assert found == best and found.saved_ms == pytest.approx(0.6)
    assert library.files(found) == folder("torch.tanh(a) * b")
    assert found.forms == ("float32[4, 8]",) * 2 and found.ops == ("torch.tanh", "operator.mul")
    assert entry_range(found).graph == tanh_mul().graph
    assert found.range == tanh_mul().fingerprint != tanh_mul((4, 9)).fingerprint
    assert not winning(library.entries(), replace(HERE, num_threads=2))
    assert not winning(library.entries(), replace(HERE, torch="2.14"))


def test_a_machine_that_was_slow_makes_no_pass_better(library: PassLibrary) -> None:
    best = add(library, speedup_low=1.9)
    busy = add(library, "torch.tanh(a) * b", speedup_low=1.5, reference_ms=3.0)
    assert busy.saved_ms > best.saved_ms and winning(library.entries(), HERE) == [best]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "wins"),
        ({"speedup_low": 1.0}, "slower"),
        ({"smallest_t": -4}, "wrong"),
        ({"smallest_t": None}, "wrong"),
        ({"status": "crash"}, "failed"),
        ({"status": "cheat"}, "failed"),
        ({"status": "unstable"}, None),
    ],
)
def test_only_what_is_right_and_surely_faster_wins(fields: dict, status: str | None) -> None:
    assert trial_status(trial(**fields)) == status


def test_what_does_not_win_is_kept_but_never_found(library: PassLibrary) -> None:
    add(library, smallest_t=None)
    add(library, "a.tanh()", status="crash", error="it ended")
    library.add(tanh_mul(), "compiler", HERE, {}, PassOutcome("nothing", "it can write nothing"))
    assert sorted(entry.status for entry in library.entries()) == ["failed", "nothing", "wrong"]
    assert not winning(library.entries(), HERE)
    with pytest.raises(InputError, match="too busy"):
        add(library, status="unstable")


def test_the_last_judging_counts(library: PassLibrary) -> None:
    first = add(library)
    add(library, speedup_low=0.5)
    assert not winning(library.entries(), HERE) and len(library.entries()) == 1
    last = add(library, speedup_low=1.5)
    assert library.entries() == [last] and len(all_entries(library.folder)) == 3
    library.drop_earlier()
    assert all_entries(library.folder) == [last] and first.digest != last.digest


def test_what_was_changed_is_refused(
    library: PassLibrary, caplog: pytest.LogCaptureFixture
) -> None:
    entry = add(library)
    path = library.folder / ENTRIES / entry.digest
    (path / "folder" / "Fuse.py").write_text("import os")
    with pytest.raises(InputError, match="not what was judged; remove it by `passnet library"):
        library.files(entry)
    record = path / "record.json"
    record.write_text(record.read_text().replace('"speedup_low": 1.9', '"speedup_low": 9.9'))
    assert library.entries() == []
    assert "record.json: entry" in caplog.text and "so it is left out" in caplog.text


def test_writers_side_by_side_lose_nothing(library: PassLibrary) -> None:
    def write(number: int) -> PassEntry:
        return add(library, f"a.tanh() * b * {number % 12}.0", speedup_low=1.5)

    with ThreadPoolExecutor(4) as threads:
        added = list(threads.map(write, range(16)))
    assert {entry.digest for entry in all_entries(library.folder)} == {
        entry.digest for entry in added
    }
    assert not list((library.folder / ENTRIES).glob(".partial*"))


def test_what_a_killed_writer_left_is_no_entry_and_goes_after_a_while(library: PassLibrary) -> None:
    entry = add(library)
    left = library.folder / ENTRIES / ".partial-abc"
    shutil.copytree(library.folder / ENTRIES / entry.digest, left)
    add(library, speedup_low=1.5)
    assert len(all_entries(library.folder)) == 2 and left.exists()
    os.utime(left, (time.time() - 1e5,) * 2)
    add(library, speedup_low=1.4)
    assert not left.exists()


def test_merged_passes_are_not_used_before_they_are_judged_here(
    library: PassLibrary, tmp_path: Path
) -> None:
    other = PassLibrary(tmp_path / "other")
    add(other)
    other.add(tanh_mul(), "compiler", HERE, {}, PassOutcome("nothing", "it can write nothing"))
    assert library.merge(other.folder) == 1 and library.merge(other.folder) == 0
    [entry] = library.entries()
    assert entry.origin == "elsewhere" and entry.status == "wins"
    assert not winning(library.entries(), HERE) and not winning_folders(library.folder, HERE)
    judged = library.add(tanh_mul(), entry.author, HERE, library.files(entry), outcome())
    assert winning(library.entries(), HERE) == [judged]
    assert library.merge(other.folder) == 0 and winning(library.entries(), HERE) == [judged]
    with pytest.raises(InputError, match="no library of passes"):
        library.merge(tmp_path / "nothing")


def test_what_was_judged_here_counts_more_than_what_others_judged_later(
    library: PassLibrary, tmp_path: Path
) -> None:
    judged = add(library)
    other = PassLibrary(tmp_path / "other")
    add(other, speedup_low=0.5)
    assert library.merge(other.folder) == 1
    assert winning(library.entries(), HERE) == [judged]


def test_libraries_are_merged_side_by_side(library: PassLibrary, tmp_path: Path) -> None:
    other = PassLibrary(tmp_path / "other")
    for number in range(6):
        add(other, f"a.tanh() * b * {number}.0")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(library.merge, [other.folder] * 4))
    assert len(all_entries(library.folder)) == 6


def test_exported_passes_are_the_same_and_removed_ones_are_gone(
    library: PassLibrary, tmp_path: Path
) -> None:
    add(library, speedup_low=1.2)
    entry = add(library)
    kept = add(library, "torch.tanh(a) * b")
    out = tmp_path / "out"
    library.export(out, [entry])
    assert PassLibrary(out).entries() == [entry]
    assert PassLibrary(out).files(entry) == library.files(entry)
    with pytest.raises(InputError, match="already exists"):
        library.export(out, [entry])
    library.remove([entry])
    assert all_entries(library.folder) == [kept]


def test_the_backend_applies_what_wins_on_this_hardware(
    library: PassLibrary, caplog: pytest.LogCaptureFixture
) -> None:
    def net(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.tanh(a) * b

    def matches(**change: object) -> int:
        reports: list[list] = []
        torch._dynamo.reset()
        options = {"library": library.folder, "report": reports.append, **change}
        a, b = torch.randn(4, 8), torch.randn(4, 8)
        with torch.no_grad():
            fast = torch.compile(net, backend="passnet", options=options)
            torch.testing.assert_close(fast(a, b), net(a, b))
        return sum(report.num_matches for report in reports[0])

    here = this_hardware(torch.get_num_threads())
    elsewhere = replace(here, num_threads=here.num_threads + 1)
    with caplog.at_level(logging.WARNING, "passnet"):
        library.add(tanh_mul(), "compiler", elsewhere, folder(), outcome())
        assert matches() == 0
        assert "no pass that wins on" in caplog.text
        library.add(tanh_mul(), "compiler", here, folder(guard=""), outcome())
        assert matches() == 0
        assert "it has no guards" in caplog.text
        library.add(tanh_mul(), "compiler", here, folder(guard=GUARD), outcome(speedup_low=1.95))
        assert matches() == 1
