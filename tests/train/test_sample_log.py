"""The log of a training's answers, which several processes of the training share."""

import pickle
import sys
from dataclasses import replace
from subprocess import Popen

import pytest

from passnet.core.jobs.children import python_environment
from passnet.errors import TrainingStoppedError
from passnet.train.rewards.monitors import MonitorLimits
from passnet.train.rewards.sample_log import SampleLog
from passnet.train.rewards.samples import Sample

GOOD = Sample(0, 0, "a", 1.0, ("ok",), True)
CHEAT = replace(GOOD, reward=0.0, is_correct=False, cheats=("late_write",))
LIMITS = MonitorLimits(window=40, min_samples=10, equal_groups=None)


@pytest.mark.parametrize("num_before", [0, 80])
def test_monitors_see_the_answers_of_a_worker_also_after_a_resume(tmp_path, num_before):
    with SampleLog(tmp_path) as log:
        for _ in range(num_before):
            log.put(GOOD)
    with SampleLog(tmp_path, LIMITS) as log:
        worker = pickle.loads(pickle.dumps(log))
        for _ in range(40):
            worker.put(CHEAT)
        with pytest.raises(TrainingStoppedError, match="100% of the answers cheat"):
            log.check(5, {})


def test_an_amended_answer_replaces_its_own_and_a_torn_line_is_no_answer(tmp_path):
    with SampleLog(tmp_path) as one, SampleLog(tmp_path) as two:
        first, second = one.put(GOOD), two.put(CHEAT)
        two.amend(replace(first, speedup_again=2.0))
        assert [each.number for each in (first, second)] == [0, 1]
        assert one.samples == two.samples == [replace(first, speedup_again=2.0), second]
        with (tmp_path / "samples.jsonl").open("ab") as stream:
            stream.write(b'{"number"')
        assert one.samples == two.samples and two.put(GOOD).number == 2
    with SampleLog(tmp_path) as log:
        assert log.put(GOOD).number == 3 and len(log.samples) == 4


RANK = """
import sys
from pathlib import Path
from passnet.train.rewards.sample_log import SampleLog
from passnet.train.rewards.samples import Sample
with SampleLog(Path(sys.argv[1])) as log:
    for number in range(50):
        log.put(Sample(0, number, sys.argv[2], 1.0))
"""


def test_ranks_that_write_at_once_keep_all_their_answers(tmp_path):
    words = [sys.executable, "-c", RANK, str(tmp_path)]
    ranks = [Popen([*words, name], env=python_environment()) for name in ("a", "b")]
    assert [rank.wait(60) for rank in ranks] == [0, 0]
    with SampleLog(tmp_path) as log:
        assert [each.number for each in log.samples] == list(range(100))
        for name in ("a", "b"):
            steps = [each.step for each in log.samples if each.group == name]
            assert steps == list(range(50))
