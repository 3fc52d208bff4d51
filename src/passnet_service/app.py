"""The reward service's requests: submissions, reports, counted answers, and its state."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from passnet.core.records.serialise import decode, encode
from passnet.errors import InputError
from passnet.judge.suite.suite import Suite
from passnet.train.service.submission import AnswerCount, Submission
from passnet_service.connections import (
    OPEN_PATH,
    Application,
    HttpAnswer,
    HttpRequest,
    RefusedError,
)
from passnet_service.dispatch import Dispatcher
from passnet_service.graph_check import GraphChecker
from passnet_service.jobs import JudgeJob, judge_job, submission_id
from passnet_service.queue import QueueFullError, UnavailableError
from passnet_service.settings import ServiceLimits, ServiceSettings

SUBMISSIONS_PATH = "/v1/submissions"
ANSWERS_PATH = "/v1/answers"
STATUS_PATH = "/v1/status"
_ANSWER = re.compile(r"[0-9a-f]{32}")


def make_app(
    dispatcher: Dispatcher,
    suites: Mapping[str, Suite],
    held_out: Suite | None,
    settings: ServiceSettings,
    digest: str,
    limits: ServiceLimits,
    checker: GraphChecker,
) -> Application:
    """Return the application; the caller has entered the dispatcher and the checker."""

    def complete(body: bytes) -> tuple[str, JudgeJob, bool]:
        submission = decode(body, Submission, "submission")
        job = judge_job(submission, suites, held_out)
        has_graphs = submission.suite is None or bool(submission.unseen)
        return submission_id(job, digest, submission.repeat), job, has_graphs

    async def put(request: HttpRequest) -> HttpAnswer:
        try:
            submission, job, has_graphs = await asyncio.to_thread(complete, request.body)
            if has_graphs:
                await checker.check(job)
        except InputError as cause:
            raise RefusedError(400, str(cause)) from cause
        try:
            report = await dispatcher.put(submission, job)
        except QueueFullError as cause:
            retry = {"Retry-After": str(dispatcher.retry_after_s())}
            raise RefusedError(429, "too many submissions wait", retry) from cause
        return _json(report, 200 if report.state == "done" else 202)

    async def get(request: HttpRequest, submission: str) -> HttpAnswer:
        try:
            wait_s = min(max(float(request.query.get("wait", "0")), 0.0), limits.wait_s)
        except ValueError as cause:
            raise RefusedError(400, "wait is a number of seconds") from cause
        report = await dispatcher.report(submission, wait_s)
        if report is None:
            raise RefusedError(404, "there is no such submission; put it")
        return _json(report)

    async def status() -> HttpAnswer:
        return _json(
            {
                "queue": await dispatcher.counts(),
                "judged": dispatcher.num_judged,
                "judges_lost": dispatcher.num_lost,
                "busy_ratio": dispatcher.busy_ratio,
                "suites": {name: len(suite.tasks) for name, suite in suites.items()},
                "run": settings.run,
                "call": settings.call,
            }
        )

    async def count(answer: str) -> HttpAnswer:
        if not _ANSWER.fullmatch(answer):
            raise RefusedError(400, "an answer is named by 32 hexadecimal digits")
        return _json(AnswerCount(await dispatcher.count_answer(answer)))

    async def answer(request: HttpRequest) -> HttpAnswer:
        folder, _, name = request.path.rpartition("/")
        is_submission = folder == SUBMISSIONS_PATH and name
        is_answer = folder == ANSWERS_PATH and name
        try:
            if (request.method, request.path) == ("POST", SUBMISSIONS_PATH):
                return await put(request)
            if request.method == "GET" and is_submission:
                return await get(request, name)
            if request.method == "PUT" and is_answer:
                return await count(name)
            if (request.method, request.path) == ("GET", STATUS_PATH):
                return await status()
            if request.path == OPEN_PATH:
                return HttpAnswer(200, b"ok\n", kind="text/plain")
        except UnavailableError as cause:
            raise RefusedError(503, str(cause), {"Retry-After": "10"}) from cause
        if is_submission or is_answer or request.path in (SUBMISSIONS_PATH, STATUS_PATH):
            raise RefusedError(405, f"{request.path} is not asked by {request.method}")
        raise RefusedError(404, f"there is no {request.path}")

    return answer


def _json(record: Any, status: int = 200) -> HttpAnswer:
    return HttpAnswer(status, encode(record))
