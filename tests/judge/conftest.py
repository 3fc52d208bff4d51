"""Fixtures of the judge's tests."""

import tempfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that candidates can see for as long as their parent of workers lives."""
    return tmp_path_factory.mktemp("passes")


@pytest.fixture
def place(root: Path) -> Path:
    """A new folder in it."""
    return Path(tempfile.mkdtemp(dir=root))
