"""Whatever a pass folder holds, its inspection ends in time and in little memory, and says why."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from passnet.core.jobs.process import JobRunner
from passnet.errors import PassFolderError, WorkerError
from passnet.judge.candidate import Candidate
from passnet.judge.inspection.inspected_folders import (
    InspectedFolders,
    InspectionLimits,
    inspect_limited,
)
from passnet.passes import folder as folders
from passnet.passes.folder import inspect_folder
from tests.judge.inspection_folder import PASS


def write(folder: Path, code: str = "", **modules: str) -> Path:
    files = {"Fuse": PASS + "fused = None\n" + code} | modules
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "sorted_output_pass_rule_names.json").write_text(json.dumps(["Fuse"]))
    return folder


@pytest.fixture(scope="module")
def runner() -> Iterator[JobRunner]:
    with JobRunner() as runner:
        yield runner


def test_folders_are_inspected_in_other_processes(tmp_path: Path, runner: JobRunner) -> None:
    for code, names in (("import socket\n", ["network"]), ("", [])):
        inspection = inspect_limited(write(tmp_path, code), "open", runner)
        assert [finding.name for finding in inspection.findings] == names
        assert inspection.failure is None


@pytest.mark.parametrize("depth", [190, 250, 3000, 100_000])
def test_depth_is_inspected_or_named(depth: int, tmp_path: Path, runner: JobRunner) -> None:
    code = "x = y" + ".a()" * (depth // 2) + "\n"
    inspection = inspect_limited(write(tmp_path, code), "strict", runner)
    assert (inspection.failure is None) == (depth < 200)
    assert depth < 200 or "Fuse.py" in str(inspection.failure)


def test_a_file_of_terabytes_is_named_at_once(tmp_path: Path, runner: JobRunner) -> None:
    with (write(tmp_path) / "table.bin").open("wb") as file:
        file.truncate(4 * 2**40)
    inspection = inspect_limited(tmp_path, "open", runner)
    assert inspection.failure == f"{tmp_path}: more than 268435456 bytes; leave some of them out"


def test_all_text_and_the_number_of_files_are_limited(tmp_path: Path) -> None:
    half = "#" * (folders.MAX_FILE_BYTES - 1)
    write(tmp_path, **{f"m{number}": half for number in range(5)})
    with pytest.raises(PassFolderError, match="more than 2097152 bytes of Python; leave"):
        inspect_folder(tmp_path)
    for number in range(5):
        (tmp_path / f"m{number}.py").unlink()
    (tmp_path / "many").mkdir()
    for number in range(folders.MAX_FILES):
        (tmp_path / "many" / str(number)).touch()
    with pytest.raises(PassFolderError, match="more than 2000 files; leave some of them out"):
        inspect_folder(tmp_path)


@pytest.mark.parametrize("limits", [InspectionLimits(1), InspectionLimits(max_memory_mib=64)])
def test_what_takes_too_much_is_named(
    limits: InspectionLimits, tmp_path: Path, runner: JobRunner
) -> None:
    write(tmp_path, "x = y.a(1).b(2) + x[0] * 3\n" * 15_000)
    inspection = inspect_limited(tmp_path, "strict", runner, limits)
    assert inspection.findings == ()
    assert inspection.failure is not None
    endings = (
        "to inspect; put less of it into the folder",
        "Fuse.py: cannot be read: out of memory",
    )
    assert inspection.failure.endswith(endings)
    assert inspect_limited(write(tmp_path), "strict", runner).failure is None, "it goes on"


def test_a_failure_of_our_own_is_no_finding(tmp_path: Path, runner: JobRunner) -> None:
    unknown: Any = "lenient"
    with pytest.raises(WorkerError, match=r"(?s)the inspection of .* failed: .*lenient"):
        inspect_limited(write(tmp_path), unknown, runner)


def test_a_folder_is_inspected_once_and_its_failure_kept(tmp_path: Path) -> None:
    candidate = Candidate("a", "passes", str(write(tmp_path, "x = " + "-" * 500 + "1\n")))
    inspected = InspectedFolders("strict")
    failure = inspected.failure(candidate)
    assert failure is not None and "nested too deeply" in failure
    write(tmp_path)
    assert inspected.failure(candidate) == failure and inspected.findings(candidate) == ()
    assert InspectedFolders("strict").failure(candidate) is None


def test_a_link_out_of_the_folder_is_refused_and_one_within_counts(tmp_path: Path) -> None:
    passes, outside = tmp_path / "passes", tmp_path / "outside"
    for path in (passes, outside):
        path.mkdir()
    write(passes, kernel="x = 1\n")
    hashes = {inspect_folder(passes).code_hash}
    (passes / "other.py").symlink_to("kernel.py")
    hashes.add(inspect_folder(passes).code_hash)
    (passes / "other.py").unlink()
    (passes / "other.py").symlink_to("Fuse.py")
    hashes.add(inspect_folder(passes).code_hash)
    assert len(hashes) == 3
    for target in (outside, outside / "nothing", Path("/dev/zero"), Path("round")):
        (passes / "round").symlink_to(target)
        with pytest.raises(PassFolderError, match="round: links out of the folder; put a copy"):
            inspect_folder(passes)
        (passes / "round").unlink()


def test_what_lies_among_compiled_modules_counts(tmp_path: Path) -> None:
    first = inspect_folder(write(tmp_path)).code_hash
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "Fuse.cpython-311.pyc").touch()
    assert inspect_folder(tmp_path).code_hash == first
    (tmp_path / "__pycache__" / "kernel.py").touch()
    assert inspect_folder(tmp_path).code_hash != first
