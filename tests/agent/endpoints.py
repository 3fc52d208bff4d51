"""Servers on the loopback interface that speak OpenAI's protocol, well and badly."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeAlias

from tests.http_server import serving


@dataclass(frozen=True)
class Reply:
    """What a server sends; no body is silence, and `missing` bytes of it are never sent."""

    body: bytes | None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    missing: int = 0


Answer: TypeAlias = Callable[[dict[str, Any]], Reply]
"""From the JSON of a request to what the server sends."""


def completion(
    text: str = "Well.", calls: int = 0, tokens: tuple[int, int] | None = (10, 5), **choice: Any
) -> dict[str, Any]:
    """A completion as a record, whose calls look at the pass folder; its tokens may be unsaid."""
    function = {"name": "view", "arguments": "{}"}
    made = [{"id": f"c{n}", "type": "function", "function": function} for n in range(calls)]
    message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    prompt, output = tokens or (0, 0)
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    chosen = {"index": 0, "finish_reason": "tool_calls" if made else "stop", "message": message}
    return {"id": "a", "object": "chat.completion", "created": 0, "model": "any",
            "choices": [{**chosen, **choice}], "usage": usage if tokens else None}  # fmt: skip


def plain(record: Any) -> Reply:
    """A record as JSON."""
    return Reply(json.dumps(record).encode(), headers={"Content-Type": "application/json"})


def streamed(text: str) -> Reply:
    """An answer as a stream of events."""
    base = {"id": "a", "object": "chat.completion.chunk", "created": 0, "model": "any"}
    parts = [{"index": 0, "delta": {"role": "assistant", "content": part}} for part in text]
    parts.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    events = [json.dumps({**base, "choices": [part]}) for part in parts]
    lines = "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])
    return Reply(lines.encode(), headers={"Content-Type": "text/event-stream"})


@contextmanager
def endpoint(answer: Answer) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server's address, and the requests that it had."""
    requests: list[dict[str, Any]] = []
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(request)
            reply = answer(request)
            if reply.body is None:
                ended.wait(20)
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body) + reply.missing))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as address:
        try:
            yield f"{address}/v1", requests
        finally:
            ended.set()
