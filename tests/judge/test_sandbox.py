"""What every sandbox must hold: the contract, tried from inside by code that wants out."""

import json
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from passnet.errors import InputError
from passnet.graph.inputs import make_inputs
from passnet.judge.candidate import Candidate
from passnet.judge.messages import Limits
from passnet.judge.pool import ParentPool
from passnet.judge.process import WorkerFailureError
from passnet.judge.sandbox import Sandbox, find_sandbox
from passnet.judge.subject import Subject, make_problem
from tests.judge.folders import small_graph, write_passes

SANDBOXES = ["bubblewrap"]
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("passes")


@pytest.fixture(scope="module", params=SANDBOXES)
def pool(request: pytest.FixtureRequest) -> Iterator[ParentPool]:
    try:
        sandbox = find_sandbox(request.param)
    except InputError as cause:
        pytest.skip(str(cause))
    os.environ["PASSNET_TEST_SECRET"] = "a secret of the judge"
    with ParentPool(sandbox=sandbox) as made:
        yield made
    del os.environ["PASSNET_TEST_SECRET"]


@pytest.fixture
def ask(pool: ParentPool, root: Path) -> Ask:
    """Runs Python text as the code of a pass, and hands back what it assigns to `answer`."""
    graph = small_graph().graph
    problem = make_problem(graph, [make_inputs(graph, "fresh", 0)])

    def run(text: str, limits: Limits = Limits(1024)) -> Any:  # noqa: B008
        body = f"import json, os\n{text}\nraise RuntimeError('@' + json.dumps(answer) + '@')\n"
        folder = write_passes(Path(tempfile.mkdtemp(dir=root)), body)
        candidate = Candidate("x", "passes", str(folder), "direct", root=str(root))
        subject = Subject(pool.of(candidate), problem, candidate, limits, 60, 10)
        try:
            with pytest.raises(WorkerFailureError) as caught, subject:
                pass
        finally:
            subject.worker.close()
        run.num_left = subject.worker.num_left  # type: ignore[attr-defined]
        assert "@" in caught.value.text, caught.value
        return json.loads(caught.value.text.split("@")[1])

    return run


TRY_TO_WRITE = """
answer = {}
for place in PLACES:
    try:
        with open(place, "w") as stream:
            stream.write("here")
        answer[place] = "written"
    except OSError as cause:
        answer[place] = type(cause).__name__
"""


def test_files_can_be_written_in_private_folders_only(ask: Ask, root: Path) -> None:
    package = Path(__file__).parents[2] / "src" / "passnet" / "intruder"
    places = [str(root / "x"), str(Path.home() / "passnet-intruder"), "/etc/passnet-intruder",
              "/passnet-intruder", str(package), "/var/tmp/passnet-intruder"]  # fmt: skip
    found = ask(
        TRY_TO_WRITE.replace(
            "PLACES", repr([*places, "/tmp/passnet-intruder", "/dev/shm/passnet-intruder"])
        )
    )
    for place in places:
        assert found[place] in ("OSError", "PermissionError"), place
        assert not Path(place).exists()
    assert found["/tmp/passnet-intruder"] == found["/dev/shm/passnet-intruder"] == "written"
    assert (
        not Path("/tmp/passnet-intruder").exists()
        and not Path("/dev/shm/passnet-intruder").exists()
    )


def test_private_folders_have_an_end(ask: Ask) -> None:
    text = (
        "answer = {}\n"
        "for place in ('/tmp', '/dev/shm'):\n"
        "    stat = os.statvfs(place)\n"
        "    answer[place] = stat.f_blocks * stat.f_frsize\n"
    )
    assert all(size <= 2 * 2**30 for size in ask(text).values())


def test_a_file_has_a_largest_size(ask: Ask) -> None:
    text = (
        "import signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "try:\n"
        "    with open('/tmp/large', 'wb') as stream:\n"
        "        stream.truncate(2**20 + 1)\n"
        "    answer = 'written'\n"
        "except OSError as cause:\n"
        "    answer = cause.strerror\n"
    )
    assert ask(text, Limits(1024, file_mib=1)) == "File too large"


def test_there_is_no_network(ask: Ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = (
            "import socket\n"
            "try:\n"
            f"    socket.create_connection(('127.0.0.1', {port}), 2)\n"
            "    answer = 'connected'\n"
            "except OSError as cause:\n"
            "    answer = type(cause).__name__\n"
        )
        socket.create_connection(("127.0.0.1", port), 2).close()
        assert ask(text) == "ConnectionRefusedError"


def test_no_process_of_the_machine_can_be_seen(ask: Ask) -> None:
    found = ask("answer = sorted(int(item) for item in os.listdir('/proc') if item.isdecimal())")
    assert len(found) == 2 and found[0] == 1
    assert os.getpid() not in found or os.getpid() in (1, 2)


def test_the_parent_of_workers_can_be_neither_killed_nor_read(ask: Ask) -> None:
    text = (
        "import signal\n"
        "for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGSEGV):\n"
        "    os.kill(1, number)\n"
        "answer = []\n"
        "for place in ('/proc/1/mem', '/proc/1/environ', '/proc/1/fd/3'):\n"
        "    try:\n"
        "        open(place, 'rb').read(1)\n"
        "        answer.append(place)\n"
        "    except OSError:\n"
        "        pass\n"
    )
    assert ask(text) == []
    assert ask("answer = 'goes on'") == "goes on"


def test_the_environment_holds_no_secret(ask: Ask) -> None:
    assert "PASSNET_TEST_SECRET" not in ask("answer = dict(os.environ)")


DAEMON = """
answer = 0
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import time
        with open("/proc/self/comm", "w") as stream:
            stream.write("NAME")
        while True:
            time.sleep(0.01)
    os._exit(0)
os.wait()
"""


def test_what_a_worker_leaves_behind_is_counted_and_ended(ask: Ask) -> None:
    name = f"left{os.getpid()}"
    ask(DAEMON.replace("NAME", name))
    assert ask.num_left == 1  # type: ignore[attr-defined]
    deadline = time.monotonic() + 5
    while name in _names_of_processes():
        assert time.monotonic() < deadline, "a daemon outlives its worker"
        time.sleep(0.05)
    ask("answer = 0")
    assert ask.num_left == 0  # type: ignore[attr-defined]


def _names_of_processes() -> set[str]:
    names = set()
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            names.add(path.read_text().strip())
        except OSError:
            continue
    return names


def test_no_capability_is_left_and_none_can_be_gained(ask: Ask) -> None:
    text = "answer = dict(line.split(':') for line in open('/proc/self/status') if ':' in line)"
    status = {name: value.strip() for name, value in ask(text).items()}
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert status["NoNewPrivs"] == "1"


def test_processor_time_has_an_end(pool: ParentPool, root: Path) -> None:
    folder = write_passes(Path(tempfile.mkdtemp(dir=root)), "while True: pass\n")
    graph = small_graph().graph
    problem = make_problem(graph, [make_inputs(graph, "fresh", 0)])
    candidate = Candidate("x", "passes", str(folder), "direct", root=str(root))
    subject = Subject(pool.of(candidate), problem, candidate, Limits(1024, cpu_s=1), 30, 10)
    start = time.monotonic()
    with pytest.raises(WorkerFailureError) as caught, subject:
        pass
    assert caught.value.status == "crash" and time.monotonic() - start < 10
    assert "SIGKILL" in caught.value.text or "SIGXCPU" in caught.value.text


@pytest.mark.skipif(os.getuid() == 0, reason="Linux exempts root from the limit of processes")
def test_processes_have_a_number(ask: Ask) -> None:
    text = (
        "answer = 0\n"
        "try:\n"
        "    while answer < 200:\n"
        "        if os.fork() == 0:\n"
        "            import time\n"
        "            time.sleep(60)\n"
        "        answer += 1\n"
        "except OSError:\n"
        "    pass\n"
    )
    assert ask(text, Limits(1024, num_processes=100)) < 100


def test_where_there_is_no_sandbox_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from passnet.judge import sandbox

    monkeypatch.setenv("PATH", "/nowhere")
    sandbox._bubblewrap.cache_clear()
    try:
        assert find_sandbox("auto") == Sandbox(
            "none", reason="there is no bwrap (Debian's package bubblewrap has it)"
        )
        with pytest.raises(InputError, match="no sandbox here: there is no bwrap"):
            find_sandbox("bubblewrap")
    finally:
        sandbox._bubblewrap.cache_clear()
    with pytest.raises(InputError, match="no sandbox 'jail'; there are auto"):
        find_sandbox("jail")
