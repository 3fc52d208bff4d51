"""The service as a whole, with the judge and its sandbox at work."""

import asyncio
import os
import shutil
import signal
import socket
import stat
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from passnet.core.jobs.children import descendants
from passnet.core.records.serialise import encode
from passnet.errors import InputError
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.suite.suite import make_suite, row_of_graph
from passnet.train.service.client import ServiceDesk, judge_all_now
from passnet.train.service.submission import Submission
from passnet_service.jobs import judge_job
from passnet_service.judges import ProcessJudge
from passnet_service.judging import JobJudge
from passnet_service.settings import ServiceSettings, parse_devices
from tests.bench.runs import passnet
from tests.judge.folders import GOOD, small_graph
from tests.processes import runs, wait_until, zombies
from tests.train.service.running import (
    LIST,
    ROW,
    http_request,
    judge_pids,
    kernel,
    serving,
    submitted,
)

pytestmark = pytest.mark.xdist_group("service")


def test_a_client_gets_what_the_judge_finds_and_what_is_no_pass_folder_does_not_compile(tmp_path):
    wrong = replace(submitted(), files=kernel(body="\ndef replacement(x, y):\n    return x - y\n"))
    broken = Submission(ROW.task, {"a.py": "x = 1\n"}, graphs=(ROW,))
    asked = [replace(each, is_timed=False) for each in (submitted(), wrong, broken)]
    with serving(tmp_path / "out") as (_, address):
        reports = judge_all_now(address, asked)
        trials = [report.judged.trials[0] for report in reports]
        assert [trial.status for trial in trials] == ["ok", "ok", "compile_error"]
        assert trials[0].smallest_t == -10 and trials[1].smallest_t > -5
        assert LIST in trials[2].error and str(tmp_path) not in trials[2].error
        assert judge_all_now(address, asked[:1])[0].is_cached
        desk = ServiceDesk(address, RunSettings())
        [unchanged] = desk.unchanged(make_suite("small", [small_graph()]).tasks[0])
        assert unchanged.status in ("ok", "unstable") and unchanged.matches == {}
        assert unchanged.smallest_t == -10
        with pytest.raises(InputError, match="the token is missing or wrong"):
            judge_all_now(replace(address, token="no token of this service"), asked)
    assert stat.S_IMODE((tmp_path / "out" / "token").stat().st_mode) == 0o600
    gone = judge_all_now(replace(address, timeout_s=0.5), asked[:1])[0]
    assert gone.judged.trials == () and "no answer in 0.5 s: ConnectError" in gone.judged.fault


@pytest.mark.slow
def test_a_folder_of_other_settings_and_a_port_that_is_taken_are_refused(tmp_path):
    out = tmp_path / "out"
    with serving(out) as (_, address):
        port = urlsplit(address.url).port
        busy = passnet("judge", "serve", "--out", out, "--port", 0, "--rules", "open")
        assert busy.returncode == 2 and "in use by process" in busy.stderr
        taken = passnet("judge", "serve", "--out", tmp_path / "other", "--port", port)
        assert taken.returncode == 2 and "cannot listen on 127.0.0.1" in taken.stderr
    other = passnet("judge", "serve", "--out", out, "--port", 0, "--rules", "strict")
    assert other.returncode == 2 and "made with other settings" in other.stderr


@pytest.mark.slow
def test_kills_of_judge_and_service_lose_nothing_and_double_nothing(tmp_path):
    out = tmp_path / "out"
    asked = [submitted(number, is_timed=False) for number in range(8)]
    with serving(out) as (service, address):
        port = urlsplit(address.url).port
        with socket.create_connection(("127.0.0.1", port)) as silent:  # asks, and never reads
            silent.sendall(http_request(address, submitted(99, is_timed=False)) * 20)
            answers = []
            client = threading.Thread(target=lambda: answers.extend(judge_all_now(address, asked)))
            client.start()
            wait_until(lambda: bool(judge_pids(service.pid)), "no judge", 30)
            time.sleep(4)
            os.kill(judge_pids(service.pid)[0], signal.SIGKILL)
            time.sleep(4)
            judges = judge_pids(service.pid)
            service.kill()
        wait_until(lambda: not any(map(runs, judges)), "a judge outlives its service")
    with serving(out, "--port", port) as (_, address):
        client.join(120)
        assert [report.judged.trials[0].status for report in answers] == ["ok"] * 8
        again = judge_all_now(address, asked)
        assert all(report.is_cached for report in again)
        assert len({report.id for report in answers}) == 8
        assert judge_all_now(address, [submitted(99, is_timed=False)])[0].is_cached


@pytest.mark.slow
def test_sigterm_ends_the_service_and_its_judges(tmp_path):
    with serving(tmp_path / "out") as (service, address):
        judge_all_now(address, [submitted(is_timed=False)])
        judges = judge_pids(service.pid)
        service.send_signal(signal.SIGTERM)
        assert service.wait(20) == 143
        assert "Traceback" not in service.stderr.read()
        wait_until(lambda: not any(map(runs, judges)), "a judge outlives its service")


UNTIMED = ServiceSettings(RunSettings(JudgeSettings(timing=None)), "direct")
SLEEPS = "\nimport time\ntime.sleep(3600)\n"


@pytest.mark.slow
def test_a_submission_that_never_ends_is_a_timeout_on_all_its_graphs_and_the_next_is_judged(
    tmp_path,
):
    rows = (ROW, row_of_graph(replace(small_graph(), name="again")))
    sleepy = Submission(ROW.task, kernel(body=GOOD + SLEEPS), graphs=rows)
    with serving(tmp_path / "out", "--timeout", 20) as (service, address):
        [judged, after] = [judge_all_now(address, [each])[0] for each in (sleepy, submitted(1))]
        assert judged.judged.fault is None and judged.num_losses == 0
        assert [trial.status for trial in judged.judged.trials] == ["timeout"] * 2
        assert "not judged in 20 s, on all graphs" in judged.judged.trials[0].error
        assert after.judged.trials[0].status in ("ok", "unstable")
        wait_until(lambda: not zombies(service.pid), "a zombie is left")


@pytest.mark.slow
def test_an_ended_judge_leaves_no_process_and_no_folder(tmp_path):
    with serving(tmp_path / "out") as (service, address):
        for number in range(2):
            report = judge_all_now(address, [submitted(number, is_timed=False)])[0]
            assert report.judged.fault is None and report.judged.trials[0].status == "ok"
            (judge,) = judge_pids(service.pid)
            family = (judge, *descendants(judge))
            assert len(family) > 3
            os.kill(judge, signal.SIGKILL)
            wait_until(lambda: not any(map(runs, family)), "a process is left")  # noqa: B023
        judge_all_now(address, [submitted(3, is_timed=False)])
        wait_until(lambda: not zombies(service.pid), "a zombie is left")
        (folder,) = (tmp_path / "out" / "scratch").glob("judge-0/passnet-judge-*")
    with serving(tmp_path / "out"):  # after a kill
        assert not folder.exists()
    files = [path for path in (tmp_path / "out").iterdir() if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600} and len(files) > 2


@pytest.mark.slow
def test_the_end_of_a_judge_leaves_another_of_the_same_device_alone(tmp_path):
    devices = enumerate(parse_devices("cpu:0,cpu:0"))
    one, two = (ProcessJudge(*each, UNTIMED, tmp_path) for each in devices)
    job = encode(judge_job(submitted(is_timed=False), {}, None))

    async def run():
        await asyncio.gather(one.open(), two.open())
        folders = set(tmp_path.glob("*/passnet-judge-*"))
        await one.close()
        left = {folder for folder in folders if folder.is_dir()}
        judged = await two.judge(job)
        await two.close()
        return folders, left, judged

    folders, left, judged = asyncio.run(run())
    assert len(folders) == 2 and len(left) == 1 and one.name != two.name
    assert judged.fault is None and [trial.status for trial in judged.trials] == ["ok"]


@pytest.mark.slow
def test_a_judge_whose_files_have_vanished_makes_new_ones_for_its_next_job(tmp_path):
    with JobJudge(UNTIMED, str(tmp_path)) as own:
        for folder in tmp_path.glob("passnet-judge-*"):
            shutil.rmtree(folder)
        judged = own.judge(judge_job(submitted(is_timed=False), {}, None))
    assert judged.fault is None and [trial.status for trial in judged.trials] == ["ok"]


@pytest.mark.slow
def test_a_service_without_descriptors_left_drops_strangers_and_serves(tmp_path):
    with serving(tmp_path / "out", descriptors=200) as (_, address):
        host = ("127.0.0.1", urlsplit(address.url).port)
        with ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(socket.create_connection(host))
            [report] = judge_all_now(address, [submitted(is_timed=False)])
        assert report.judged.fault is None and report.judged.trials[0].status == "ok"


@pytest.mark.slow
def test_a_submission_that_sleeps_at_import_keeps_nobody_from_measuring(tmp_path):
    sleepy = Submission(ROW.task, kernel(body=GOOD + SLEEPS), graphs=(ROW,))
    with serving(tmp_path / "out", "--device", "cpu:0,cpu:1") as (_, address):
        judge_all_now(address, [submitted(number) for number in range(2)])  # both judges are warm
        once = replace(address, timeout_s=1.0)
        assert "still being judged" in judge_all_now(once, [sleepy])[0].judged.fault
        [report] = judge_all_now(address, [submitted(3)])
        assert report.judged.trials[0].status in ("ok", "unstable")
        assert "still being judged" in judge_all_now(once, [sleepy])[0].judged.fault
