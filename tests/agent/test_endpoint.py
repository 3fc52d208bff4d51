"""Endpoints that are dead, lie or stream: asked again as often as documented, and recorded."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Attempt
from passnet.agent.settings import LlmSettings
from passnet.cli import main
from passnet.core.records.serialise import read_lines
from tests.agent.endpoints import Answer, Reply, completion, endpoint, plain, streamed
from tests.bench.runs import QUICK, write_small_suite

pytest.importorskip("inspect_ai", reason="an llm as author needs the extra agent")
from passnet.agent.authors.inspect_llm import named, open_llms, request_failure

pytestmark = pytest.mark.xdist_group("agent-run")

NONSENSE = "none of the API"
FAILING: dict[str, tuple[Reply, str]] = {
    "page": (Reply(b"<html>Welcome</html>"), NONSENSE),
    "other JSON": (plain({"status": "fine"}), NONSENSE),
    "no choice": (plain({**completion(), "choices": []}), "there is no choice in it"),
    "no choices at all": (plain({**completion(), "choices": None}), NONSENSE),
    "no message": (plain(completion(message=None)), NONSENSE),
    "malformed JSON": (Reply(b'{"id": ', headers={"Content-Type": "application/json"}), ""),
    "truncated": (Reply(b'{"id": ', missing=100), "Connection"),
    "failure": (Reply(b"no", 500), "InternalServerError"),
    "too many requests": (Reply(b"later", 429), "RateLimitError"),
    "empty stream": (Reply(b"", headers={"Content-Type": "text/event-stream"}), ""),
    "refused stream": (Reply(b'{"error": {"message": "stream?"}}', 400), "BadRequestError"),
    "silence": (Reply(None), "AttemptTimeoutError"),
}
"""Answers that are the same to every request, and the words on them."""


def opened(address: str, **settings: Any) -> Any:
    """An LLM that is asked again without a pause."""
    from tenacity import wait_none

    (llm,) = open_llms(LlmSettings("openai/any", (address,), **settings))
    llm.api.retry_wait = wait_none  # type: ignore[method-assign]
    return llm


def ask(address: str, num_retries: int, timeout_s: int = 60) -> str:
    """Return the failure of a question to an endpoint, repeated without a pause."""
    llm = opened(address, num_retries=num_retries, timeout_s=timeout_s)
    with pytest.raises(Exception) as failure:  # noqa: PT011 (it is the provider's own)
        asyncio.run(llm.generate("Hello?"))
    return f"{named(llm)}: {request_failure(failure.value)}"


@pytest.mark.parametrize("name", FAILING)
def test_who_answers_wrongly_is_asked_as_often_as_said_and_named(name: str) -> None:
    reply, words = FAILING[name]
    with endpoint(lambda _: reply) as (address, requests):
        text = ask(address, num_retries=2, timeout_s=1 if name == "silence" else 60)
    assert address in text and words in text
    if name == "refused stream":  # it is asked for a stream then, and refuses that for good
        assert [request.get("stream") for request in requests] == [None, True]
    else:
        assert "asked 3 times" in text and len(requests) == 3


def test_a_server_that_names_a_pause_is_left_alone_for_it() -> None:
    import httpx2
    import openai
    from tenacity import RetryCallState

    (llm,) = open_llms(LlmSettings("openai/any", ("http://127.0.0.1:9/v1",)))
    state: Any = RetryCallState(None, None, (), {})  # type: ignore[arg-type]
    request = httpx2.Request("POST", "http://127.0.0.1:9")
    for named_s, least in (("77", 77), ("0", 3), ("86400", 1800)):
        response = httpx2.Response(429, headers={"retry-after": named_s}, request=request)
        error = openai.RateLimitError("later", response=response, body=None)
        state.set_exception((type(error), error, None))
        pause = llm.api.retry_wait()(state)  # type: ignore[misc]
        assert least <= pause <= least + 1


@pytest.mark.parametrize("status", [None, 400, 406, 422])
def test_who_only_streams_is_asked_for_streams_from_then_on(status: int | None) -> None:
    refusal = json.dumps({"error": {"message": "only stream=true is supported"}}).encode()

    def answer(request: dict[str, Any]) -> Reply:
        is_refused = status is not None and not request.get("stream")
        return Reply(refusal, status or 0) if is_refused else streamed("Hello!")

    with endpoint(answer) as (address, requests):
        llm = opened(address, num_retries=1)

        async def twice() -> list[str]:
            return [(await llm.generate("Hello?")).completion for _ in range(2)]

        assert asyncio.run(twice()) == ["Hello!", "Hello!"]
    assert [request.get("stream") for request in requests] == [None, True, True]


def test_who_recovers_is_heard() -> None:
    replies = [Reply(b"no", 500), FAILING["no choice"][0], plain(completion("Hello!"))]
    answer: Answer = lambda _: replies.pop(0)  # noqa: E731
    with endpoint(answer) as (address, requests):
        output = asyncio.run(opened(address, num_retries=2).generate("Hello?"))
    assert output.completion == "Hello!" and len(requests) == 3


def test_an_endpoint_that_refuses_is_named() -> None:
    with endpoint(lambda _: Reply(b"")) as (address, _):
        pass
    assert f"at {address}: " in (text := ask(address, num_retries=0)) and "Connection" in text


@pytest.mark.slow
def test_attempts_at_a_dead_endpoint_are_recorded_and_the_command_fails(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    start = time.monotonic()
    with endpoint(lambda _: Reply(b"<html>")) as (address, requests):
        words = ("agent", "run", "--suite", suite, "--task", "add_relu", "--llm", "openai/any",
                 "--base-url", address, "--retries", "1", "--out", tmp_path / "out",
                 *QUICK)  # fmt: skip
        done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == 1 and len(requests) == 2, done.stderr
    assert "passnet: all 1 attempts failed; --resume repeats them" in done.stderr
    (attempt,) = read_lines(tmp_path / "out" / ATTEMPTS_FILE, Attempt)
    assert attempt.ending == "error" and attempt.error is not None and address in attempt.error
    assert time.monotonic() - start < 60
