"""The site of all baselines that the repository holds."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from passnet.bench.profiling.run import RUN_FILE as PROFILE_FILE
from passnet.bench.run_record import RUN_FILE, run_folder
from passnet.cli.commands import main
from passnet.pages.figures.study_page import STUDY_FILE
from passnet_site.pages.build import SITE_FILE

BASELINES = Path(__file__).parents[3] / "baselines"


@pytest.mark.slow  # scores of 19,000 trials by every choice of graphs: a minute on one core
def test_the_site_of_all_baselines_is_built_and_their_folders_stay_as_they_are(
    tmp_path: Path,
) -> None:
    files = [
        path
        for name in (RUN_FILE, PROFILE_FILE, STUDY_FILE)
        for path in sorted(BASELINES.rglob(name))
    ]
    folders = [file.parent for file in files]
    before = {path: path.stat().st_mtime_ns for path in BASELINES.rglob("*")}
    command = ["report", *map(str, folders), "--out", str(tmp_path / "site")]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert {path: path.stat().st_mtime_ns for path in BASELINES.rglob("*")} == before
    site = json.loads((tmp_path / "site" / SITE_FILE).read_text())
    runs = [file.parent for file in files if file.name == RUN_FILE]
    assert site["num_trials"] == sum(len(run_folder(run).records()) for run in runs)
    assert site["num_studies"] == len(folders) - len(runs) >= 4
    assert len(list((tmp_path / "site" / "tasks").glob("*/*.html"))) == site["num_tasks"]
