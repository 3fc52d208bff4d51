"""Honest code works in a restricted worker; code that reaches further does not."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from passnet.core.jobs.process import Job, JobLimits, JobRunner
from passnet.core.records.folders import inductor_cache
from passnet.judge.candidate import Candidate
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.sandbox import NO_SANDBOX
from passnet.judge.processes.worker_process import Worker, WorkerFailureError
from passnet.judge.protocol.messages import CheckMatches, MatchesChecked, WorkerLimits
from passnet.passes.backend import Residual
from tests.judge.folders import GOOD, PROGRAM, write_passes
from tests.judge.sandboxes import TRIED, name_of, works

pytestmark = pytest.mark.xdist_group("sandbox")

LIMITS = WorkerLimits(2048)


@pytest.fixture(scope="module", params=TRIED, ids=name_of)
def pool(request: pytest.FixtureRequest) -> Iterator[ParentPool]:
    with ParentPool(sandbox=works(request.param)) as made:
        yield made


def load(
    pool: ParentPool, folder: Path, body: str, name: str = "x", residual: Residual = "eager"
) -> None:
    """Run Python text as the code of a pass; an exception fails the test."""
    write_passes(folder, GOOD + body)
    candidate = Candidate(name, "passes", str(folder), "direct", residual, str(folder.parent))
    with pool.of(candidate).fork(LIMITS) as worker:
        _check(worker, folder)


def _check(worker: Worker, folder: Path) -> None:
    reply = worker.ask(CheckMatches(PROGRAM, (), str(folder)), MatchesChecked, 120)
    assert reply.matches[0].num_matches == 1


STOPS_ITSELF = """
import os, signal
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
for send in (os.kill, signal.pidfd_send_signal):
    target = child if send is os.kill else os.pidfd_open(child)
    try:
        send(target, signal.SIGCONT)
    except PermissionError:
        continue
    raise AssertionError(f"{send} lets a stopped process go on")
assert os.waitpid(child, os.WNOHANG | os.WUNTRACED) == (0, 0)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""


def test_a_worker_can_stop_itself_and_nobody_in_its_sandbox_lets_it_go_on(
    pool: ParentPool, tmp_path: Path
) -> None:
    load(pool, tmp_path / "passes", STOPS_ITSELF)


MOVES = """
import os
before = os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(before)})  # it seems to work
assert os.sched_getaffinity(0) == before
"""


def test_a_worker_stays_on_its_processors(pool: ParentPool, tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one processor")
    load(pool, tmp_path / "passes", MOVES)


WORKS = """
import concurrent.futures, ctypes, fcntl, multiprocessing, pathlib, shutil, subprocess, tempfile
folder = pathlib.Path(tempfile.mkdtemp())
with open(folder / "lock", "w") as stream:
    fcntl.flock(stream, fcntl.LOCK_EX)
    fcntl.lockf(stream, fcntl.LOCK_EX)
(folder / "below").mkdir()
(folder / "lock").rename(folder / "below" / "moved")
shutil.move(folder / "below" / "moved", "/dev/shm/moved")
with concurrent.futures.ThreadPoolExecutor(2) as threads:
    assert list(threads.map(abs, [-1])) == [1]
process = multiprocessing.get_context("fork").Process(target=abs, args=(-1,))
process.start()
process.join()
assert process.exitcode == 0
for name in ("self/maps", "self/status", "cpuinfo", "meminfo", "sys/kernel/osrelease"):
    assert pathlib.Path("/proc", name).read_bytes(), name
assert os.sysconf("SC_NPROCESSORS_ONLN") > 0
torch.set_num_threads(2)
assert torch.ones(1000, 1000).sum() == 1e6
from passnet.passes import cpp
SOURCE = '#include <omp.h>\\nextern "C" void run(long* n) {\\n' \\
    '#pragma omp parallel num_threads(2)\\n#pragma omp single\\n*n = omp_get_num_threads(); }'
count = ctypes.c_long()
ctypes.CDLL(str(cpp.build(SOURCE))).run(ctypes.byref(count))
assert count.value == 2
"""


def test_what_kernels_and_compilers_need_is_there(pool: ParentPool, tmp_path: Path) -> None:
    load(pool, tmp_path / "passes", f"import os\n{WORKS}")


def test_headers_that_were_read_ahead_are_there_to_be_read(
    pool: ParentPool, tmp_path: Path
) -> None:
    text = (
        "import os, pathlib\n"
        "folder = pathlib.Path(os.environ['PASSNET_HEADERS'])\n"
        "assert (folder / 'inductor_kernel.h.gch').stat().st_size > 2**20\n"
        "try:\n    (folder / 'more').touch()\nexcept OSError:\n    pass\n"
        "else:\n    raise AssertionError('a candidate writes what others compile with')\n"
    )
    load(pool, tmp_path / "passes", text)


def test_who_starts_a_process_in_a_group_of_its_own_starts_it_in_the_usual_one(
    pool: ParentPool, tmp_path: Path
) -> None:
    text = (
        "import os, sys\n"
        "words = [sys.executable, '-S', '-c', 'import os; os._exit(os.getpgrp() == os.getpid())']\n"
        "pid = os.posix_spawn(sys.executable, words, os.environ, setpgroup=0)\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "assert code == 0, f'a group of processes of its own: {code}'\n"
    )
    load(pool, tmp_path / "passes", text)


EXTENSION = """
from torch.utils.cpp_extension import load_inline
SOURCE = "at::Tensor add_one(at::Tensor x) { return x + 1; }"
made = load_inline("passnet_added", SOURCE, functions=["add_one"])
assert made.add_one(torch.zeros(3)).sum() == 3
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ninja") is None, reason="needs ninja")
def test_torch_builds_an_extension_in_a_sandbox(pool: ParentPool, tmp_path: Path) -> None:
    load(pool, tmp_path / "passes", EXTENSION)


@pytest.mark.slow
def test_inductor_compiles_in_a_sandbox(pool: ParentPool, tmp_path: Path) -> None:
    text = "assert torch.compile(lambda x: x.sin() + 1)(torch.zeros(64)).sum() == 64\n"
    load(pool, tmp_path / "passes", text)


def test_the_reference_is_confined_and_ends_none_of_its_neighbours(pool: ParentPool) -> None:
    parent = pool.reference()
    with parent.fork(LIMITS) as one, parent.fork(LIMITS) as other:
        assert (
            Path(f"/proc/{one._host_pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
        )
        status = Path(f"/proc/{one._host_pid}/status").read_text()
        if not pool.sandbox.unrestricted:
            assert "\nSeccomp:\t2\n" in status
        cache = Path(f"/proc/{one._host_pid}/root{inductor_cache()}")
        assert cache.stat().st_ino == inductor_cache().stat().st_ino
        one.close()
        with pytest.raises(WorkerFailureError) as caught:
            other.ask(CheckMatches(PROGRAM, (), "/nowhere"), MatchesChecked, 60)
    assert caught.value.status == "compile_error", "the neighbour answers no more"


@pytest.mark.slow
def test_headers_of_inductor_are_kept_for_the_next_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    headers = tmp_path / "precompiled_headers"
    half = headers / "half.h.gch"
    (headers / "half.h_CxxBuild").mkdir(parents=True)
    half.write_bytes(b"as a compiler leaves it that is ended")
    with ParentPool(1) as pool:
        pool.reference().warm_inductor()
    assert list(headers.glob("*.gch")) and not half.exists()
    assert not list(headers.glob("*_CxxBuild"))


BORROWS = """
import os
from pathlib import Path
from torch._inductor.cpp_builder import CppBuilder

class Named(CppBuilder):
    def __init__(self, name):
        self._target_file = str(own / name)

own = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], "ab")
own.mkdir(parents=True)
Named("done.so").build()
made = own / "done.so"
assert made.read_text() == "made before"
for name in ("in_work.so", "missing.so"):
    try:
        Named(name).build()
    except AttributeError:
        continue  # the compiler's turn, for which this builder lacks everything
    raise AssertionError(f"{name} was not compiled")
try:
    made.write_text("another's")
except OSError:
    pass
else:
    raise AssertionError("a candidate writes into the cache of others")
"""


def test_passes_within_inductor_take_what_it_has_compiled_and_change_none_of_it(
    pool: ParentPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    lent = inductor_cache() / "ab"
    (lent / "in_work_CxxBuild").mkdir(parents=True)
    for name in ("done.so", "in_work.so"):
        (lent / name).write_text("made before")
    load(pool, tmp_path / "passes" / "folder", BORROWS, "within Inductor", "inlined")
    assert (lent / "done.so").read_text() == "made before"


INTRUDER = "import os\nopen(os.environ['PASSNET_TEST_MARK'], 'a').write(f'{__name__} ')\n"


def test_nothing_in_the_current_directory_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    monkeypatch.setenv("PASSNET_TEST_MARK", str(mark))
    monkeypatch.setenv("PYTHONPATH", os.pathsep + os.environ.get("PYTHONPATH", ""))
    monkeypatch.chdir(tmp_path)
    for name in ("opt_einsum", "sympy", "antigravity"):
        (tmp_path / f"{name}.py").write_text(INTRUDER)
    with ParentPool(sandbox=NO_SANDBOX) as parents:
        parents.reference().wait_ready()
    with JobRunner() as runner:
        job = Job("builtins:print", "", JobLimits(), "importlib:import_module", "antigravity")
        runner.run(job)
    assert not mark.exists(), mark.read_text()
