"""The service over HTTP: who may ask, what is refused, and what comes back."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest

from passnet.core.records.serialise import decode, encode
from passnet.judge.suite.suite import make_suite
from passnet.train.service.submission import Judged, JudgeReport
from passnet_service.app import make_app
from passnet_service.dispatch import Dispatcher
from passnet_service.queue import SubmissionQueue
from tests.judge.folders import small_graph
from tests.train.service.scripted_judge import (
    LIMITS,
    RIGHT,
    ROW,
    UNSTABLE,
    ScriptedJudge,
    submission,
)

TOKEN = "a-token-of-this-test"
SUITE = make_suite("small", [small_graph()])


@asynccontextmanager
async def service(folder, *judges, max_waiting=100, token=TOKEN):
    queue = SubmissionQueue(folder, max_waiting)
    async with Dispatcher(queue, judges, 5.0) as dispatcher:
        app = make_app(dispatcher, {"small": SUITE}, None, TOKEN, "digest", LIMITS)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://test",
            headers={"Authorization": f"Bearer {token}".encode()} if token else {},
        ) as http:
            yield http
    queue.close()


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
    "no such suite": (replace(submission(), suite="large"), 400, "no suite 'large' here"),
    "no such task": (
        replace(submission(), suite="small", task="relu_add"), 400, "suite small has no task",
    ),
    "no graphs": (replace(submission(), graphs=()), 400, "give graphs of task"),
    "graphs of others": (replace(submission(), task="b"), 400, "give graphs of task b"),
    "no graph": (
        replace(submission(), graphs=(replace(ROW, program="import os"),)), 400, "task add_relu",
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
