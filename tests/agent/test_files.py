"""The virtual pass folder: its content, and that nothing leaves it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passnet.errors import ActionError
from passnet.passes.files import (
    MAX_FILE_CHARACTERS,
    MAX_FILES,
    check_name,
    created,
    deleted,
    read_files,
    replaced,
    view,
    write_files,
)


@pytest.mark.parametrize(
    "name",
    ["../evil.py", "/etc/passwd", "a/b.py", "a\\b.py", "..", ".hidden.py", "x.so", "x.pth", "",
     "sitecustomize.PY", "a.py\n", "a\0.py", "con st.py", "x" * 200 + ".py"],
)  # fmt: skip
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str) -> None:
    with pytest.raises(ActionError):
        created({}, name, "x")


@given(st.text(max_size=40))
def test_no_name_that_is_accepted_leaves_the_folder(name: str) -> None:
    try:
        check_name(name)
    except ActionError:
        return
    folder = Path("/folder")
    assert (folder / name).resolve().parent == folder and "\n" not in name


def test_files_are_created_viewed_changed_and_deleted() -> None:
    files = created({}, "a.py", "one\ntwo\n")
    assert view(files) == "a.py: 2 lines, 8 characters"
    assert view(files, "a.py", 2) == "    2  two"
    files = replaced(files, "a.py", "two", "three")
    assert files == {"a.py": "one\nthree\n"}
    assert deleted(files, "a.py") == {}


def test_a_text_that_is_not_there_just_once_is_not_replaced() -> None:
    files = {"a.py": "x x"}
    for old in ("x", "y", ""):
        with pytest.raises(ActionError, match="occurs once"):
            replaced(files, "a.py", old, "z")


def test_what_is_not_there_is_named() -> None:
    for action in (lambda: view({}, "a.py"), lambda: deleted({"b.py": ""}, "a.py")):
        with pytest.raises(ActionError, match=r"there is no a\.py"):
            action()
    with pytest.raises(ActionError, match="has 1 lines"):
        view({"a.py": "x"}, "a.py", 5)


def test_a_folder_cannot_grow_without_bound() -> None:
    with pytest.raises(ActionError, match="more than"):
        created({}, "a.py", "x" * (MAX_FILE_CHARACTERS + 1))
    full = {f"f{number}.py": "" for number in range(MAX_FILES)}
    with pytest.raises(ActionError, match="delete what is not needed"):
        created(full, "one_more.py", "")
    assert created(full, "f0.py", "new")["f0.py"] == "new"


def test_a_long_file_is_shown_in_part() -> None:
    shown = view({"a.py": "\n".join(["x" * 100] * 1000)}, "a.py")
    assert len(shown) < 25_000 and shown.endswith("fewer lines at a time")


def test_a_folder_is_written_and_read_back(tmp_path: Path) -> None:
    files = {"a.py": "x = 'é'\n", "b.json": "[]"}
    write_files(files, tmp_path / "folder")
    (tmp_path / "folder" / "c.so").write_bytes(b"\0")
    assert read_files(tmp_path / "folder") == files
