"""What all tests share: one thread a process, workers in a sandbox, and the folder of real graphs
where it is there.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from passnet.judge.processes.parent_pool import ParentPool

os.environ.setdefault("OMP_NUM_THREADS", "1")

collect_ignore = ["fuzz/atheris_parse.py"]  # a program of its own; atheris is not on every machine

ROOT = Path(__file__).parents[1]
CORPUS = Path(os.environ.get("PASSNET_CORPUS", ROOT.parent / "shared" / "data"))
"""Folder with `graphnet-375.tar.xz`, `passnet-5.tar.xz` and `es_vectors.json`."""


if "PASSNET_TESTS_FOLDER" not in os.environ:  # nor is this one of the processes of a run
    OWN_FOLDER: str | None = tempfile.mkdtemp(prefix="passnet-tests-")
    os.environ["PASSNET_TESTS_FOLDER"] = os.environ["TMPDIR"] = OWN_FOLDER
else:
    OWN_FOLDER = None
if (worker := os.environ.get("PYTEST_XDIST_WORKER")) is not None:
    # With a folder each, the processes of a run do not wait for each other's measurements.
    os.environ["TMPDIR"] = f"{os.environ['PASSNET_TESTS_FOLDER']}/{worker}"
    os.makedirs(os.environ["TMPDIR"], exist_ok=True)  # noqa: PTH103 (a path as the variable has it)
tempfile.tempdir = os.environ["TMPDIR"]
# What Inductor compiled is kept over runs, where there is a place for it.
if (ROOT / ".venv").is_dir():
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(ROOT / ".venv" / "inductor-cache"))


SELECTION = tomllib.loads((Path(__file__).parent / "slow.toml").read_text(encoding="utf-8"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests as slow that `slow.toml` lists, and all but every n-th of those it samples."""
    num_cases: Counter[str] = Counter()
    for item in items:
        name = item.nodeid
        if name.startswith(tuple(SELECTION["listed"])):
            item.add_marker(pytest.mark.slow)
        for start, (step, _) in SELECTION["sampled"].items():
            if name.startswith(start):
                if num_cases[start] % step:
                    item.add_marker(pytest.mark.slow)
                num_cases[start] += 1


def pytest_unconfigure() -> None:
    """Remove what tests, and the processes they started, left in the temporary folder."""
    if OWN_FOLDER is not None:
        shutil.rmtree(OWN_FOLDER, ignore_errors=True)


def _unpacked(name: str, target: Path) -> Path:
    archive = CORPUS / name
    if not archive.exists():
        pytest.skip(
            f"{archive} is not there; set PASSNET_CORPUS to the folder of the public graphs"
        )
    with tarfile.open(archive) as stream:
        stream.extractall(target, filter="data")
    return target


@pytest.fixture(scope="session")
def graphnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 375 real GraphNet samples."""
    return _unpacked("graphnet-375.tar.xz", tmp_path_factory.mktemp("graphnet"))


@pytest.fixture(scope="session")
def passnet_samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The five real PassNet subgraphs."""
    return _unpacked("passnet-5.tar.xz", tmp_path_factory.mktemp("passnet"))


@pytest.fixture(scope="session")
def es_vectors() -> Path:
    """Worked vectors of the metric."""
    path = CORPUS / "es_vectors.json"
    if not path.exists():
        pytest.skip(f"{path} is not there; set PASSNET_CORPUS to the folder of the public graphs")
    return path


@pytest.fixture(scope="module")
def parents() -> Iterator[ParentPool]:
    """What runs candidate code on the CPU, confined as well as this machine can."""
    from passnet.judge.processes.parent_pool import ParentPool
    from passnet.judge.processes.sandbox import find_sandbox

    with ParentPool(sandbox=find_sandbox()) as made:
        yield made


@pytest.fixture
def broken(monkeypatch, tmp_path):
    """A function that puts a package in the way which raises something while it is imported."""

    def put(package, error):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(f"raise {error}")
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.syspath_prepend(tmp_path)

    return put
