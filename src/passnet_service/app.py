"""The HTTP interface of the reward service, safe against careless and hostile clients."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from passnet.core.records.serialise import decode, encode
from passnet.errors import InputError
from passnet.judge.suite.suite import Suite
from passnet.train.service.submission import Submission, judge_job, submission_id
from passnet_service.dispatch import Dispatcher
from passnet_service.queue import QueueFullError
from passnet_service.settings import ServiceLimits

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


class _TooLargeError(Exception):
    """A request has too many bytes."""


def make_app(
    dispatcher: Dispatcher,
    suites: Mapping[str, Suite],
    held_out: Suite | None,
    token: str,
    digest: str,
    limits: ServiceLimits,
) -> Starlette:
    """Return the application: submissions to put, reports to get, and the service's state.

    The caller has entered the dispatcher. Every request but those to `/healthz` needs the token.
    """

    async def put(request: Request) -> Response:
        try:
            async with asyncio.timeout(limits.body_timeout_s):
                body = await _body(request, limits)
        except TimeoutError:
            return _refusal(408, f"the request took more than {limits.body_timeout_s:g} s")
        except _TooLargeError:
            return _refusal(413, f"a request may have {limits.body_bytes} bytes")
        try:
            submission = decode(body, Submission, "submission")
            job = await run_in_threadpool(judge_job, submission, suites, held_out)
        except InputError as cause:
            return _refusal(400, str(cause))
        try:
            report = await dispatcher.put(submission_id(job, digest, submission.repeat), job)
        except QueueFullError:
            retry = str(dispatcher.retry_after_s())
            return _refusal(429, "too many submissions wait", {"Retry-After": retry})
        return _json(report, 200 if report.state == "done" else 202)

    async def get(request: Request) -> Response:
        try:
            wait_s = min(max(float(request.query_params.get("wait", "0")), 0.0), limits.wait_s)
        except ValueError:
            return _refusal(400, "wait is a number of seconds")
        report = await dispatcher.report(request.path_params["submission"], wait_s)
        if report is None:
            return _refusal(404, "there is no such submission; put it")
        return _json(report)

    async def status(_: Request) -> Response:
        return _json(
            {
                "queue": await dispatcher.counts(),
                "judged": dispatcher.num_judged,
                "judges_lost": dispatcher.num_lost,
                "busy_ratio": dispatcher.busy_ratio,
                "suites": {name: len(suite.tasks) for name, suite in suites.items()},
            }
        )

    async def healthy(_: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    guarded = _token_guard(token)
    return Starlette(
        routes=[
            Route("/v1/submissions", guarded(put), methods=["POST"]),
            Route("/v1/submissions/{submission}", guarded(get), methods=["GET"]),
            Route("/v1/status", guarded(status), methods=["GET"]),
            Route("/healthz", healthy, methods=["GET"]),
        ]
    )


def _token_guard(token: str) -> Callable[[Endpoint], Endpoint]:
    """Return a decorator that lets an endpoint answer only clients with the token."""
    expected = f"Bearer {token}".encode()

    def guard(endpoint: Endpoint) -> Endpoint:
        async def guarded(request: Request) -> Response:
            credentials = request.headers.get("authorization", "").encode()
            if not hmac.compare_digest(credentials, expected):  # in constant time
                headers = {"WWW-Authenticate": "Bearer"}
                return _refusal(401, "the token is missing or wrong", headers)
            with suppress(ClientDisconnect):
                return await endpoint(request)
            return _refusal(400, "the client went away")

        return guarded

    return guard


async def _body(request: Request, limits: ServiceLimits) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limits.body_bytes:
            raise _TooLargeError
    return bytes(body)


def _json(record: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encode(record), status, headers=headers, media_type="application/json")


def _refusal(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return _json({"error": text}, status, headers)
