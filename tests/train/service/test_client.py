"""The client: whatever an answer or a proxy is, it costs that submission alone."""

import asyncio
from dataclasses import replace

import pytest

from passnet.core.records.serialise import decode, encode
from passnet.errors import InputError, MeasureError
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.train.service.client import (
    ServiceAddress,
    count_answer,
    judge_all,
    service_address,
    service_status,
)
from passnet.train.service.submission import (
    Judged,
    JudgeReport,
    QueueCounts,
    ServiceStatus,
    Submission,
)
from passnet_service.connections import HttpAnswer, HttpRequest, RefusedError
from tests.train.service.listening import listening
from tests.train.service.scripted_judge import LIMITS, RIGHT, submission
from tests.train.service.served_app import TOKEN, service

STATUS = ServiceStatus(RunSettings(JudgeSettings(device="cuda:0")), "direct", QueueCounts(5, 1, 24))


async def judged_at_once(request: HttpRequest) -> HttpAnswer:
    """Refuses a task, answers as a proxy for another, and judges all else right."""
    if request.path == "/v1/status":
        return HttpAnswer(200, encode(STATUS))
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


def asked_of(function, *words, token: str = TOKEN):
    async def run():
        async with listening(judged_at_once, TOKEN, LIMITS) as (_, port):
            return await function(ServiceAddress(f"http://127.0.0.1:{port}", token), *words)

    return asyncio.run(run())


def test_a_trainer_learns_the_settings_of_its_service():
    assert asked_of(service_status) == STATUS
    with pytest.raises(InputError, match="the token is missing or wrong"):
        asked_of(service_status, token="another-token")
    with pytest.raises(MeasureError, match="127.0.0.1:1: ConnectError"):
        asyncio.run(service_status(ServiceAddress("http://127.0.0.1:1", TOKEN, wait_s=0.3)))


def test_progress_counts_each_answer_that_asks_for_a_reward_across_restarts(tmp_path):
    async def progress(num_answers, planned):
        async with service(tmp_path) as http:
            address = ServiceAddress(str(http.base_url), TOKEN)
            return [await count_answer(address, planned) for _ in range(num_answers)]

    assert asyncio.run(progress(2, 0)) == [1.0, 1.0]
    assert asyncio.run(progress(3, 4)) == [0.0, 0.25, 0.5]
    assert asyncio.run(progress(3, 4)) == [0.75, 1.0, 1.0]


def test_a_missing_variable_is_named(monkeypatch):
    monkeypatch.setenv("PASSNET_JUDGE_URL", "http://127.0.0.1:8321")
    monkeypatch.delenv("PASSNET_JUDGE_TOKEN", raising=False)
    with pytest.raises(InputError, match="set PASSNET_JUDGE_TOKEN: .*DIR/token"):
        service_address()
    monkeypatch.setenv("PASSNET_JUDGE_TOKEN", "secret")
    assert service_address(5.0) == ServiceAddress("http://127.0.0.1:8321", "secret", 5.0)


def test_a_wrong_token_ends_the_batch():
    with pytest.raises(InputError, match="the token is missing or wrong"):
        asked(submission(), token="another-token")
