"""The queue on disk: in order, each once, whatever kills the service."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing

import pytest

from passnet.core.jobs.children import python_environment
from passnet.core.records.serialise import decode
from passnet.errors import InputError
from passnet.train.service.submission import Judged, QueueCounts
from passnet_service.jobs import JudgeJob
from passnet_service.queue import (
    QUEUE_FILE,
    QueueFullError,
    SubmissionQueue,
    UnavailableError,
)
from tests.faults import limited_files
from tests.train.service.scripted_judge import CHEAT, RIGHT, UNSTABLE, job


@pytest.fixture
def queue(tmp_path):
    queue = SubmissionQueue(tmp_path, 3)
    yield queue
    queue.close()


def test_submissions_are_judged_in_order_and_each_once(queue):
    for number in (0, 1, 0):
        assert queue.put(f"id{number}", job(number)).state == "waiting"
    taken = [queue.take("cpu:0"), queue.take("cpu:0"), queue.take("cpu:0")]
    assert [each and each[0] for each in taken] == ["id0", "id1", None]
    assert decode(taken[1][1], JudgeJob) == job(1)
    assert queue.put("id0", job(0)).state == "judging"
    queue.finish("id0", Judged((RIGHT,)))
    queue.finish("id0", Judged(fault="a second answer"))
    report = queue.put("id0", job(0))
    assert report.is_cached and report.judged == Judged((RIGHT,)) and report.judge == "cpu:0"
    assert queue.counts() == QueueCounts(0, 1, 1)


@pytest.mark.parametrize("judged", [Judged((UNSTABLE,)), Judged(fault="no clock")])
def test_what_is_not_known_yet_is_judged_again_when_it_is_asked_for(queue, judged):
    queue.put("id", job())
    queue.take("cpu:0")
    queue.finish("id", judged)
    assert queue.report("id").judged == judged
    assert queue.put("id", job()).state == "waiting"
    assert queue.take("cpu:0")[0] == "id"


def test_more_than_may_wait_are_refused_and_the_known_are_not(queue):
    for number in range(3):
        queue.put(f"id{number}", job(number))
    with pytest.raises(QueueFullError):
        queue.put("id3", job(3))
    assert queue.put("id2", job(2)).state == "waiting"
    queue.take("cpu:0")
    queue.put("id3", job(3))


def test_a_submission_whose_judge_was_lost_waits_as_the_first(queue):
    for number in (0, 1):
        queue.put(f"id{number}", job(number))
    queue.take("cpu:0")
    assert queue.lose("id0") == 1
    assert queue.take("cpu:1")[0] == "id0"
    assert queue.report("id0").num_losses == 1


def test_the_files_of_a_cheat_are_kept_for_reading_and_no_others(queue, tmp_path):
    for name, trial in (("right", RIGHT), ("cheat", CHEAT)):
        queue.put(name, job())
        queue.take("cpu:0")
        queue.finish(name, Judged((trial,)))
    rows = sqlite3.connect(tmp_path / QUEUE_FILE).execute("SELECT id, item FROM submissions")
    kept = {name for name, content in rows if content is not None}
    assert kept == {"cheat"}


SCRIPT = """
import os, sys
from pathlib import Path
from passnet_service.queue import SubmissionQueue
from passnet.train.service.submission import Judged
from tests.train.service.scripted_judge import RIGHT, job
queue = SubmissionQueue(Path(sys.argv[1]), 100)
for number in range(3):
    queue.put(f"id{number}", job(number))
queue.take("cpu:0"), queue.take("cpu:0")
queue.finish("id0", Judged((RIGHT,)))
os.kill(os.getpid(), 9)
"""


def test_a_kill_loses_nothing_and_what_was_being_judged_waits_again(tmp_path):
    killed = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path], env=python_environment(), check=False
    )
    assert killed.returncode == -signal.SIGKILL
    queue = SubmissionQueue(tmp_path, 100)
    assert queue.counts() == QueueCounts(2, 0, 1)
    assert [queue.take("cpu:0")[0], queue.take("cpu:0")[0]] == ["id1", "id2"]
    assert queue.report("id0").judged == Judged((RIGHT,))


def test_a_folder_with_another_file_in_its_place_is_refused_in_a_sentence(tmp_path):
    (tmp_path / QUEUE_FILE).write_bytes(os.urandom(4096))
    with pytest.raises(InputError, match=r"queue\.sqlite: .*; choose another --out"):
        SubmissionQueue(tmp_path, 100)


def test_only_the_owner_reads_the_queue(tmp_path):
    (tmp_path / QUEUE_FILE).touch(0o644)
    with closing(SubmissionQueue(tmp_path, 3)) as queue:
        queue.put("id", job())
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(modes, 0o600) and len(modes) == 3


def test_what_a_full_disk_does_not_take_is_as_it_was(tmp_path):
    with closing(SubmissionQueue(tmp_path, 9)) as queue:
        queue.put("id", job())
        queue.take("cpu:0")
        wal = (tmp_path / QUEUE_FILE).with_suffix(".sqlite-wal")
        with limited_files(wal.stat().st_size):
            for action in (
                lambda: queue.put("other", job(1)),
                lambda: queue.lose("id"),
                lambda: queue.finish("id", Judged((RIGHT,))),
            ):
                with pytest.raises(UnavailableError, match="make room on its disk"):
                    action()
        assert queue.report("id").state == "judging" and queue.report("other") is None
        queue.finish("id", Judged((RIGHT,)))
        assert queue.report("id").judged == Judged((RIGHT,))
