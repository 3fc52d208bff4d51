"""The files that a run folder gets from its records alone."""

import shutil
from pathlib import Path

import pytest

from passnet.bench.run_record import FIGURE_FILE, RUN_FILE, SCORES_FILE, TABLES_FILE, TRIALS_FILE
from passnet.core.records.serialise import packed
from passnet.errors import InputError
from passnet.pages.tables.results import write_results
from tests.conftest import ROOT


@pytest.mark.parametrize("name", ["demo", "passbench-v0"])
def test_the_results_of_a_recorded_run_are_written_to_the_byte(name: str, tmp_path: Path) -> None:
    run = ROOT / "baselines" / name
    for file in (run / RUN_FILE, packed(run / TRIALS_FILE)):
        shutil.copy(file, tmp_path)
    scores = write_results(tmp_path)
    assert len(scores) == len({score.candidate for score in scores}) > 1
    for written in (SCORES_FILE, TABLES_FILE):
        assert (tmp_path / written).read_bytes() == (run / written).read_bytes(), written
    assert (tmp_path / FIGURE_FILE).read_text().startswith("<?xml")


def test_a_folder_without_trials_has_no_results(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"holds no {TRIALS_FILE}"):
        write_results(tmp_path)
    assert not list(tmp_path.iterdir())
