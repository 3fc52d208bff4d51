"""The client: whatever an answer or a proxy is, it costs that submission alone."""

import asyncio
from dataclasses import replace

import pytest

from passnet.core.records.serialise import decode, encode
from passnet.errors import InputError
from passnet.train.service.client import ServiceAddress, judge_all
from passnet.train.service.submission import Judged, JudgeReport, Submission
from passnet_service.connections import HttpAnswer, HttpRequest, RefusedError
from tests.train.service.listening import listening
from tests.train.service.scripted_judge import LIMITS, RIGHT, submission

TOKEN = "a-token-of-this-test"


async def judged_at_once(request: HttpRequest) -> HttpAnswer:
    """Refuses a task, answers as a proxy for another, and judges all else right."""
    asked = decode(request.body, Submission)
    if asked.task == "refused":
        raise RefusedError(400, "no such task")
    if asked.task == "proxy":
        return HttpAnswer(200, b"<html>busy</html>", kind="text/html")
    text = None if asked.files else "an empty folder"
    trial = replace(RIGHT, status="ok" if asked.files else "compile_error", error=text)
    return HttpAnswer(200, encode(JudgeReport("id", "done", Judged((trial,)))))


def asked(*submissions: Submission, token: str = TOKEN) -> list[Judged]:
    async def run():
        async with listening(judged_at_once, TOKEN, LIMITS) as (_, port):
            address = ServiceAddress(f"http://127.0.0.1:{port}", token, timeout_s=1.5)
            return [report.judged for report in await judge_all(address, submissions)]

    return asyncio.run(run())


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "x = '\ud800'"},
        {"a" * 300 + ".py": ""},
        {"../a.py": ""},
        {"a.py": "x" * 2**18},
        {f"a{number}.py": "" for number in range(100)},
    ],
    ids=["lone surrogate", "long name", "path", "too large", "too many"],
)
def test_an_answer_that_is_no_folder_is_wrong_and_the_others_are_judged(files):
    wrong, right = asked(submission(files=files), submission())
    assert wrong.fault is None and wrong.trials[0].status == "compile_error"
    assert right.trials[0].status == "ok"


def test_a_refusal_or_the_page_of_a_proxy_costs_one_submission_alone():
    refused, proxied, right = asked(
        replace(submission(), task="refused"), replace(submission(), task="proxy"), submission()
    )
    assert refused.fault.endswith("no such task") and right.trials[0].status == "ok"
    assert "no answer in 1.5 s: answer of the judge service: not a valid" in proxied.fault


def test_a_wrong_token_ends_the_batch():
    with pytest.raises(InputError, match="the token is missing or wrong"):
        asked(submission(), token="another-token")
