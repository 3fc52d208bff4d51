"""The service over HTTP: who may ask, what is refused, and what comes back."""

import asyncio
import resource
from dataclasses import replace

import pytest

from passnet.core.jobs.process import JobLimits
from passnet.core.records.serialise import decode, encode
from passnet.train.service.submission import Judged, JudgeReport, QueueCounts, ServiceStatus
from passnet_service.queue import QUEUE_FILE
from tests.faults import limited_files
from tests.train.service.scripted_judge import (
    LIMITS,
    RIGHT,
    ROW,
    UNSTABLE,
    ScriptedJudge,
    submission,
)
from tests.train.service.served_app import SETTINGS, TOKEN, service


async def put(http, submitted):
    return await http.post("/v1/submissions", content=encode(submitted))


def test_who_does_not_bear_the_token_learns_nothing(tmp_path):
    async def run():
        for token in ("", "another-token-of-this", TOKEN[:-1], "ü"):
            async with service(tmp_path, token=token) as http:
                replies = [
                    await put(http, submission()),
                    await http.get("/v1/submissions/x"),
                    await http.get("/v1/status"),
                ]
                assert [reply.status_code for reply in replies] == [401] * 3
                assert (await http.get("/healthz")).text == "ok\n"

    asyncio.run(run())


def test_a_submission_is_answered_once_judged_and_from_what_is_kept_after_that(tmp_path):
    async def run():
        judge = ScriptedJudge()
        async with service(tmp_path, judge) as http:
            reply = await put(http, submission())
            assert reply.status_code == 202
            report = decode(reply.content, JudgeReport)
            reply = await http.get(f"/v1/submissions/{report.id}", params={"wait": "5"})
            report = decode(reply.content, JudgeReport)
            assert report.judged == Judged((RIGHT,)) and not report.is_cached
            elsewhere = replace(ROW, source='{"net":"n","library":"l","version":"1","start":0,'
                                '"stop":2}')  # fmt: skip
            for again in (
                submission(),
                replace(submission(), graphs=(elsewhere,)),
                replace(submission(), graphs=(), suite="small"),
            ):
                reply = await put(http, again)
                assert (reply.status_code, decode(reply.content, JudgeReport).is_cached) == (
                    200, True,
                )  # fmt: skip
            for other in (submission(1), submission(repeat=1), submission(is_timed=False)):
                assert (await put(http, other)).status_code == 202
            status = (await http.get("/v1/status")).json()
            assert status["suites"] == {"small": 1}
            assert decode(encode(status), ServiceStatus) == ServiceStatus(
                SETTINGS.run, "direct", QueueCounts(*(status["queue"].values()))
            )
            assert sum(status["queue"].values()) == 4

    asyncio.run(run())


def test_an_answer_counts_once_however_often_its_request_arrives(tmp_path):
    async def run():
        async with service(tmp_path) as http:
            paths = [f"/v1/answers/{number:032x}" for number in (1, 2, 1, 3)]
            replies = [await http.put(path) for path in paths]
            assert [reply.json()["num_before"] for reply in replies] == [0, 1, 0, 2]
            assert (await http.put("/v1/answers/no-number")).status_code == 400
            assert (await http.get(paths[0])).status_code == 405

    asyncio.run(run())


def test_what_the_machine_could_not_measure_comes_back_as_such(tmp_path):
    async def run():
        async with service(tmp_path, ScriptedJudge(UNSTABLE)) as http:
            report = decode((await put(http, submission())).content, JudgeReport)
            reply = await http.get(f"/v1/submissions/{report.id}", params={"wait": "5"})
            judged = decode(reply.content, JudgeReport).judged
            assert judged is not None and judged.trials[0].status == "unstable"
            assert (await put(http, submission())).status_code == 202

    asyncio.run(run())


def test_a_full_queue_tells_clients_when_to_come_back(tmp_path):
    async def run():
        async with service(tmp_path, max_waiting=2) as http:
            replies = [await put(http, submission(number)) for number in range(3)]
            assert [reply.status_code for reply in replies] == [202, 202, 429]
            assert 1 <= int(replies[2].headers["retry-after"]) <= 60

    asyncio.run(run())


REFUSED = {
    "no JSON": (b"{", 400, "not a valid Submission"),
    "no such suite": (replace(submission(), suite="large"), 400, "no suite 'large'; there are "),
    "no such task": (
        replace(submission(), suite="small", task="relu_add"), 400, "suite small has no task",
    ),
    "no graphs": (replace(submission(), graphs=()), 400, "give graphs of task"),
    "graphs of others": (replace(submission(), task="b"), 400, "give graphs of task b"),
    "no graph": (
        replace(submission(), graphs=(replace(ROW, program="import os"),)), 400, "task add_relu",
    ),
    "no unseen graph": (
        submission(suite="small", graphs=(), unseen=(replace(ROW, program="import os"),)),
        400, "task add_relu",
    ),
    "a path": (replace(submission(), files={"../a.py": ""}), 400, "no file name"),
    "too large": (replace(submission(), files={"a.py": "x" * 30_000}), 413, "20000 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_judged_is_refused_in_a_sentence(tmp_path, name):
    submitted, status, text = REFUSED[name]

    async def run():
        async with service(tmp_path) as http:
            content = submitted if isinstance(submitted, bytes) else encode(submitted)
            reply = await http.post("/v1/submissions", content=content)
            assert reply.status_code == status and text in reply.json()["error"]
            assert (await http.get("/v1/submissions/none")).status_code == 404

    asyncio.run(run())


def test_a_small_text_that_is_costly_to_parse_is_parsed_elsewhere(tmp_path):
    large = replace(LIMITS, body_bytes=4 * 2**20)
    costly = submission(files={"a.py": ""}, graphs=(replace(ROW, program="a=a;" * 137_000),))

    async def run():
        async with service(tmp_path, limits=large, check=JobLimits(20.0, 192)) as http:
            reply = await put(http, costly)
            assert reply.status_code == 400
            assert "cannot be parsed: MemoryError" in reply.json()["error"]
            assert (await put(http, submission())).status_code == 202

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    asyncio.run(run())
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mib < 150  # parsed in this process, over 300


def test_a_full_disk_is_a_sentence_and_the_service_goes_on_when_there_is_room(tmp_path):
    async def run(folder):
        judge = ScriptedJudge()
        async with service(folder, judge) as http:
            await put(http, submission(1))  # no child is started under the limit
            with limited_files((folder / QUEUE_FILE).with_suffix(".sqlite-wal").stat().st_size):
                reply = await put(http, submission())
                assert reply.status_code == 503 and int(reply.headers["retry-after"]) > 0
                assert "make room on its disk" in reply.json()["error"]
                assert (await http.get("/v1/status")).status_code == 200
            assert (await put(http, submission())).status_code == 202
            report = decode((await put(http, submission())).content, JudgeReport)
            reply = await http.get(f"/v1/submissions/{report.id}", params={"wait": "5"})
            assert decode(reply.content, JudgeReport).judged == Judged((RIGHT,))

    asyncio.run(run(tmp_path))
