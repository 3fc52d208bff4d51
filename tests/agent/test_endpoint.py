"""Endpoints that are dead or lie: asked again a few times, named, and recorded."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Attempt
from passnet.agent.settings import LlmSettings
from passnet.cli import main
from passnet.core.records.serialise import read_lines
from tests.bench.runs import QUICK, write_small_suite

pytest.importorskip("inspect_ai", reason="an llm as author needs the extra agent")
from passnet.agent.authors.inspect_llm import named, open_llm, request_failure

pytestmark = pytest.mark.xdist_group("agent-run")

ANSWERS = {
    "page": (200, b"<html>Welcome</html>"),
    "other JSON": (200, b'{"status": "fine"}'),
    "failure": (500, b"no"),
    "silence": (200, None),
}


@contextmanager
def endpoint(answer: str) -> Iterator[tuple[str, list[str]]]:
    """An endpoint that gives everybody the same answer: its address, and the requests it had."""
    status, body = ANSWERS[answer]
    requests = []
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            if body is None:
                ended.wait(20)
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", requests
        finally:
            ended.set()
            server.shutdown()


def ask(address: str, num_retries: int, timeout_s: int = 60) -> str:
    """Return the failure of a question to an endpoint, repeated without a pause."""
    from tenacity import wait_none

    llm = open_llm(LlmSettings("openai/any", address, num_retries=num_retries, timeout_s=timeout_s))
    llm.api.retry_wait = wait_none  # type: ignore[method-assign]
    with pytest.raises(Exception) as failure:  # noqa: PT011 (it is the provider's own)
        asyncio.run(llm.generate("Hello?"))
    return f"{named(llm)}: {request_failure(failure.value)}"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("page", "none of the API"),
        ("other JSON", "none of the API"),
        pytest.param("failure", "InternalServerError", marks=pytest.mark.slow),
        pytest.param("silence", "AttemptTimeoutError", marks=pytest.mark.slow),
    ],
)
def test_who_answers_wrongly_is_asked_again_a_few_times_and_named(answer: str, reason: str) -> None:
    with endpoint(answer) as (address, requests):
        text = ask(address, num_retries=2, timeout_s=1 if answer == "silence" else 60)
    assert address in text and reason in text and "asked 3 times" in text
    per_request = 3 if answer == "failure" else 1  # the client of the provider repeats these itself
    assert 3 <= len(requests) <= 3 * per_request


def test_an_endpoint_that_refuses_is_named() -> None:
    with endpoint("page") as (address, _):
        pass
    assert f"at {address}: " in (text := ask(address, num_retries=0)) and "Connection" in text


@pytest.mark.slow
def test_attempts_at_a_dead_endpoint_are_recorded_and_the_command_fails(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    start = time.monotonic()
    with endpoint("page") as (address, requests):
        words = ("agent", "run", "--suite", suite, "--task", "add_relu", "--llm", "openai/any",
                 "--base-url", address, "--retries", "1", "--out", tmp_path / "out",
                 *QUICK)  # fmt: skip
        done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == 1 and len(requests) == 2, done.stderr
    assert "passnet: all 1 attempts failed; --resume repeats them" in done.stderr
    (attempt,) = read_lines(tmp_path / "out" / ATTEMPTS_FILE, Attempt)
    assert attempt.ending == "error" and attempt.error is not None and address in attempt.error
    assert time.monotonic() - start < 60
