"""Folders that are written whole or not at all."""

import os
from pathlib import Path

import pytest

from passnet.core.records.folders import atomic_folder
from passnet.errors import InputError


def test_what_lies_beside_a_folder_stays(tmp_path: Path) -> None:
    for name in ("out.partial", "out.new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.txt").write_text("mine")
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "a.txt").write_text("a")
    assert (tmp_path / "out" / "a.txt").read_text() == "a"
    assert {path.name for path in tmp_path.iterdir()} == {"out", "out.partial", "out.new"}
    assert (tmp_path / "out.partial" / "mine.txt").read_text() == "mine"


def test_of_two_at_a_time_the_first_is_whole_and_the_second_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        pytest.raises(InputError, match="out: already exists"),
        atomic_folder(out) as second,
    ):
        (second / "1").write_text("second")
        with atomic_folder(out) as first:
            (first / "1").write_text("first")
            assert second.exists()
            (second / "2").write_text("second")
    assert {path.name: path.read_text() for path in out.iterdir()} == {"1": "first"}
    assert list(tmp_path.iterdir()) == [out]


def test_what_a_kill_has_left_is_removed_and_what_is_in_use_or_a_link_stays(
    tmp_path: Path,
) -> None:
    out, mine = tmp_path / "out", tmp_path / "mine"
    mine.mkdir()
    left, link = (tmp_path / f".out.{name}.passnet-partial" for name in ("left", "link"))
    left.mkdir()
    link.symlink_to(mine)
    with atomic_folder(tmp_path / "out") as used:
        for path in (left, link, used):
            os.utime(path, (0, 0), follow_symlinks=False)
        with atomic_folder(out):
            assert used.exists() and mine.exists() and link.is_symlink()
            assert not left.exists()
        out.rmdir()


def test_the_current_folder_is_no_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (Path(), tmp_path, tmp_path.parent):
        with (
            pytest.raises(InputError, match="name a new folder|already exists"),
            atomic_folder(path),
        ):
            pass
    assert tmp_path.exists()


def test_a_folder_that_is_replaced_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with atomic_folder(out) as folder:
        (folder / "a").write_text("old")
    with pytest.raises(KeyError), atomic_folder(out, replaces=True) as folder:
        raise KeyError
    with pytest.raises(InputError), atomic_folder(out, replaces=True) as folder:
        folder.rmdir()  # it cannot be put in place
    assert (out / "a").read_text() == "old" and list(tmp_path.iterdir()) == [out]
    with atomic_folder(out, replaces=True) as folder:
        assert (out / "a").read_text() == "old"
    assert list(tmp_path.rglob("*")) == [out]
