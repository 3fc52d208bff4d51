"""One process at a time works in the folder of a run, and the second is told who does."""

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from passnet.core.jobs.folder_lock import LOCK_FILE, folder_lock
from passnet.errors import InputError

HOLD = """
import subprocess, sys, time
from pathlib import Path
from passnet.core.jobs.folder_lock import folder_lock
with folder_lock(Path(sys.argv[1])):
    child = subprocess.Popen(["sleep", "60"])
    print(child.pid, flush=True)
    time.sleep(60)
"""


def test_the_second_is_told_who_works_in_the_folder(tmp_path: Path) -> None:
    with folder_lock(tmp_path):
        with pytest.raises(InputError) as refusal, folder_lock(tmp_path):
            pass
        text = str(refusal.value)
        holder = f"in use by process {os.getpid()} on {socket.gethostname()}, since 20"
        assert text.startswith(f"{tmp_path}: {holder}") and Path(sys.argv[0]).name in text
    assert not list(tmp_path.iterdir())
    with folder_lock(tmp_path):
        pass


def test_a_kill_lets_go_of_it_though_what_was_started_lives_on(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    try:
        with pytest.raises(InputError, match=f"process {holder.pid} on"), folder_lock(tmp_path):
            pass
        holder.kill()
        holder.wait()
        assert (tmp_path / LOCK_FILE).exists()
        with folder_lock(tmp_path):
            os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)
        holder.stdout.close()


def test_who_holds_it_need_not_have_said_so_yet(tmp_path: Path) -> None:
    with (tmp_path / LOCK_FILE).open("wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="in use by another process; "), folder_lock(tmp_path):
            pass


def test_a_file_system_without_locks_goes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with folder_lock(tmp_path), folder_lock(tmp_path):
        pass


def test_a_planted_link_is_no_lock_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "run"
    victim.write_text("precious")
    folder.mkdir()
    for plant in (Path.symlink_to, Path.hardlink_to):
        plant(folder / LOCK_FILE, victim)
        with pytest.raises(InputError, match="remove it"), folder_lock(folder):
            pass
        assert victim.read_text() == "precious"
        (folder / LOCK_FILE).unlink()
