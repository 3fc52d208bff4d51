"""Failures of our own are never final, and cost no candidate anything."""

import os
import resource
import signal
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest

from passnet.core.jobs.process import JobRunner
from passnet.errors import MeasureError, WorkerError
from passnet.judge.candidate import Candidate
from passnet.judge.desk.candidates import CandidateEntry
from passnet.judge.desk.judge_task import MAX_TOGETHER, judge_task
from passnet.judge.inspection.inspected_folders import InspectedFolders, inspect_limited
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.channel import channel_pair
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.task import task_of
from passnet.judge.trial import Trial
from passnet.train.service.submission import Judged
from tests.judge.folders import GOOD, small_graph, write_passes
from tests.processes import wait_until


class StartsNothing(ParentPool):
    """A pool that notes what it is asked to start, and stops there."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Candidate] = []

    def start(self, candidates: Iterable[Candidate]) -> None:
        self.asked += candidates
        raise MeasureError("noted")


def test_no_candidate_has_a_process_before_it_is_needed(tmp_path: Path) -> None:
    folder = write_passes(tmp_path / "passes", GOOD)
    entries = [
        CandidateEntry(Candidate(f"c{number}", "passes", None, "direct", root=str(folder)), folder)
        for number in range(1000)
    ]
    task = task_of("add_relu", {"small": small_graph().graph})
    with StartsNothing() as pool, JobRunner() as runner, pytest.raises(MeasureError, match="noted"):
        inspected = InspectedFolders("open", runner)
        list(judge_task(pool, task, entries, RunSettings(), (), (), inspected))
    assert [candidate.name for candidate in pool.asked] == [f"c{n}" for n in range(MAX_TOGETHER)]


def test_an_inspection_that_others_end_is_no_failure_of_the_folder(tmp_path: Path) -> None:
    folder = write_passes(tmp_path / "passes", GOOD)
    with JobRunner() as runner, ThreadPoolExecutor(1) as threads:
        assert inspect_limited(folder, "strict", runner).failure is None
        (folder / "Fuse.py").write_text("x = y.a(1).b(2) + x[0] * 3\n" * 15_000 + GOOD)
        inspection = threads.submit(inspect_limited, folder, "strict", runner)
        children = Path(f"/proc/{runner._parent.pid}/task/{runner._parent.pid}/children")
        wait_until(lambda: children.read_text() != "", "the inspection has not begun")
        os.kill(int(children.read_text()), signal.SIGKILL)
        with pytest.raises(WorkerError, match="ended by signal 9"):
            inspection.result()


class LacksDescriptors(ParentPool):
    """A pool whose reference fails as under `ulimit -n`."""

    def reference(self) -> NoReturn:
        raise WorkerFailureError("runtime_error", "OSError", "[Errno 24] Too many open files")


def test_a_reference_on_a_machine_that_lacks_something_is_no_verdict_on_its_graph() -> None:
    candidate = Candidate("eager", "eager", call="direct")
    with LacksDescriptors() as pool, pytest.raises(WorkerError, match="Too many open files"):
        judge_graph(pool, small_graph(), [candidate], JudgeSettings(timing=None))


def test_descriptors_that_the_os_drops_are_no_message_without_them() -> None:
    channel, theirs = channel_pair()
    with theirs:
        socket.send_fds(theirs, [b"\x02" + b"\0" * 7 + b"{}"], [0, 1])
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                channel.receive(dict, 5)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    channel.close()


@pytest.mark.parametrize("status", ["unstable", "reference_error"])
def test_what_may_be_the_machines_fault_is_judged_again(status) -> None:
    assert not Judged((Trial("t", "g", "c", status),)).is_final
    assert Judged((Trial("t", "g", "c", "runtime_error"),)).is_final


class ClosedTwice(WorkerParent):
    """A parent of workers while whose end another thread closes the pool, and which ends once."""

    pool: ParentPool
    num_ends = 0

    def close(self) -> None:
        self.num_ends += 1
        self.pool.close()


def test_a_pool_that_two_threads_close_ends_each_parent_once() -> None:
    """The interrupt of a run closes its desks while their threads drop parents."""
    with ParentPool() as pool:
        parents = [ClosedTwice(), ClosedTwice()]
        for number, parent in enumerate(parents):
            parent.pool = pool
            pool._parents["candidate", str(number)] = parent, None
        pool.drop()
        assert [parent.num_ends for parent in parents] == [1, 1]
        with pytest.raises(MeasureError, match="was stopped"):
            pool.reference()
