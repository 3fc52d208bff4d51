"""The one door of the judge, as a user of Python calls it."""

from pathlib import Path

import pytest

from passnet.errors import PassFolderError
from passnet.judge.desk.desk import JudgeDesk, judge_files
from passnet.judge.processes.sandbox import PRIVATE, find_sandbox
from passnet.judge.task import task_of
from passnet.passes.files import read_files
from tests.agent.brief import brief_settings
from tests.judge.folders import GOOD, small_graph, write_passes
from tests.judge.sandboxes import works


def test_one_folder_is_judged_on_graphs_that_are_in_no_suite(tmp_path: Path) -> None:
    files = read_files(write_passes(tmp_path / "passes", GOOD))
    task = task_of("add_relu", {"small": small_graph().graph, "large": small_graph((64, 80)).graph})
    trials = judge_files(task, files, brief_settings(), "direct", is_timed=False)
    assert [(trial.graph, trial.status, trial.speedup) for trial in trials] == [
        ("small", "ok", None),
        ("large", "ok", None),
    ]


WITH_FILES = '''
from passnet.passes import cpp

SOURCE = r"""
#include <cstdlib>
#include <fcntl.h>
#include <initializer_list>
#include <unistd.h>
extern "C" void act() {
  for (auto path : {%s}) %s;
}
"""
ACT = cpp.kernel(SOURCE, "act", "")


def replacement(x, y):
    ACT()
    return torch.clamp(x + y, min=0)
'''
LEFT = ", ".join(f'"{place}/left"' for place in PRIVATE)
LEAVES, LOOKS = "close(creat(path, 0600))", "if (!access(path, F_OK)) abort()"


def test_a_folder_finds_no_files_of_the_one_before(tmp_path: Path) -> None:
    works(find_sandbox("auto"))
    task = task_of("add_relu", {"small": small_graph().graph})
    with JudgeDesk(brief_settings(), "direct") as desk:
        for number, added in enumerate((LEAVES, LOOKS)):
            files = read_files(write_passes(tmp_path / str(number), WITH_FILES % (LEFT, added)))
            assert [trial.error for trial in desk.judge(task, files, is_timed=False)] == [None]


def test_a_folder_without_a_list_of_passes_is_refused(tmp_path: Path) -> None:
    task = task_of("add_relu", {"small": small_graph().graph})
    with pytest.raises(PassFolderError):
        judge_files(task, {"Fuse.py": "x = 1\n"}, brief_settings(), "direct")
