"""HTTP connections: one request each, which counts only once it has shown the token.

A connection has a task with a deadline. Until its whole head has arrived and bears the token it is
a stranger: strangers never wait for one another, and when there are too many the oldest is dropped.
Nothing is read after a request, so pipelined requests and bodies after a refusal are never met.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import parse_qsl, urlsplit

import h11

from passnet.core.records.serialise import encode
from passnet_service.settings import ServiceLimits

OPEN_PATH = "/healthz"
"""The path that needs no token."""

HEAD_BYTES = 16 * 2**10
"""Most bytes of a head."""

READ_BYTES = 2**16

LINGER_S = 1.0
"""Time for a client to read an answer that came before the end of its request."""

PAUSE_S = 0.05
"""Pause of the listener when the system has no descriptors left."""

_log = logging.getLogger("passnet")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request that bears the token, or asks for the open path."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer; its body is JSON unless `kind` names another type."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "application/json"


Application: TypeAlias = Callable[[HttpRequest], Awaitable[HttpAnswer]]


class RefusedError(Exception):
    """A request that is answered with a refusal."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.answer = HttpAnswer(status, encode({"error": text}), headers or {})


class Connections:
    """The open connections of a listener, and the application that answers them."""

    def __init__(self, application: Application, token: str, limits: ServiceLimits) -> None:
        self._application = application
        self._credentials = f"Bearer {token}".encode()
        self._limits = limits
        self._strangers: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._known: set[asyncio.Task[None]] = set()

    async def accept(self, listener: socket.socket) -> None:
        """Accept connections for ever."""
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    connection, _ = await loop.sock_accept(listener)
                except OSError:  # too many open files, or a client that has gone already
                    self._drop_oldest()
                    await asyncio.sleep(PAUSE_S)
                    continue
                while len(self._strangers) >= self._limits.strangers:
                    self._drop_oldest()
                task = asyncio.create_task(self._attend(connection))
                self._strangers[task] = None
                task.add_done_callback(self._forget)
                await asyncio.sleep(0)  # the new task reads what its client has sent already
        finally:
            for task in (*self._strangers, *self._known):
                task.cancel()

    def _drop_oldest(self) -> None:
        task = next(iter(self._strangers), None)
        if task is not None:
            del self._strangers[task]
            task.cancel()

    def _estrange(self) -> None:
        """Count a connection that has had its answer as a stranger's, which may be dropped."""
        task = asyncio.current_task()
        if task in self._known:
            self._known.discard(task)
            self._strangers[task] = None

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._strangers.pop(task, None)
        self._known.discard(task)

    async def _attend(self, connection: socket.socket) -> None:
        """Answer one request and close the connection."""
        with connection, suppress(TimeoutError, OSError):
            connection.setblocking(False)
            exchange = _Exchange(connection)
            try:
                async with asyncio.timeout(self._limits.head_timeout_s):
                    head = await exchange.head()
                answer = await self._answer(exchange, head)
            except RefusedError as cause:
                answer = cause.answer
            except h11.RemoteProtocolError as cause:
                text = f"not a request that can be read: {cause}"
                answer = RefusedError(cause.error_status_hint, text).answer
            except EOFError:  # gone, or half a request
                return
            async with asyncio.timeout(self._limits.body_timeout_s):
                await exchange.send(answer)
            if not exchange.is_read:
                self._estrange()
                await asyncio.sleep(LINGER_S)

    async def _answer(self, exchange: _Exchange, head: h11.Request) -> HttpAnswer:
        try:
            url = urlsplit(head.target.decode("latin-1"))
            query = dict(parse_qsl(url.query, max_num_fields=8))
        except ValueError as cause:
            raise RefusedError(400, str(cause)) from cause
        request = HttpRequest(head.method.decode(), url.path, query)
        if url.path == OPEN_PATH:
            return await self._applied(request)
        shown = dict(head.headers).get(b"authorization", b"")
        if not hmac.compare_digest(shown, self._credentials):  # in constant time
            refusal = {"WWW-Authenticate": "Bearer"}
            raise RefusedError(401, "the token is missing or wrong", refusal)
        if len(self._known) >= self._limits.connections:
            raise RefusedError(503, "too many requests at a time", {"Retry-After": "1"})
        task = asyncio.current_task()
        assert task is not None, "it runs in a task"
        if self._strangers.pop(task, self) is self:  # dropped in this very moment
            raise EOFError
        self._known.add(task)
        try:
            async with asyncio.timeout(self._limits.body_timeout_s):
                body = await exchange.body(head, self._limits.body_bytes)
        except TimeoutError as cause:
            text = f"the request took more than {self._limits.body_timeout_s:g} s"
            raise RefusedError(408, text) from cause
        return await self._applied(HttpRequest(request.method, request.path, request.query, body))

    async def _applied(self, request: HttpRequest) -> HttpAnswer:
        try:
            return await self._application(request)
        except RefusedError:
            raise
        except Exception as cause:
            _log.exception("%s %s could not be answered", request.method, request.path)
            raise RefusedError(500, "a fault of the service; its log says more") from cause


class _Exchange:
    """One request and its answer on a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._loop = asyncio.get_running_loop()
        self._method = b""

    @property
    def is_read(self) -> bool:
        """Return whether the whole request has been read, and nothing follows it."""
        return self._http.their_state is h11.DONE and not self._http.trailing_data[0]

    async def head(self) -> h11.Request:
        """Return the head of the request; raise EOFError if there is none."""
        event = await self._event()
        if not isinstance(event, h11.Request):
            raise EOFError
        self._method = event.method
        named = dict(event.headers)
        if b"content-length" not in named and b"transfer-encoding" not in named:
            await self._event()  # the end of the request, for which nothing is read
        return event

    async def body(self, head: h11.Request, most_bytes: int) -> bytes:
        """Return the body of the request; refuse more than so many bytes, unread if announced."""
        refusal = RefusedError(413, f"a request may have {most_bytes} bytes")
        if self._http.their_state is h11.DONE:
            return b""
        if int(dict(head.headers).get(b"content-length", b"0")) > most_bytes:
            raise refusal
        if self._http.they_are_waiting_for_100_continue:
            event = h11.InformationalResponse(status_code=100, headers=[])
            await self._loop.sock_sendall(self._socket, self._http.send(event) or b"")
        body = bytearray()
        while isinstance(event := await self._event(), h11.Data):
            body += event.data
            if len(body) > most_bytes:
                raise refusal
        if not isinstance(event, h11.EndOfMessage):
            raise EOFError
        return bytes(body)

    async def send(self, answer: HttpAnswer) -> None:
        """Send an answer, after which the connection ends."""
        headers = {
            "Content-Type": answer.kind,
            "Content-Length": str(len(answer.body)),
            "Connection": "close",
            **answer.headers,
        }
        reason = HTTPStatus(answer.status).phrase
        response = h11.Response(
            status_code=answer.status, reason=reason, headers=list(headers.items())
        )
        parts = [self._http.send(response)]
        if self._method != b"HEAD":
            parts.append(self._http.send(h11.Data(data=answer.body)))
            parts.append(self._http.send(h11.EndOfMessage()))
        await self._loop.sock_sendall(self._socket, b"".join(part or b"" for part in parts))
        self._socket.shutdown(socket.SHUT_WR)

    async def _event(self) -> h11.Event | type:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            received = await self._loop.sock_recv(self._socket, READ_BYTES)
            self._http.receive_data(received)  # nothing received is the end of the stream
        if event is h11.PAUSED:
            raise EOFError
        return event
