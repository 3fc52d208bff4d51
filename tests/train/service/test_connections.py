"""Connections of strangers shut nobody out, and none is read beyond one request."""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace

import pytest

from passnet_service.connections import HttpAnswer, HttpRequest
from passnet_service.settings import ServiceLimits
from tests.train.service.listening import listening

TOKEN = "a-token-of-this-test"
LIMITS = ServiceLimits(
    strangers=8, connections=4, head_timeout_s=0.5, body_timeout_s=1.0, body_bytes=1000
)
HEAD = f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\n"
GET = f"GET /v1/x HTTP/1.1\r\n{HEAD}\r\n".encode()


async def echo(request: HttpRequest) -> HttpAnswer:
    if request.path == "/wait":
        await asyncio.sleep(60)
    text = f"{request.method} {request.path} {len(request.body)}"
    return HttpAnswer(200, json.dumps(text).encode())


async def answer(port: int, *parts: bytes, is_half_closed: bool = False, pause_s: float = 0.0):
    """The bytes that come back until the service closes; parts are sent with pauses."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(ConnectionError):
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_s)
        if is_half_closed:
            writer.write_eof()
    received = bytearray()
    with suppress(ConnectionError):
        while part := await asyncio.wait_for(reader.read(1000), 20):
            received += part
    writer.close()
    return bytes(received)


def served(run, limits: ServiceLimits = LIMITS):
    async def main():
        async with listening(echo, TOKEN, limits) as (connections, port):
            return await asyncio.wait_for(run(connections, port), 30)

    return asyncio.run(main())


def test_silent_connections_shut_nobody_out_and_the_oldest_goes_first():
    async def run(connections, port):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
        assert b'"GET /v1/x 0"' in await answer(port, GET)
        assert len(connections._strangers) <= LIMITS.strangers
        assert await silent[0][0].read() == b""  # closed
        for _, writer in silent:
            writer.close()

    served(run, replace(LIMITS, head_timeout_s=60.0))


def test_a_head_has_one_deadline_however_steadily_it_comes():
    async def run(_, port):
        drops = (b"x: " + b"y" * 20 for _ in range(40))
        assert await answer(port, b"GET / HTTP/1.1\r\n", *drops, pause_s=0.05) == b""
        assert b"431" in await answer(port, b"GET / HTTP/1.1\r\n", b"x: " + b"y" * 20_000)

    served(run)


@pytest.mark.parametrize("target", [b"//[", b"http://[::1/x", b"/x?" + b"a=1&" * 20])
def test_a_target_that_cannot_be_read_is_refused_in_a_sentence(target):
    async def run(_, port):
        for head in (b"Host: x\r\n", HEAD.encode()):
            received = await answer(port, b"GET %s HTTP/1.1\r\n%s\r\n" % (target, head))
            assert received.startswith(b"HTTP/1.1 400 ") and b'{"error":"' in received

    served(run)


def test_after_a_wrong_token_nothing_is_read():
    async def run(_, port):
        head = b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 209715200\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.transport.set_write_buffer_limits(0)
        writer.write(head)
        num_sent = 0
        with suppress(ConnectionError):
            while num_sent < 200 * 2**20:
                writer.write(bytes(2**16))
                await writer.drain()
                num_sent += 2**16
        assert num_sent < 50 * 2**20  # no more than the buffers of the system
        with suppress(ConnectionError):
            assert b"HTTP/1.1 401" in await reader.read()
        writer.close()

    served(run)


@pytest.mark.parametrize("token", ["", "another-token-of-this", TOKEN[:-1], TOKEN + "x"])
def test_who_does_not_bear_the_token_is_told_so_whatever_is_asked(token):
    async def run(_, port):
        for words in ("GET /v1/x", "POST /v1/submissions", "DELETE /", "HEAD /wait"):
            head = f"{words} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
            assert (await answer(port, head.encode())).startswith(b"HTTP/1.1 401")
        assert b"GET /healthz 0" in await answer(port, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")

    served(run)


def test_a_connection_carries_one_request_in_every_way_that_http_has():
    post = f"POST /v1/x HTTP/1.1\r\n{HEAD}".encode()
    chunked = post + b"Transfer-Encoding: chunked\r\n\r\n"
    requests = {
        "pipelined": (GET + GET, b'"GET /v1/x 0"'),
        "with a body": (post + b"Content-Length: 3\r\n\r\nabc", b'"POST /v1/x 3"'),
        "in chunks": (chunked + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", b'"POST /v1/x 3"'),
        "of another size": (chunked + b"zz\r\n", b"HTTP/1.1 400"),
        "in endless chunks": (chunked + b"200\r\n" + bytes(512) + b"\r\n200\r\n" + bytes(512),
                              b"HTTP/1.1 413"),
        "announced as large": (post + b"Content-Length: 1001\r\n\r\n", b"HTTP/1.1 413"),
        "of two sizes": (post + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
                         b"HTTP/1.1 400"),
        "asking first": (post + b"Content-Length: 0\r\nExpect: 100-continue\r\n\r\n", b" 0\""),
        "no HTTP": (b"\x16\x03\x01\x02\x00\r\n\r\n", b"HTTP/1.1 400"),
    }  # fmt: skip

    async def run(_, port):
        for name, (request, expected) in requests.items():
            for is_half_closed in (False, True):
                got = await answer(port, request, is_half_closed=is_half_closed)
                assert expected in got and got.count(b"Content-Length: ") == 1, (name, got)
        half = post + b"Content-Length: 9\r\n\r\nabc"
        assert (await answer(port, half, is_half_closed=True)).startswith(b"HTTP/1.1 400")
        assert (await answer(port, half)).startswith(b"HTTP/1.1 408")

    served(run)


def test_requests_with_the_token_are_bounded_and_strangers_do_not_count():
    async def run(connections, port):
        head = f"GET /wait HTTP/1.1\r\n{HEAD}\r\n".encode()
        waiting = [asyncio.create_task(answer(port, head)) for _ in range(LIMITS.connections)]
        while len(connections._known) < LIMITS.connections:
            await asyncio.sleep(0.01)
        assert (await answer(port, GET)).startswith(b"HTTP/1.1 503")
        for task in waiting:
            task.cancel()

    served(run)


def test_a_client_that_goes_or_is_late_is_no_fault_to_log(caplog):
    async def run(_, port):
        assert await answer(port, b"GET") == b""
        for part in (b"", b"GET", GET[:-4]):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(part)
            writer.transport.abort()
        await asyncio.sleep(0.1)

    served(run)
    assert not caplog.records


def test_a_fault_of_the_application_is_told_and_logged(caplog):
    async def broken(_: HttpRequest) -> HttpAnswer:
        raise KeyError("x")

    async def main():
        async with listening(broken, TOKEN, LIMITS) as (_, port):
            return await answer(port, GET)

    assert b"HTTP/1.1 500" in asyncio.run(main())
    assert "GET /v1/x could not be answered" in caplog.text
