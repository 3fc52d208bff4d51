"""The contract of every sandbox, tried from inside by code that wants out."""

import json
import os
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes import sandbox as module
from passnet.judge.processes.loaded_worker import LoadedWorker, prepare_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.sandbox import NO_SANDBOX, Sandbox
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import JudgeSettings, TimingPlan
from tests.judge.folders import GOOD, small_graph, write_passes
from tests.judge.sandboxes import TRIED, name_of, works
from tests.processes import runs, wait_until

pytestmark = pytest.mark.xdist_group("sandbox")  # they share parents of workers

Ask = Callable[..., Any]


confined = pytest.mark.parametrize("pool", TRIED, indirect=True, ids=name_of, scope="module")
"""A test of what every sandbox holds."""

everywhere = pytest.mark.parametrize(
    "pool", [*TRIED, NO_SANDBOX], indirect=True, ids=name_of, scope="module"
)
"""A test of what holds without a sandbox too."""


@pytest.fixture(scope="module")
def pool(request: pytest.FixtureRequest) -> Iterator[ParentPool]:
    os.environ["PASSNET_TEST_SECRET"] = "a secret of the judge"
    with ParentPool(sandbox=works(request.param)) as made:
        yield made
    del os.environ["PASSNET_TEST_SECRET"]


@pytest.fixture
def ask(pool: ParentPool, root: Path) -> Ask:
    """Run Python text as the code of a pass; return the value that it assigns to `answer`."""
    graph = small_graph().graph
    problem = prepare_graph(graph, [make_inputs(graph, "fresh", 0)])

    def run(
        text: str,
        limits: WorkerLimits = WorkerLimits(1024),  # noqa: B008
        name: str = "x",
        home: Path | None = None,
    ) -> Any:
        body = f"import json, os\n{text}\nraise RuntimeError('@' + json.dumps(answer) + '@')\n"
        folder = write_passes(home or Path(tempfile.mkdtemp(dir=root)), body)
        candidate = Candidate(name, "passes", str(folder), "direct", root=str(root))
        subject = LoadedWorker(
            pool.of(candidate),
            problem,
            candidate,
            JudgeSettings(limits=limits, compile_timeout_s=60, call_timeout_s=10),
        )
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


@confined
def test_files_can_be_written_in_private_folders_only(ask: Ask, root: Path) -> None:
    package = Path(__file__).parents[2] / "src" / "passnet" / "intruder"
    places = [str(root / "x"), str(Path.home() / "passnet-intruder"), "/etc/passnet-intruder",
              "/passnet-intruder", str(package), "/var/tmp/passnet-intruder",
              "/dev/passnet-intruder"]  # fmt: skip
    private = [f"{folder}/passnet-intruder" for folder in module.PRIVATE]
    found = ask(TRY_TO_WRITE.replace("PLACES", repr([*places, *private])))
    there = [place for place in [*places, *private] if Path(place).exists()]
    for place in there:
        Path(place).unlink()
    assert there == []
    for place in places:
        assert found[place] in ("OSError", "PermissionError"), place
    assert all(found[place] == "written" for place in private)


@confined
def test_a_candidate_sees_neither_what_another_wrote_nor_other_folders_below_tmp(
    ask: Ask, root: Path, tmp_path: Path
) -> None:
    places = [f"{folder}/passnet-for-another" for folder in module.PRIVATE]
    writing, home = TRY_TO_WRITE.replace("PLACES", repr(places)), root / "its own"
    assert set(ask(writing, home=home).values()) == {"written"}
    text = f"answer = [os.path.exists(item) for item in {[*places, str(tmp_path)]!r}]"
    assert ask(text, home=home) == [True, True, True, False]
    assert ask(text, name="another") == [False] * 4
    assert ask(text) == [False] * 4, "another folder of the same candidate"


@confined
def test_no_descriptor_leads_out_of_the_sandbox(ask: Ask, tmp_path: Path) -> None:
    text = f"""
answer = []
for number in range(256):
    try:
        os.stat({str(tmp_path)[1:]!r}, dir_fd=number)
        answer.append(number)
    except OSError:
        pass
"""
    assert tmp_path.is_relative_to("/tmp") and ask(text) == []


UNDO = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
REMOUNT, BIND, DETACH, NEW_USER, NEW_MOUNTS = 32, 4096, 2, 0x10000000, 0x20000

def undone():
    done = []
    for place in ("/", "/proc", "/dev", "/sys", FOLDER):
        for flags in (REMOUNT, REMOUNT | BIND, REMOUNT | BIND | 2 | 4):  # nosuid, nodev as before
            if libc.mount(None, place.encode(), None, ctypes.c_ulong(flags), None) == 0:
                done.append("remount " + place)
    for place in (FOLDER, "/tmp", "/run", "/dev/shm", "/dev", "/proc"):
        if libc.umount2(place.encode(), DETACH) == 0:
            done.append("umount " + place)
    return done

answer = undone()
receiver, sender = os.pipe()
if os.fork() == 0:
    entered = libc.unshare(NEW_USER | NEW_MOUNTS) == 0
    os.write(sender, json.dumps(undone() if entered else []).encode())
    os._exit(0)
os.wait()
answer += json.loads(os.read(receiver, 4096))
"""


@confined
def test_mounts_cannot_be_undone_not_even_in_another_user_namespace(ask: Ask, root: Path) -> None:
    assert ask(UNDO.replace("FOLDER", repr(str(root)))) == []


@confined
def test_neither_the_kernel_nor_a_disk_can_be_reached(ask: Ask) -> None:
    text = """
answer = []
for place in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger"):
    try:
        os.close(os.open(place, os.O_WRONLY))
        answer.append(place)
    except OSError:
        pass
known = "core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"
answer += set(os.listdir("/dev")) - set(known.split())
with open("/dev/null", "w") as stream:
    stream.write("can be written")
"""
    assert ask(text) == []


@confined
@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a device file")
def test_a_device_file_outside_dev_is_none(ask: Ask, root: Path) -> None:
    place = root / "zero"
    try:
        os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError as cause:
        pytest.skip(f"no device file can be made here: {cause}")
    try:
        assert place.open("rb").read(1) == b"\0"
        text = f"try:\n    answer = len(open({str(place)!r}, 'rb').read(1))\n"
        assert ask(text + "except OSError as cause:\n    answer = cause.strerror\n") == (
            "Permission denied"
        )
    finally:
        place.unlink()


@confined
def test_private_folders_have_an_end(ask: Ask) -> None:
    text = (
        "answer = []\n"
        f"for place in {module.PRIVATE!r}:\n"
        "    stat = os.statvfs(place)\n"
        "    answer.append(stat.f_blocks * stat.f_frsize)\n"
    )
    assert set(ask(text)) == {module.PRIVATE_BYTES}


@everywhere
def test_a_file_has_a_largest_size(ask: Ask) -> None:
    text = (
        "import signal, tempfile\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "try:\n"
        "    with tempfile.TemporaryFile() as stream:\n"
        "        stream.truncate(2**20 + 1)\n"
        "    answer = 'written'\n"
        "except OSError as cause:\n"
        "    answer = cause.strerror\n"
    )
    assert ask(text, WorkerLimits(1024, file_mib=1)) == "File too large"


@everywhere
def test_memory_has_an_end(ask: Ask) -> None:
    text = (
        "try:\n"
        "    answer = len(bytearray(2**30))\n"
        "except MemoryError as cause:\n"
        "    answer = type(cause).__name__\n"
    )
    assert ask(text, WorkerLimits(256)) == "MemoryError"


@confined
def test_there_is_no_network(ask: Ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = (
            "import socket\n"
            "answer = [name for _, name in socket.if_nameindex()]\n"
            "try:\n"
            f"    socket.create_connection(('127.0.0.1', {port}), 2)\n"
            "    answer.append('connected')\n"
            "except OSError:\n"
            "    pass\n"
        )
        socket.create_connection(("127.0.0.1", port), 2).close()
        assert ask(text) == ["lo"]


@confined
def test_no_service_of_the_machine_can_be_reached(ask: Ask) -> None:
    place = Path(tempfile.mkdtemp(dir=_writable("/run", os.environ.get("XDG_RUNTIME_DIR", ""))))
    addresses = [str(place / "socket"), f"\0passnet-{os.getpid()}"]
    servers = [socket.socket(socket.AF_UNIX) for _ in addresses]
    try:
        for server, address in zip(servers, addresses, strict=True):
            server.bind(address)
            server.listen()
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(address)
        text = (
            "import socket\n"
            "answer = []\n"
            f"for address in {addresses!r}:\n"
            "    try:\n"
            "        socket.socket(socket.AF_UNIX).connect(address)\n"
            "        answer.append(address)\n"
            "    except OSError:\n"
            "        pass\n"
        )
        assert ask(text) == []
    finally:
        for server in servers:
            server.close()
        Path(addresses[0]).unlink(missing_ok=True)
        place.rmdir()


def _writable(*folders: str) -> str:
    for folder in folders:
        if folder and os.access(folder, os.W_OK):
            return folder
    pytest.skip("there is no folder for sockets in which this user can make one")


@confined
def test_its_namespaces_are_its_own(ask: Ask) -> None:
    kinds = ("ipc", "mnt", "net", "pid", "uts")
    inside = ask(f"answer = [os.readlink('/proc/self/ns/' + kind) for kind in {kinds!r}]")
    assert not set(inside) & {str(Path("/proc/self/ns", kind).readlink()) for kind in kinds}


@confined
def test_no_process_of_the_machine_can_be_seen(ask: Ask) -> None:
    found = ask("answer = sorted(int(item) for item in os.listdir('/proc') if item.isdecimal())")
    assert len(found) == 2 and found[0] == 1
    assert os.getpid() not in found or os.getpid() in (1, 2)


@confined
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


@confined
def test_the_environment_holds_no_secret(ask: Ask) -> None:
    assert "PASSNET_TEST_SECRET" not in ask("answer = dict(os.environ)")


DAEMON = """
answer = 0
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import ctypes, time
        ctypes.CDLL(None).prctl(15, b"NAME", 0, 0, 0)  # PR_SET_NAME
        while True:
            time.sleep(0.01)
    os._exit(0)
os.wait()
"""


@confined
def test_what_a_worker_leaves_behind_is_counted_and_ended(ask: Ask) -> None:
    name = f"left{os.getpid()}"
    ask(DAEMON.replace("NAME", name))
    assert ask.num_left == 1  # type: ignore[attr-defined]
    wait_until(lambda: name not in _names_of_processes(), "a daemon outlives its worker", 5)
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


@confined
def test_no_capability_is_left_and_none_can_be_gained(ask: Ask) -> None:
    text = "answer = dict(line.split(':') for line in open('/proc/self/status') if ':' in line)"
    status = {name: value.strip() for name, value in ask(text).items()}
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[kind], 16) == 0, kind
    assert status["NoNewPrivs"] == "1"


@pytest.mark.parametrize("pool", [Sandbox("unshare")], indirect=True, ids=name_of, scope="module")
def test_a_user_namespace_below_its_own_cannot_be_made(ask: Ask) -> None:
    text = "import ctypes\nif os.fork() == 0:\n    os._exit(LIBC.unshare(NEW_USER) == 0)\n"
    text = text.replace("LIBC", "ctypes.CDLL(None)").replace("NEW_USER", "0x10000000")
    assert ask(f"{text}answer = os.wait()[1]") == 0


@confined
def test_an_honest_pass_is_judged_as_usual(pool: ParentPool, root: Path) -> None:
    folder = write_passes(Path(tempfile.mkdtemp(dir=root)), GOOD)
    candidate = Candidate("good", "passes", str(folder), "direct", root=str(root))
    settings = JudgeSettings(
        timing=TimingPlan(seconds=0.02, min_rounds=3, max_rounds=3, keeps_awake=False),
        limits=WorkerLimits(1024),
        self_tolerance=1e9,
    )
    (trial,) = judge_graph(pool, small_graph(), [candidate], settings)
    assert (trial.status, trial.smallest_t) == ("ok", -10), trial.error


@everywhere
def test_processor_time_has_an_end(pool: ParentPool, root: Path) -> None:
    folder = write_passes(Path(tempfile.mkdtemp(dir=root)), "while True: pass\n")
    graph = small_graph().graph
    problem = prepare_graph(graph, [make_inputs(graph, "fresh", 0)])
    candidate = Candidate("x", "passes", str(folder), "direct", root=str(root))
    subject = LoadedWorker(
        pool.of(candidate),
        problem,
        candidate,
        JudgeSettings(limits=WorkerLimits(1024, cpu_s=1), compile_timeout_s=30, call_timeout_s=10),
    )
    start = time.monotonic()
    with pytest.raises(WorkerFailureError) as caught, subject:
        pass
    assert caught.value.status == "crash" and time.monotonic() - start < 10
    assert "SIGKILL" in caught.value.text or "SIGXCPU" in caught.value.text


@everywhere
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
    assert ask(text, WorkerLimits(1024, num_processes=100)) < 100


@pytest.mark.parametrize("way", TRIED, ids=name_of)
def test_a_parent_that_is_ended_while_its_sandbox_starts_leaves_nothing(
    way: Sandbox, tmp_path: Path
) -> None:
    for delay_ms in range(0, 20, 2):
        parent = WorkerParent(sandbox=works(way), visible=[tmp_path])
        parent.start()
        time.sleep(delay_ms / 1000)
        parent.close()

    def is_left() -> bool:
        lines = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal() and runs(int(folder.name)):
                with suppress(OSError):
                    lines.append((folder / "cmdline").read_bytes())
        return any(os.fsencode(tmp_path) in line for line in lines)

    wait_until(lambda: not is_left(), "a process of a sandbox stays")
