"""A client of the reward service, which asks again until it has an answer or its time is over."""

from __future__ import annotations

import asyncio
import os
import random
import time
import uuid
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from passnet.core.records.serialise import decode, encode
from passnet.errors import InputError, MeasureError
from passnet.judge.match_check import GraphMatches
from passnet.judge.protocol.messages import MissText
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import row_of_graph
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.passes.files import Files
from passnet.train.service.submission import (
    AnswerCount,
    Judged,
    JudgeReport,
    ServiceStatus,
    Submission,
    judgeable,
)

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

URL_VARIABLE, TOKEN_VARIABLE = "PASSNET_JUDGE_URL", "PASSNET_JUDGE_TOKEN"

MAX_PAUSE_S = 10.0
"""Longest pause before the next request to a service that does not answer."""


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The address of a service, and limits of the client."""

    url: str
    """As `passnet judge serve` prints it."""

    token: str
    timeout_s: float = 900.0
    """Time for one answer; after it the report is a fault of ours, never a zero."""

    wait_s: float = 25.0
    """Longest wait of one request."""

    num_at_once: int = 64
    """Submissions under way at a time."""


async def judge_all(
    address: ServiceAddress, submissions: Sequence[Submission]
) -> list[JudgeReport]:
    """Return the reports on submissions, in their order, judged side by side.

    A service that is busy, restarts or cannot be reached is asked again until `timeout_s` is over.
    A submission without an answer by then, or that the service refuses, gets a report with a fault;
    files that no pass folder can have are judged as an empty one.

    Raises:
        InputError: httpx is not installed, or the token is wrong.
    """
    at_once = asyncio.Semaphore(address.num_at_once)
    async with _client(address) as http:

        async def ask(submission: Submission) -> JudgeReport:
            async with at_once:
                return await _report(http, address, submission)

        return list(await asyncio.gather(*map(ask, submissions)))


def judge_all_now(address: ServiceAddress, submissions: Sequence[Submission]) -> list[JudgeReport]:
    """Return the reports on submissions; `judge_all` for synchronous callers."""
    return asyncio.run(judge_all(address, submissions))


def service_address(timeout_s: float = 900.0) -> ServiceAddress:
    """Return the address in the variables `PASSNET_JUDGE_URL` and `PASSNET_JUDGE_TOKEN`.

    Raises:
        InputError: one is missing.
    """
    try:
        url, token = os.environ[URL_VARIABLE], os.environ[TOKEN_VARIABLE]
    except KeyError as missing:
        raise InputError(
            f"set {missing.args[0]}: `passnet judge serve --out DIR` says the address, and "
            "DIR/token holds the token"
        ) from None
    return ServiceAddress(url, token, timeout_s)


async def service_status(address: ServiceAddress) -> ServiceStatus:
    """Return a service's settings and the number of its submissions.

    A service that cannot be reached is asked again until `wait_s` is over.

    Raises:
        InputError: httpx is not installed, or the token is wrong.
        MeasureError: the service did not answer.
    """
    return await _asked(address, "GET", "/v1/status", ServiceStatus)


async def count_answer(address: ServiceAddress, num_answers: int) -> float:
    """Count one more answer, and return the progress of a training with so many, from 0 to 1.

    Call it once for each answer to reward, also for one that is judged no further. The service
    counts, so that it goes on when a trainer is started again. A trainer that knows its steps need
    not ask; with 0 answers a training is at its end.

    Raises:
        InputError: httpx is not installed, or the token is wrong.
        MeasureError: the service did not answer.
    """
    if num_answers <= 0:
        return 1.0
    count = await _asked(address, "PUT", f"/v1/answers/{uuid.uuid4().hex}", AnswerCount)
    return min(count.num_before / num_answers, 1.0)


async def _asked(address: ServiceAddress, method: str, path: str, kind: type[T]) -> T:
    """Return the answer to a request, which may arrive twice; see `service_status`."""
    deadline = time.monotonic() + address.wait_s
    async with _client(address) as http:
        reply = await _sent(http.request(method, path))
        while _is_passing(reply) and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
            reply = await _sent(http.request(method, path))
    if isinstance(reply, str) or _is_passing(reply):
        why = reply if isinstance(reply, str) else _refusal_text(reply)
        raise MeasureError(f"the judge service at {address.url}: {why}")
    if reply.status_code != 200:
        raise InputError(f"the judge service at {address.url}: {_refusal_text(reply)}")
    return decode(reply.content, kind, "answer of the judge service")


def _is_passing(reply: httpx.Response | str) -> bool:
    """Return True for a failure that may be over at the next request."""
    return isinstance(reply, str) or reply.status_code in (408, 429) or reply.status_code >= 500


def _client(address: ServiceAddress) -> httpx.AsyncClient:
    if find_spec("httpx") is None:
        raise InputError("httpx is not installed; pip install 'passnet[serve]'")
    import httpx

    return httpx.AsyncClient(
        base_url=address.url,
        headers={"Authorization": f"Bearer {address.token.strip()}"},  # a file ends with a newline
        timeout=httpx.Timeout(address.wait_s + 15.0, pool=None),
        limits=httpx.Limits(max_connections=address.num_at_once),
        trust_env=False,
    )


async def _report(
    http: httpx.AsyncClient, address: ServiceAddress, submission: Submission
) -> JudgeReport:
    deadline = time.monotonic() + address.timeout_s
    body = encode(replace(submission, files=judgeable(submission.files)))
    submission_id: str | None = None
    pause_s = 0.2
    trouble = "it was still being judged"
    while (remaining_s := deadline - time.monotonic()) > 0:
        reply = await _reply(http, submission_id, body, min(address.wait_s, remaining_s))
        if isinstance(reply, str):
            trouble = reply
        elif reply.status_code in (200, 202):
            try:
                report = decode(reply.content, JudgeReport, "answer of the judge service")
            except InputError as cause:  # of a proxy, for example
                trouble = str(cause)
            else:
                if report.state == "done":
                    return report
                submission_id, pause_s, trouble = report.id, 0.2, "it was still being judged"
                continue
        elif reply.status_code == 404:  # the service restarted with another folder
            submission_id = None
            trouble = "the service does not know it"
        elif _is_passing(reply):
            trouble = _refusal_text(reply)
            pause_s = max(pause_s, _retry_after_s(reply))
        else:
            fault = f"the judge service at {address.url}: {_refusal_text(reply)}"
            if reply.status_code == 401:
                raise InputError(fault)
            return JudgeReport(submission_id or "", "done", Judged(fault=fault))
        jitter_s = pause_s * random.uniform(0.75, 1.25)  # so that clients do not come all at once
        await asyncio.sleep(min(jitter_s, max(deadline - time.monotonic(), 0.0)))
        pause_s = min(pause_s * 2, MAX_PAUSE_S)
    fault = f"no answer in {address.timeout_s:g} s: {trouble}"
    return JudgeReport(submission_id or "", "done", Judged(fault=fault))


async def _reply(
    http: httpx.AsyncClient, submission_id: str | None, body: bytes, wait_s: float
) -> httpx.Response | str:
    """Return the service's answer, or the reason why there is none."""
    if submission_id is None:
        return await _sent(http.post("/v1/submissions", content=body))
    query = {"wait": f"{wait_s:.1f}"}
    return await _sent(http.get(f"/v1/submissions/{submission_id}", params=query))


async def _sent(request: Awaitable[httpx.Response]) -> httpx.Response | str:
    import httpx

    try:
        return await request
    except httpx.TransportError as cause:
        return f"{type(cause).__name__} {cause}".strip()


def _refusal_text(reply: Any) -> str:
    try:
        return decode(reply.content, dict[str, str])["error"]
    except (InputError, KeyError):
        return f"status {reply.status_code}"


def _retry_after_s(reply: Any) -> float:
    text = reply.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else 0.0


class ServiceDesk:
    """A session's judge that asks a service; a `judge.desk.desk.StateJudge`.

    `settings` are for the text of prompts; the service judges by its own, which `service_status`
    returns.
    """

    root = "/nowhere"
    """A stand-in: messages of a service contain no folder."""

    def __init__(
        self, address: ServiceAddress, settings: RunSettings, is_timed: bool = True
    ) -> None:
        self.settings = settings
        self._address = address
        self._is_timed = is_timed

    def __enter__(self) -> ServiceDesk:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        """Do nothing: the service goes on."""

    def prepare(self, task: Task) -> None:
        """Do nothing: the service prepares graphs itself."""

    def judge(
        self, task: Task, files: Files, unseen: Sequence[TaskGraph] = (), is_timed: bool = True
    ) -> list[Trial]:
        """Return the trials of a pass folder.

        Raises:
            MeasureError: the service failed, or gave no answer in time.
        """
        held_out, is_timed = tuple(map(row_of_graph, unseen)), is_timed and self._is_timed
        return self._trials(task, files=files, unseen=held_out, is_timed=is_timed)

    def _trials(self, task: Task, **fields: Any) -> list[Trial]:
        graphs = tuple(map(row_of_graph, task.graphs))
        submission = Submission(task.name, graphs=graphs, **fields)
        [report] = judge_all_now(self._address, [submission])
        if report.judged is None or report.judged.fault is not None:
            fault = "no answer" if report.judged is None else report.judged.fault
            raise MeasureError(f"the judge service: {fault}")
        return list(report.judged.trials)

    def unchanged(self, task: Task) -> list[Trial]:
        """Return a trial for each graph as it is; none if this desk times nothing."""
        return self._trials(task, files={}, is_unchanged=True) if self._is_timed else []

    def check_matches(self, task: Task, files: Files) -> list[GraphMatches]:
        """Return the matches of a folder's passes, from an untimed `judge`."""
        return [_matches(trial) for trial in self.judge(task, files, is_timed=False)]


def _matches(trial: Trial) -> GraphMatches:
    if not any(trial.matches.values()):
        return GraphMatches(trial.graph, error=trial.error or trial.status)
    passes = tuple(MissText(name, number) for name, number in trial.matches.items())
    return GraphMatches(trial.graph, passes)
