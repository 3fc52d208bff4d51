"""The one door of the judge, as a user of Python calls it."""

from pathlib import Path

import pytest

from passnet.errors import PassFolderError
from passnet.judge.desk.desk import judge_files
from passnet.judge.task import task_of
from passnet.passes.files import read_files
from tests.agent.brief import brief_settings
from tests.judge.folders import GOOD, small_graph, write_passes


def test_one_folder_is_judged_on_graphs_that_are_in_no_suite(tmp_path: Path) -> None:
    files = read_files(write_passes(tmp_path / "passes", GOOD))
    task = task_of("add_relu", {"small": small_graph().graph, "large": small_graph((64, 80)).graph})
    trials = judge_files(task, files, brief_settings(), "direct", is_timed=False)
    assert [(trial.graph, trial.status, trial.speedup) for trial in trials] == [
        ("small", "ok", None),
        ("large", "ok", None),
    ]


def test_a_folder_without_a_list_of_passes_is_refused(tmp_path: Path) -> None:
    task = task_of("add_relu", {"small": small_graph().graph})
    with pytest.raises(PassFolderError):
        judge_files(task, {"Fuse.py": "x = 1\n"}, brief_settings(), "direct")
