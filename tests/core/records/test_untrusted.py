"""Files of strangers: regular ones within limits are read, and nothing else is opened."""

import os
import socket
from pathlib import Path

import pytest

from passnet.core.records.serialise import LineWriter, read_json, read_lines, replace_file
from passnet.core.records.untrusted import read_untrusted, read_untrusted_text
from passnet.errors import InputError, PassFolderError
from passnet.passes.files import read_files
from passnet.passes.folder import LIST_FILE, inspect_folder, is_pass_folder

PASS = "def pattern(): ...\ndef replacement_args(): ...\ndef replacement_func(): ...\n"


def put(path: Path, kind: str) -> Path:
    """Put a file of some kind at a path."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as stream:
            stream.truncate(2**42)
    return path


KINDS = ["pipe", "device", "socket", "folder", "sparse"]


@pytest.fixture(autouse=True)
def in_a_short_folder(tmp_path, monkeypatch):
    """Sockets have short paths."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_of_limited_size_is_not_read(kind: str):
    path = put(Path("foreign.json"), kind)
    for read in (
        lambda: read_untrusted(path),
        lambda: read_json(path, int),
        lambda: list(read_lines(path, int)),
        lambda: LineWriter(path).__enter__(),
    ):
        with pytest.raises(InputError, match="not a file|larger than"):
            read()


@pytest.mark.parametrize("name", [LIST_FILE, "Fuse.py", "other.bin"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
def test_a_pass_folder_with_what_is_no_file_is_refused(kind: str, name: str):
    folder = Path("passes")
    folder.mkdir()
    (folder / LIST_FILE).write_text('["Fuse"]')
    (folder / "Fuse.py").write_text(PASS)
    (folder / name).unlink(missing_ok=True)
    put(folder / name, kind)
    with pytest.raises(PassFolderError):
        inspect_folder(folder)
    with pytest.raises(PassFolderError):
        read_files(folder) if name != "other.bin" else inspect_folder(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_the_input_passes_beside_a_folder_are_read_within_limits(kind: str):
    for name in ("passes", "const_pass_dir"):
        Path(name).mkdir()
    Path("passes", LIST_FILE).write_text('["Fuse"]')
    Path("passes", "Fuse.py").write_text(PASS)
    put(Path("const_pass_dir", "sorted_input_pass_rule_names.json"), kind)
    if kind == "sparse":
        with pytest.raises(PassFolderError, match="larger than"):
            inspect_folder(Path("passes"))
    else:  # it is no list
        assert [file.name for file in inspect_folder(Path("passes")).passes] == ["Fuse"]


LISTS = {
    "a number of many digits": "9" * 5000,
    "such a number in a list": f"[{'9' * 5000}]",
    "a name of 300 letters": f'["{"a" * 300}"]',
    "a name of 200 letters of two bytes": f'["{"é" * 200}"]',
    "a lone surrogate": '["\\ud800"]',
    "a null byte": '["a\\u0000"]',
    "deep": "[" * 100_000,
    "many names": str([f"n{i}" for i in range(3000)]).replace("'", '"'),
    "an escape sequence": '["\\u001b[2J"]',
    "no list": "{}",
    "empty": "",
}


@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS)
def test_whatever_a_list_holds_the_folder_is_refused_in_a_printable_sentence(text: str):
    folder = Path("passes")
    folder.mkdir()
    (folder / LIST_FILE).write_text(text)
    with pytest.raises(PassFolderError) as refused:
        inspect_folder(folder)
    assert str(refused.value).isprintable() and len(str(refused.value)) < 1000


def test_names_that_are_not_utf_8_are_refused(tmp_path):
    folder = Path("passes")
    folder.mkdir()
    (folder / LIST_FILE).write_text('["Fuse"]')
    (folder / "Fuse.py").write_text(PASS)
    (folder / os.fsdecode(b"x\xff")).write_text("")
    with pytest.raises(PassFolderError, match=r"x\\udcff: its name is not UTF-8"):
        inspect_folder(folder)
    assert is_pass_folder(folder)
    with pytest.raises(InputError, match="its name is not UTF-8"):
        read_untrusted(folder / os.fsdecode(b"x\xff"))


def test_text_whose_f_strings_take_python_long_is_refused():
    folder = Path("passes")
    folder.mkdir()
    (folder / LIST_FILE).write_text('["Fuse"]')
    (folder / "Fuse.py").write_text(f"{PASS}x = [f'{'{a}' * 100_000}']")
    with pytest.raises(PassFolderError, match="too many braces"):
        inspect_folder(folder)


def test_a_machine_out_of_descriptors_is_no_fault_of_a_folder():
    import resource

    folder = Path("passes")
    folder.mkdir()
    (folder / LIST_FILE).write_text('["Fuse"]')
    (folder / "Fuse.py").write_text(PASS)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            inspect_folder(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_line_is_read_within_a_limit():
    path = Path("long.jsonl")
    with path.open("wb") as stream:
        stream.truncate(300 * 2**20)
    with pytest.raises(InputError, match="more than 16777216 bytes a line"):
        list(read_lines(path, int))


@pytest.mark.parametrize("kind", ["pipe", "device", "socket"])
def test_a_device_is_not_replaced_by_a_file(kind: str):
    path = put(Path("target"), kind)
    with pytest.raises(InputError, match="a device or pipe, so it is not replaced"):
        replace_file(path, b"x")
    assert path.exists() and not path.is_file()


def test_other_text_than_utf_8_is_named():
    Path("latin").write_bytes(b"\xe9")
    with pytest.raises(InputError, match="latin: not UTF-8 text"):
        read_untrusted_text(Path("latin"))
