"""The command of a sandbox, how it starts and ends processes; and the choice of a sandbox."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from passnet.errors import InputError
from passnet.judge.processes import sandbox as module
from passnet.judge.processes.sandbox import NO_SANDBOX, WAYS, Sandbox, find_sandbox
from tests.judge.sandboxes import TRIED, name_of, works
from tests.processes import wait_until


@pytest.fixture(params=TRIED, ids=name_of)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """A sandbox for commands other than the parent of workers."""
    return works(request.param)


JUDGE = """
import json, subprocess, sys
process = subprocess.Popen(json.loads(sys.argv[1]))
print(process.pid, flush=True)
process.wait()
"""


@pytest.mark.parametrize("victim", ["judge", "sandbox"])
def test_all_that_it_runs_ends_with_the_judge_and_with_the_sandbox(
    sandbox: Sandbox, victim: str
) -> None:
    span = f"{3600 + os.getpid() / 1e9:.9f}"  # in no other command on this machine
    tree = f"(setsid sleep {span} &) ; sleep {span} & exec sleep {span}"
    command = json.dumps(sandbox.command(["bash", "-c", tree]))
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, command], stdout=subprocess.PIPE, text=True
    )
    assert judge.stdout is not None
    try:
        pid = int(judge.stdout.readline())
        wait_until(lambda: len(_sleepers(span)) == 3, "the tree does not start")
        os.kill(judge.pid if victim == "judge" else pid, signal.SIGKILL)
        wait_until(lambda: not _sleepers(span), f"a process outlives its {victim}")
    finally:
        for left in _sleepers(span):
            os.kill(left, signal.SIGKILL)
        judge.kill()
        judge.communicate()


def _sleepers(span: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == f"sleep\0{span}\0".encode():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_a_private_folder_is_private_even_where_it_is_to_be_seen(sandbox: Sandbox) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        text = f"touch /tmp/passnet-private && test ! -e {folder}"
        command = sandbox.command(["sh", "-c", text], [Path("/tmp")])
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not Path("/tmp/passnet-private").exists()


WRITER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import restrict

def can_write(path):
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        return False
    return True

own = Path("/proc/self/task", str(os.getpid()))
kernel = [path for path in Path("/proc/sys/kernel").iterdir() if path.is_file()]
kernel += [Path("/proc/sysrq-trigger")]
print(can_write(own / "comm"), any(map(can_write, kernel)))
try:
    restrict.restrict_proc()
except OSError:
    print("no Landlock")
else:
    forbidden = ["/proc/self/clear_refs", "/proc/self/oom_score_adj", "/proc/self/mem"]
    print(can_write(own / "comm"), any(map(can_write, [*kernel, *forbidden])))
"""


@pytest.mark.parametrize("devices", [[], [Path("/dev/tty")]], ids=["none", "a device"])
def test_threads_can_be_named_where_there_is_a_device_and_nothing_else_in_proc_is_written(
    sandbox: Sandbox, devices: list[Path]
) -> None:
    folder = Path(module.__file__).parent
    words = [sys.executable, "-S", "-c", WRITER, str(folder)]
    done = subprocess.run(
        sandbox.command(words, [folder], devices), check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    free, *restricted = done.stdout.splitlines()
    assert free == f"{bool(devices)} False"
    assert restricted in ([free], ["no Landlock"])


def test_the_command_is_the_first_process_and_session_in_tmp_and_keeps_descriptors(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    receiver, sender = os.pipe()
    facts = "f'{os.getpid()} {os.getsid(0)} {os.getcwd()}'"
    text = f"import os; os.write({sender}, {facts}.encode())"
    command = sandbox.command([sys.executable, "-c", text])
    subprocess.run(command, pass_fds=[sender], check=True, cwd=tmp_path)
    assert os.read(receiver, 100) == b"1 1 /tmp"
    for fd in (receiver, sender):
        os.close(fd)


def test_the_command_handles_signals_as_it_would_elsewhere(sandbox: Sandbox) -> None:
    words = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    outputs = [
        subprocess.run(command, check=True, capture_output=True).stdout
        for command in (words, sandbox.command(words))
    ]
    assert outputs[0] == outputs[1]


def test_where_there_is_no_sandbox_the_reasons_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    module._failure.cache_clear()
    reason = "there is no bwrap (Debian's package bubblewrap has it)"
    ways = [Sandbox("bubblewrap")]
    try:
        assert find_sandbox("auto", ways) == Sandbox("none", reason=reason)
        with pytest.raises(InputError) as caught:
            find_sandbox("bubblewrap")
        assert str(caught.value) == f"no sandbox here: {reason}"
    finally:
        module._failure.cache_clear()
    with pytest.raises(InputError, match="no sandbox 'jail'; there are auto, unshare, bubblewrap"):
        find_sandbox("jail")


def test_the_best_sandbox_that_works_is_chosen() -> None:
    working = [way for way in WAYS if not module._failure(way)]
    assert find_sandbox("auto") == next(iter(working), find_sandbox("auto"))
    for name in {way.name for way in working}:
        assert find_sandbox(name) == next(way for way in working if way.name == name)
    assert find_sandbox("none") == NO_SANDBOX
