"""The process boundary: forking, killing, shared memory, and a clock outside the worker."""

import os
import time
from collections.abc import Iterator

import numpy as np
import pytest

from passnet.graph.inputs import make_inputs
from passnet.judge.candidate import REFERENCE
from passnet.judge.channel import ChannelClosedError, ChannelTimeoutError, channel_pair
from passnet.judge.clock import TimedWorker, TimingPlan, interleave
from passnet.judge.memory import SharedMemory
from passnet.judge.messages import Fetch, Fetched, Reply, Run
from passnet.judge.process import WorkerFailureError, WorkerParent
from passnet.judge.subject import Subject, make_problem
from tests.judge.folders import small_graph


@pytest.fixture(scope="module")
def parent() -> Iterator[WorkerParent]:
    with WorkerParent() as made:
        yield made


def reference(parent: WorkerParent, shape: tuple[int, ...] = (64, 64), sets: int = 2) -> Subject:
    graph = small_graph(shape).graph
    problem = make_problem(graph, [make_inputs(graph, "fresh", seed) for seed in range(sets)])
    return Subject(parent, problem, REFERENCE, 1024, 30, 10)


def test_a_worker_computes_on_the_inputs_it_was_given(parent: WorkerParent) -> None:
    with reference(parent) as subject:
        for number in range(2):
            x, y = make_inputs(small_graph().graph, "fresh", number)
            outcome = subject.outcome(subject.run(number), number)
            np.testing.assert_array_equal(outcome.outputs[0], np.maximum(x + y, 0))
            assert not outcome.changed


def test_forking_a_worker_takes_milliseconds_not_an_import_of_torch(parent: WorkerParent) -> None:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        with parent.fork(512) as worker:
            times.append(time.perf_counter() - start)
            assert worker.alive()
    assert min(times) < 0.3  # importing torch takes more than a second


def test_closing_a_worker_ends_it(parent: WorkerParent) -> None:
    worker = parent.fork(512)
    pid = worker._pid
    assert worker.close() == -9
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert worker.close() == 0  # a second time does nothing


def test_a_worker_ends_when_its_judge_dies(tmp_path) -> None:
    import subprocess
    import sys

    script = (
        "import os, sys\n"
        "from passnet.judge.process import WorkerParent\n"
        "parent = WorkerParent().__enter__()\n"
        "worker = parent.fork(512)\n"
        "print(worker._pid, parent._process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2
    deadline = time.monotonic() + 5
    while any(os.path.exists(f"/proc/{pid}/cmdline") and _runs(pid) for pid in pids):
        assert time.monotonic() < deadline, "an orphan goes on"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_the_clock_measures_work_in_another_process(parent: WorkerParent) -> None:
    with reference(parent, (16, 16)) as short, reference(parent, (1024, 1024)) as long:
        timed = []
        for subject in (short, long):
            subject.run(0)
            timed.append(TimedWorker(subject.worker, 2, 10))
        measured = interleave(timed, TimingPlan(seconds=0.1, min_rounds=4, max_rounds=6))
        lowest = [min(min(turns) for turns in rounds) for rounds in measured.rounds]
        assert 0 < lowest[0] < lowest[1]  # 256 elements against a million
        assert all(len(rounds) >= 4 for rounds in measured.rounds)
        number, forms = timed[1].kept_call()
        outcome = long.outcome(forms, number)
        x, y = make_inputs(small_graph((1024, 1024)).graph, "fresh", number)
        np.testing.assert_array_equal(outcome.outputs[0], np.maximum(x + y, 0))
        for item in timed:
            item.close()


def test_a_candidate_that_dies_while_timed_does_not_spoil_the_others(parent: WorkerParent) -> None:
    with reference(parent) as first, reference(parent) as second:
        timed = []
        for subject in (first, second):
            subject.run(0)
            timed.append(TimedWorker(subject.worker, 2, 10))
        os.kill(second.worker._pid, 9)
        measured = interleave(timed, TimingPlan(seconds=0.05, min_rounds=3, max_rounds=3))
        assert measured.failures[1].status == "crash"
        assert len(measured.rounds[0]) == 3 and not measured.rounds[1]
        for item in timed:
            item.close()


def test_shared_memory_cannot_be_resized_by_the_other_side() -> None:
    memory = SharedMemory("test", 4096)
    for size in (0, 1 << 20):
        with pytest.raises(OSError):
            os.ftruncate(memory.fd, size)
    memory.close()


def test_nonsense_from_a_worker_is_its_failure() -> None:
    channel, theirs = channel_pair()
    theirs.sendall((5).to_bytes(8, "little") + b"hello")
    with pytest.raises(ChannelClosedError, match="not a message"):
        channel.receive(Reply, 5)
    theirs.sendall((1 << 40).to_bytes(8, "little"))
    with pytest.raises(ChannelClosedError, match="1099511627776 bytes"):
        channel.receive(Reply, 5)
    theirs.sendall((100).to_bytes(8, "little") + b"half")
    with pytest.raises(ChannelTimeoutError):
        channel.receive(Reply, 0.1)
    theirs.close()


def test_a_request_out_of_turn_is_a_failure_and_not_a_hang(parent: WorkerParent) -> None:
    with parent.fork(512) as worker, pytest.raises(WorkerFailureError):
        worker.ask(Run(0), Fetched, 10)
    memory = SharedMemory("test", 64)
    with parent.fork(512) as worker:
        assert isinstance(worker.ask(Fetch(64), Fetched, 10, (memory.fd,)), Fetched)
    memory.close()
