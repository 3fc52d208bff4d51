"""The process boundary: forking, killing, shared memory, and a clock outside the worker."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from passnet.core.jobs.children import python_environment
from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import REFERENCE, Candidate
from passnet.judge.processes.loaded_worker import LoadedWorker, PreparedGraph, prepare_graph
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.channel import ChannelClosedError, ChannelTimeoutError, channel_pair
from passnet.judge.protocol.device import device_environment
from passnet.judge.protocol.messages import Fetch, Fetched, Ran, Reply, Run, WorkerLimits
from passnet.judge.protocol.shared_memory import SharedMemory
from passnet.judge.settings import JudgeSettings, TimingPlan
from passnet.judge.timing.clock import Measurement, interleave
from passnet.judge.timing.fresh_inputs import FreshInputs
from passnet.judge.timing.timed_worker import TimedWorker
from tests.judge.folders import small_graph, write_passes
from tests.processes import runs, wait_until

pytestmark = pytest.mark.xdist_group("worker")


@pytest.fixture(scope="module")
def parent() -> Iterator[WorkerParent]:
    with WorkerParent() as made:
        yield made


def reference(
    parent: WorkerParent, shape: tuple[int, ...] = (64, 64), sets: int = 2
) -> LoadedWorker:
    graph = small_graph(shape).graph
    problem = prepare_graph(graph, [make_inputs(graph, "fresh", seed) for seed in range(sets)])
    return LoadedWorker(
        parent,
        problem,
        REFERENCE,
        JudgeSettings(limits=WorkerLimits(1024), compile_timeout_s=30, call_timeout_s=10),
    )


def test_a_parent_that_is_not_wanted_any_more_ends_without_a_word() -> None:
    ours, theirs = socket.socketpair()
    module = "passnet.judge.worker.zygote"
    command = [sys.executable, "-P", "-m", module, str(theirs.fileno()), "cpu", "shared"]
    with theirs:
        environment = {**python_environment(), **device_environment("cpu")}
        started = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, env=environment
        )
    ours.close()
    _, words = started.communicate(timeout=60)
    assert (started.returncode, words) == (0, b"")


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
        with parent.fork(WorkerLimits(512)) as worker:
            times.append(time.perf_counter() - start)
            assert not worker.has_spoken()
    assert min(times) < 0.3  # importing torch takes more than a second


def test_closing_a_worker_ends_it(parent: WorkerParent) -> None:
    worker = parent.fork(WorkerLimits(512))
    pid = worker._pid
    assert worker.close() in (0, -9)  # gone by itself when its channel closed, or killed
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert worker.close() == 0  # a second time does nothing


@pytest.mark.slow
def test_workers_of_a_warm_parent_compile_with_inductor_and_it_stays_single_threaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what Inductor knows from earlier runs would spare it most of its work, and its threads
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    with WorkerParent() as parent:
        parent.warm_inductor()
        parent.warm_inductor()  # a second time does nothing
        assert len(list(Path(f"/proc/{parent._process.pid}/task").iterdir())) == 1
        graph = small_graph().graph
        problem = prepare_graph(graph, [make_inputs(graph, "fresh", 0)])
        candidate = Candidate("inductor", "inductor")
        with LoadedWorker(
            parent,
            problem,
            candidate,
            JudgeSettings(limits=WorkerLimits(4096), compile_timeout_s=120, call_timeout_s=10),
        ) as subject:
            x, y = make_inputs(graph, "fresh", 0)
            outcome = subject.outcome(subject.run(0), 0)
            np.testing.assert_array_equal(outcome.outputs[0], np.maximum(x + y, 0))


HANGS = """
import os, sys, threading, time
from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import Candidate
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.processes.loaded_worker import LoadedWorker, prepare_graph
from passnet.judge.settings import JudgeSettings
from passnet.judge.timing.timed_worker import TimedWorker
from tests.judge.folders import small_graph

graph = small_graph().graph
prepared = prepare_graph(graph, [make_inputs(graph, "fresh", 0)])
parent = WorkerParent().__enter__()
candidate = Candidate("x", "passes", sys.argv[1], "direct")
settings = JudgeSettings(limits=WorkerLimits(512))
loaded = LoadedWorker(parent, prepared, candidate, settings)
threading.Thread(target=loaded.__enter__, daemon=True).start()
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
print(loaded.worker._pid, parent._process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_worker_ends_when_its_judge_dies_even_in_an_endless_loop(tmp_path: Path) -> None:
    mark = tmp_path / "looping"
    folder = write_passes(tmp_path / "passes", f"open({str(mark)!r}, 'w')\nwhile True: pass\n")
    done = subprocess.run(
        [sys.executable, "-c", HANGS, str(folder), str(mark)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2, done.stderr
    wait_until(lambda: not any(runs(pid) for pid in pids), "an orphan goes on", 5)


def timed(*subjects: LoadedWorker) -> list[TimedWorker]:
    for subject in subjects:
        subject.run(0)
    return [TimedWorker(subject, 50, 10) for subject in subjects]


def measure(workers: list[TimedWorker], problem: PreparedGraph, plan: TimingPlan) -> Measurement:
    """Measure all workers but the last, which is the oracle."""
    random = np.random.default_rng(0)
    fresh = FreshInputs(problem.tensors, problem.input_sets, random)
    *subjects, oracle = workers
    return interleave(subjects, oracle, plan, fresh, random, problem)


def rounds(count: int) -> TimingPlan:
    return TimingPlan(seconds=0.05, min_rounds=count, max_rounds=count)


@pytest.fixture
def trio(parent: WorkerParent) -> Iterator[list[TimedWorker]]:
    """Two references, ready to be timed, and an oracle."""
    with reference(parent) as first, reference(parent) as second, reference(parent) as third:
        workers = timed(first, second, third)
        yield workers
        for item in workers:
            item.close()


@pytest.fixture
def problem() -> PreparedGraph:
    graph = small_graph().graph
    return prepare_graph(graph, [make_inputs(graph, "fresh", seed) for seed in range(2)])


def test_the_clock_measures_work_in_another_process(parent: WorkerParent) -> None:
    lowest = []
    for shape in ((16, 16), (1024, 1024)):
        with ExitStack() as stack:
            loaded = [stack.enter_context(reference(parent, shape)) for _ in range(3)]
            workers = timed(*loaded)
            measured = measure(workers, loaded[0].prepared, rounds(4))
            assert [len(timing.rounds_ms) for timing in measured.timings] == [4, 4]
            assert [timing.comparison.t for timing in measured.timings] == [-10, -10]
            lowest.append(min(min(turns) for turns in measured.timings[1].rounds_ms))
            for item in workers:
                item.close()
    assert 0 < lowest[0] < lowest[1]  # 256 elements against a million


@pytest.mark.parametrize(("slow_ms", "num_rounds", "num_calls"), [(0.0, 3, 2), (1e6, 6, 3)])
def test_slow_calls_are_fewer(
    trio: list[TimedWorker], problem: PreparedGraph, slow_ms: float, num_rounds: int, num_calls: int
) -> None:
    plan = TimingPlan(seconds=0.0, burst_ms=0.0, slow_ms=slow_ms, audit_share=0.5)
    measured = measure(trio, problem, plan)
    assert [len(timing.rounds_ms) for timing in measured.timings] == [num_rounds, num_rounds]
    assert measured.timings[0].calls_per_turn == num_calls
    assert [timing.comparison.t for timing in measured.timings] == [-10, -10]


def test_a_candidate_that_dies_while_timed_does_not_spoil_the_others(
    trio: list[TimedWorker], problem: PreparedGraph
) -> None:
    os.kill(trio[1].worker._pid, 9)
    measured = measure(trio, problem, rounds(3))
    assert (measured.timings[1].failure or pytest.fail()).status == "crash"
    assert len(measured.timings[0].rounds_ms) == 3 and not measured.timings[1].rounds_ms


def test_the_memory_of_a_worker_is_read_from_outside(parent: WorkerParent) -> None:
    with parent.fork(WorkerLimits(512)) as worker, pytest.raises(WorkerFailureError) as caught:
        worker.read(8, 16)
    assert caught.value.status == "crash" and "does not lie in the memory" in caught.value.text


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
    with parent.fork(WorkerLimits(512)) as worker, pytest.raises(WorkerFailureError):
        worker.ask(Run(0), Fetched, 10)
    memory = SharedMemory("test", 64)
    with parent.fork(WorkerLimits(512)) as worker:
        assert isinstance(worker.ask(Fetch(64), Fetched, 10, (memory.fd,)), Fetched)
    memory.close()


def test_an_answer_to_another_question_is_a_failure(parent: WorkerParent) -> None:
    memory = SharedMemory("test", 64)
    with (
        parent.fork(WorkerLimits(512)) as worker,
        pytest.raises(WorkerFailureError, match="the worker answered Fetched") as caught,
    ):
        worker.ask(Fetch(64), Ran, 10, (memory.fd,))
    assert caught.value.status == "crash"
    memory.close()


BUSY = """
import time
calls = []
def replacement(x, y):
    calls.append(x)
    until = time.process_time() + ({seconds} if len(calls) > 1 else 0)
    while time.process_time() < until:
        pass
    return torch.clamp(x + y, min=0)
"""


@pytest.mark.parametrize(("seconds", "status"), [(1.6, None), (60, "timeout")])
def test_what_other_programs_take_does_not_count_as_a_workers_time(
    parent: WorkerParent, tmp_path: Path, seconds: float, status: str | None
) -> None:
    graph = small_graph().graph
    problem = prepare_graph(graph, [make_inputs(graph, "fresh", 0)])
    folder = write_passes(tmp_path / "busy", BUSY.format(seconds=seconds))
    candidate = Candidate("busy", "passes", str(folder), "direct")
    settings = JudgeSettings(limits=WorkerLimits(1024), compile_timeout_s=30, call_timeout_s=2)
    place = min(os.sched_getaffinity(0))
    others = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(4)]
    try:
        with LoadedWorker(parent, problem, candidate, settings) as loaded:
            loaded.run(0)  # the first call may take as long as a compilation
            for pid in (loaded.worker._host_pid, *(other.pid for other in others)):
                os.sched_setaffinity(pid, {place})
            start = time.monotonic()
            if status is None:
                loaded.run(0)
                assert time.monotonic() - start > settings.call_timeout_s, "it did not wait"
            else:
                with pytest.raises(WorkerFailureError) as why:
                    loaded.run(0)
                assert why.value.status == status
                assert time.monotonic() - start < 6.5 * settings.call_timeout_s
    finally:
        for other in others:
            other.kill()
            other.wait()
