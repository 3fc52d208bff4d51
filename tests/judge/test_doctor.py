"""An intruder's attempts succeed where nothing prevents them, and fail in a sandbox."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from passnet.judge.processes.sandbox import NO_SANDBOX, Sandbox, find_sandbox
from passnet_audit.judge import intruder
from passnet_audit.judge.doctor import TRIED as ATTEMPTED
from passnet_audit.judge.doctor import _victim, examine
from tests.bench.runs import passnet
from tests.judge.sandboxes import TRIED, name_of, works

pytestmark = pytest.mark.xdist_group("sandbox")

OF_USE_ELSEWHERE = {
    "reach_network", "write_outside", "see_processes", "signal_process", "access_memory", "trace",
    "map_twice", "make_memory_file",
    "feel_locks", "watch_file", "continue_itself", "see_pages", "fill_memory", "fill_disk",
}  # fmt: skip
"""What any user can do where nothing prevents it, on any kernel."""


def test_every_attempt_is_described() -> None:
    assert set(intruder.ATTEMPTS) == {*ATTEMPTED, "take_locks"}


@pytest.mark.parametrize("way", TRIED, ids=name_of)
def test_no_attempt_is_of_use_in_a_sandbox(way: Sandbox) -> None:
    if unrestricted := works(way).unrestricted:
        pytest.skip(" ".join(unrestricted))
    assert [attempt.tried for attempt in examine(way) if not attempt.is_confined] == []


def test_attempts_are_of_use_where_nothing_prevents_them(tmp_path: Path) -> None:
    with _victim() as facts:
        facts |= {"folders": [str(tmp_path)], "memory_mib": 1, "file_mib": 1}
        assert _tried({**facts, "attempts": ["take_locks"]}, tmp_path, then=facts) == {"feel_locks"}
        alone = sorted(OF_USE_ELSEWHERE - {"feel_locks"})
        assert _tried({**facts, "attempts": alone}, tmp_path) == set(alone)


def _tried(order: dict, folder: Path, then: dict | None = None) -> set[str]:
    """Return the successes of an order in a process of its own; or of `feel_locks` in another."""
    place = folder / f"order-{then is None}.json"
    place.write_text(json.dumps(order))
    text = (
        "import sys\nfrom passnet_audit.judge.intruder import run\n"
        "try:\n    run(sys.argv[1])\nexcept RuntimeError as answer:\n"
        "    print(str(answer).strip('@'), flush=True)\nsys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", text, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    answer = set(json.loads(process.stdout.readline()))
    if then is not None:
        answer |= _tried({**then, "attempts": ["feel_locks"]}, folder)
    process.communicate()
    return answer


def test_without_a_sandbox_nothing_is_tried_and_the_command_says_what_to_install() -> None:
    assert {attempt.by for attempt in examine(NO_SANDBOX)} == {None}
    done = passnet("judge", "doctor", "--sandbox", "none")
    assert done.returncode == 1
    assert "Nothing confines candidates (switched off): install bubblewrap." in done.stdout


@pytest.mark.slow
def test_the_command_exits_with_zero_where_all_is_confined() -> None:
    done = passnet("judge", "doctor", "--json")
    said = json.loads(done.stdout)
    assert said["sandbox"] == find_sandbox().name
    is_confined = all(attempt["is_confined"] for attempt in said["attempts"])
    assert (done.returncode == 0) == is_confined
    assert is_confined or said["remedies"] or os.getuid() == 0
