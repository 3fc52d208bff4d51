"""A client of the reward service: asks until it has an answer, or the time for one is over."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from passnet.core.records.serialise import decode, encode
from passnet.errors import InputError
from passnet.train.service.submission import Judged, JudgeReport, Submission

if TYPE_CHECKING:
    import httpx

MAX_PAUSE_S = 10.0
"""The longest pause before a service that does not answer is asked again."""


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where a service is, and how it is asked.

    Args:
        url: as `passnet judge serve` prints it.
        token: what it wants to see.
        timeout_s: for one answer in all; then the report is a fault of ours, and never a zero.
        wait_s: how long one request waits.
        num_at_once: submissions that this client asks about at a time.
    """

    url: str
    token: str
    timeout_s: float = 900.0
    wait_s: float = 25.0
    num_at_once: int = 64


async def judge_all(
    address: ServiceAddress, submissions: Sequence[Submission]
) -> list[JudgeReport]:
    """The reports on submissions, in their order, all asked for side by side.

    A service that is busy, starts anew or cannot be reached is asked again until `timeout_s` is
    over; a submission without an answer by then has a report with a fault.

    Raises:
        InputError: httpx is not installed, the token is wrong, or the service refuses a submission.
    """
    if find_spec("httpx") is None:
        raise InputError("httpx is not installed; pip install 'passnet[serve]'")
    import httpx

    at_once = asyncio.Semaphore(address.num_at_once)
    limits = httpx.Limits(max_connections=address.num_at_once)
    timeout = httpx.Timeout(address.wait_s + 15.0, pool=None)
    headers = {"Authorization": f"Bearer {address.token}"}
    async with httpx.AsyncClient(
        base_url=address.url, headers=headers, timeout=timeout, limits=limits, trust_env=False
    ) as http:

        async def ask(submission: Submission) -> JudgeReport:
            async with at_once:
                return await _asked(http, address, submission)

        return list(await asyncio.gather(*map(ask, submissions)))


def judge_all_now(address: ServiceAddress, submissions: Sequence[Submission]) -> list[JudgeReport]:
    """The same for callers that are not asynchronous."""
    return asyncio.run(judge_all(address, submissions))


async def _asked(
    http: httpx.AsyncClient, address: ServiceAddress, submission: Submission
) -> JudgeReport:
    deadline = time.monotonic() + address.timeout_s
    body = encode(submission)
    known: str | None = None
    pause_s = 0.2
    trouble = "it was still being judged"
    while (left_s := deadline - time.monotonic()) > 0:
        reply = await _reply(http, known, body, min(address.wait_s, left_s))
        if isinstance(reply, str):
            trouble = reply
        elif reply.status_code in (200, 202):
            report = decode(reply.content, JudgeReport, "answer of the judge service")
            if report.state == "done":
                return report
            known, pause_s, trouble = report.id, 0.2, "it was still being judged"
            continue
        elif reply.status_code == 404:  # of another folder than before
            known = None
            trouble = "the service knows nothing of it"
        elif reply.status_code in (408, 429) or reply.status_code >= 500:
            trouble = _refusal_text(reply)
            pause_s = max(pause_s, _retry_after_s(reply))
        else:
            raise InputError(f"the judge service at {address.url}: {_refusal_text(reply)}")
        jitter_s = pause_s * random.uniform(0.75, 1.25)  # so that clients do not come all at once
        await asyncio.sleep(min(jitter_s, max(deadline - time.monotonic(), 0.0)))
        pause_s = min(pause_s * 2, MAX_PAUSE_S)
    fault = f"no answer in {address.timeout_s:g} s: {trouble}"
    return JudgeReport(known or "", "done", Judged(fault=fault))


async def _reply(
    http: httpx.AsyncClient, known: str | None, body: bytes, wait_s: float
) -> httpx.Response | str:
    """What the service answers, or in words why it does not."""
    import httpx

    try:
        if known is None:
            return await http.post("/v1/submissions", content=body)
        return await http.get(f"/v1/submissions/{known}", params={"wait": f"{wait_s:.1f}"})
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
