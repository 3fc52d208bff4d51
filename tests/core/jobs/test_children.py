"""Child processes end with their parent, or when it says so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from passnet.core.jobs.children import shares_core, spinning
from tests.processes import runs, wait_until

FAMILY = """
import subprocess, sys, time
from passnet.core.jobs.children import end_descendants
grandchild = "import time; print('there', flush=True); time.sleep(60)"
child = "import os, subprocess, sys; os.setsid(); "
child += f"subprocess.run([sys.executable, '-c', {grandchild!r}])"
process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
process.stdout.readline()
from pathlib import Path
below = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
end_descendants()
print(process.pid, *below)
"""

PREPARING = """
import sys
from passnet.core.jobs.process import Job, JobLimits, JobRunner
prepare = "tests.core.jobs.failing_jobs:prepare_for_ever"
JobRunner().run(Job("time:sleep", "", JobLimits(), prepare, sys.argv[1]))
"""


def test_children_and_theirs_are_ended_also_in_other_sessions() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAMILY], capture_output=True, text=True, timeout=60, check=True
    )
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2
    wait_until(lambda: not any(map(runs, pids)), "a descendant stays", 5)


def test_a_parent_of_jobs_that_still_prepares_ends_with_whoever_wants_them(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", PREPARING, str(marker)]
    process = subprocess.Popen(words, env=environment)
    wait_until(lambda: marker.exists() and bool(marker.read_text()), "it does not prepare", 30)
    process.kill()
    process.wait()
    pid = int(marker.read_text())
    wait_until(lambda: not runs(pid), "the parent of jobs stays", 5)


def test_spinning_processes_end_with_their_block() -> None:
    with pytest.raises(KeyError), spinning(2) as pids:
        assert len(set(pids)) == 2 and all(map(runs, pids))
        raise KeyError
    assert not any(map(runs, pids))


def test_a_process_that_keeps_a_processor_awake_gives_way_to_all_others() -> None:
    processor = max(os.sched_getaffinity(0))
    with spinning(0, {processor}) as (pid,):
        wait_until(lambda: os.sched_getscheduler(pid) == os.SCHED_IDLE, "it takes its turns")
        assert os.sched_getaffinity(pid) == {processor}
    assert not runs(pid)


def test_a_processor_shares_no_core_with_itself() -> None:
    own = os.sched_getaffinity(0)
    assert not shares_core(min(own), {min(own)})
    assert not shares_core(10**6, own)  # of which nothing is told


def test_spinning_processes_end_with_a_process_that_is_killed() -> None:
    code = (
        "import time; from passnet.core.jobs.children import spinning\n"
        "with spinning(1) as pids:\n    print(*pids, flush=True)\n    time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        wait_until(lambda: runs(pid), "it does not begin")
        parent.kill()
    wait_until(lambda: not runs(pid), "it still spins")


ADOPTING = """
import subprocess, sys
from passnet.core.jobs.children import adopt_orphans, end_tree, reap_adopted, stat_of
from tests.processes import wait_until, zombies
import os
adopt_orphans()
child = "import subprocess, sys; print('there', flush=True); "
child += "subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
for ending in ("end_tree", "killed"):
    process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
    process.stdout.readline()
    below = lambda: open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()
    wait_until(lambda: below(), "no grandchild")
    (grandchild,) = map(int, below())
    if ending == "end_tree":
        end_tree(process)
    else:
        process.kill()
        process.wait()
        os.kill(grandchild, 9)
        wait_until(lambda: zombies(os.getpid()) == [grandchild], "it is not adopted")
        own = subprocess.Popen(["true"])
        wait_until(lambda: own.pid in zombies(os.getpid()), "it does not end")
        reap_adopted([own.pid])
        assert own.wait() == 0
    print(zombies(os.getpid()))
"""


def test_the_ended_descendants_that_a_process_adopts_are_reaped() -> None:
    words = [sys.executable, "-c", ADOPTING]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["[]", "[]"], done.stderr
