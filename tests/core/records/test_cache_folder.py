"""The cache folder: nothing that another user made, or could change, is loaded from it."""

import os
from pathlib import Path

import pytest

from passnet.core.records.folders import CACHE_VARIABLE, cache_folder, cached_file, keep_file

STRANGER = 12345
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def kept(folder: Path) -> Path:
    """Keep a file in a folder."""
    made = folder / "made.so"
    made.write_bytes(b"code")
    return keep_file(made, folder, "key")


def test_a_file_of_ours_is_found_again(home: Path):
    folder = cache_folder("cpp")
    assert folder == home / "cpp" and cached_file(folder, "key", ".so") is None
    file = kept(folder)
    assert file.is_file() and cached_file(folder, "key", ".so") == file


def test_a_file_with_other_content_is_not_loaded():
    file = kept(cache_folder("cpp"))
    file.write_bytes(b"other code")
    assert cached_file(file.parent, "key", ".so") is None


def test_a_file_that_others_may_write_to_is_not_loaded():
    file = kept(cache_folder("cpp"))
    file.chmod(0o666)
    assert cached_file(file.parent, "key", ".so") is None


def test_a_link_is_not_loaded(tmp_path: Path):
    file = kept(cache_folder("cpp"))
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert cached_file(file.parent, "key", ".so") is None


@is_root
def test_a_file_of_another_user_is_not_loaded():
    file = kept(cache_folder("cpp"))
    os.chown(file, STRANGER, STRANGER)
    assert cached_file(file.parent, "key", ".so") is None


@is_root
@pytest.mark.parametrize("level", ["cache", "cpp"])
def test_beside_a_folder_of_another_user_a_private_one_is_made(home: Path, level: str):
    cache_folder("cpp")
    os.chown(home if level == "cache" else home / "cpp", STRANGER, STRANGER)
    folder = cache_folder("cpp")
    assert home not in folder.parents
    assert folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o022


def test_beside_a_folder_that_all_may_write_to_a_private_one_is_made(home: Path):
    cache_folder("cpp").chmod(0o777)
    assert home not in cache_folder("cpp").parents


@is_root
def test_where_the_temporary_one_is_a_strangers_too_this_process_has_its_own(
    home: Path, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    home.mkdir(mode=0o777)
    home.chmod(0o777)
    squatted = tmp_path / f"passnet-{os.geteuid()}"
    squatted.mkdir()
    os.chown(squatted, STRANGER, STRANGER)
    folder = cache_folder("cpp")
    assert squatted not in folder.parents and cache_folder("cpp") == folder
    assert folder.stat().st_mode & 0o777 == 0o700
