"""An empty cache of kernels, for tests that compile some."""

from pathlib import Path

import pytest

from passnet.core.records.folders import CACHE_VARIABLE


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that kernels are compiled into."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path / "cpp"
