"""Libraries of strangers: what they may hold, and what is refused before anything is judged."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from passnet.core.records.serialise import write_json
from passnet.errors import InputError
from passnet.passes.library.entries import ENTRIES, sealed
from passnet.passes.library.foreign import foreign_orders
from passnet.passes.library.kernels_layout import export_kernels
from passnet.passes.library.store import PassLibrary
from tests.optimizer.libraries import HERE, folder, outcome, tanh_mul


@pytest.fixture
def library(tmp_path: Path) -> PassLibrary:
    made = PassLibrary(tmp_path / "library")
    made.add(tanh_mul(), "compiler", HERE, folder(), outcome())
    return made


def entry_path(library: PassLibrary) -> Path:
    [entry] = library.entries()
    return library.folder / ENTRIES / entry.digest


def forge(library: PassLibrary, **fields: object) -> None:
    """Give the entry of a library other fields, and the digest of these."""
    path, [entry] = entry_path(library), library.entries()
    forged = sealed(replace(entry, **fields))
    write_json(path / "record.json", forged)
    path.rename(path.with_name(forged.digest))


def test_a_library_and_its_repository_hold_the_same_orders(
    library: PassLibrary, tmp_path: Path
) -> None:
    [entry] = library.entries()
    orders = [(entry, tanh_mul(), folder())]
    assert foreign_orders(library.folder) == orders
    export_kernels(library, tmp_path / "out", [entry], "my-passes", "MIT")
    assert foreign_orders(tmp_path / "out") == orders
    assert [each[1:] for each in library.orders([entry])] == [each[1:] for each in orders]


@pytest.mark.parametrize(
    "fields",
    [
        {"range": "0" * 64},
        {"ops": ("torch.exp",)},
        {"num_layouts": -1, "ops": ("operator.mul",)},
        {"num_layouts": 2, "ops": ()},
    ],
)
def test_a_record_that_names_another_range_is_refused(
    library: PassLibrary, fields: dict[str, object]
) -> None:
    forge(library, **fields)
    with pytest.raises(InputError, match="another range than its program"):
        foreign_orders(library.folder)
    with pytest.raises(InputError, match="another range than its program"):
        library.orders(library.entries())


def test_a_record_that_was_changed_is_refused(library: PassLibrary) -> None:
    record = entry_path(library) / "record.json"
    record.write_text(record.read_text().replace('"speedup_low": 1.9', '"speedup_low": 9.9'))
    with pytest.raises(InputError, match="its record has another SHA-256 than its name"):
        foreign_orders(library.folder)


def test_a_record_cannot_name_a_folder_elsewhere(library: PassLibrary) -> None:
    record = entry_path(library) / "record.json"
    fields = json.loads(record.read_text())
    record.write_text(json.dumps({**fields, "digest": "../../other"}))
    with pytest.raises(InputError, match="its record has another SHA-256 than its name"):
        foreign_orders(library.folder)
    assert library.entries() == []


def test_files_that_were_changed_are_refused(library: PassLibrary) -> None:
    forge(library, code_hash="0" * 64)
    with pytest.raises(InputError, match="its files have another SHA-256 than the record says"):
        foreign_orders(library.folder)


@pytest.mark.parametrize("link", ["record.json", "folder/Fuse.py", "folder", ".", ".."])
def test_links_are_not_followed(library: PassLibrary, tmp_path: Path, link: str) -> None:
    path = Path(os.path.normpath(entry_path(library) / link))
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="a link, which an import does not follow"):
        foreign_orders(library.folder)


@pytest.mark.parametrize("name", ["other.so", "sub/Fuse.py", "nested/"])
def test_a_pass_folder_holds_nothing_else(library: PassLibrary, name: str) -> None:
    path = entry_path(library) / "folder" / name
    path.parent.mkdir(exist_ok=True)
    path.mkdir() if name.endswith("/") else path.write_text("x = 1\n")
    with pytest.raises(InputError, match="no file that a pass folder may hold"):
        foreign_orders(library.folder)


def test_huge_and_numerous_files_are_not_read(library: PassLibrary) -> None:
    path = entry_path(library) / "folder"
    with (path / "big.h").open("wb") as stream:
        stream.truncate(2**40)
    with pytest.raises(InputError, match=r"big.h: larger than 524288 bytes, not read"):
        foreign_orders(library.folder)
    for number in range(70):
        (path / f"file{number}.h").touch()
    with pytest.raises(InputError, match="more than 64 files"):
        foreign_orders(library.folder)


def test_pipes_are_not_opened(library: PassLibrary) -> None:
    record = entry_path(library) / "record.json"
    record.unlink()
    os.mkfifo(record)
    with pytest.raises(InputError, match="not a file, not read"):
        foreign_orders(library.folder)


def test_a_folder_without_passes_is_named(library: PassLibrary, tmp_path: Path) -> None:
    [entry] = library.entries()
    export_kernels(library, tmp_path / "out", [entry], "my-passes", "MIT")
    shutil.rmtree(tmp_path / "out/build/torch-cpu/library")
    with pytest.raises(InputError, match="no library of passes in any build/VARIANT/library"):
        foreign_orders(tmp_path / "out")
    with pytest.raises(InputError, match="no library of passes"):
        foreign_orders(tmp_path / "nothing")
    shutil.rmtree(entry_path(library) / "folder")
    with pytest.raises(InputError, match="missing, though the record names its files"):
        foreign_orders(library.folder)
    forge(library, code_hash="")
    with pytest.raises(InputError, match="no pass in it to import"):
        foreign_orders(library.folder)
