"""What a judging process answers when its temporary files vanish under it."""

import shutil

import pytest

from passnet.errors import PassFolderError
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.verdict.verdict import Evidence, decide
from passnet_service.jobs import judge_job
from passnet_service.judging import judge_one
from tests.train.service.running import submitted

SETTINGS = RunSettings(JudgeSettings(timing=None))
JOB = judge_job(submitted(is_timed=False), {}, None)


class ScriptedDesk:
    """A desk whose folders somebody deletes while it judges, or that has a bad folder."""

    settings = SETTINGS

    def __init__(self, root, vanishes, raises):
        self.root = str(root)
        self._vanishes = vanishes
        self._raises = raises

    def judge(self, task, files, unseen, is_timed):
        if self._vanishes:
            shutil.rmtree(self.root)
        if self._raises:
            raise PassFolderError(f"{self.root}/x: no such folder")
        failure = ("compile_error", "No such file or directory")
        evidence = Evidence(task.name, task.graphs[0].name, "passes", failure=failure)
        return [decide(evidence, SETTINGS.judge)]


@pytest.mark.parametrize("raises", [True, False])
def test_a_folder_that_vanishes_is_a_fault_of_ours_and_an_unusable_one_does_not_compile(
    tmp_path, raises
):
    wrong = judge_one(ScriptedDesk(tmp_path, False, raises), JOB)
    assert [trial.status for trial in wrong.trials] == ["compile_error"] and wrong.is_final
    lost = judge_one(ScriptedDesk(tmp_path, True, raises), JOB)
    assert lost.fault is not None and not lost.is_final and lost.trials == ()
