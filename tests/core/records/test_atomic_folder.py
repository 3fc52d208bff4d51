"""Folders that are written whole or not at all."""

from pathlib import Path

from passnet.core.records.folders import atomic_folder


def test_what_lies_beside_a_folder_stays(tmp_path: Path) -> None:
    for name in ("out.partial", "out.new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.txt").write_text("mine")
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "a.txt").write_text("a")
    assert (tmp_path / "out" / "a.txt").read_text() == "a"
    assert {path.name for path in tmp_path.iterdir()} == {"out", "out.partial", "out.new"}
    assert (tmp_path / "out.partial" / "mine.txt").read_text() == "mine"
