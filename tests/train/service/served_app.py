"""The service's application in this process, with scripted judges behind it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager

import httpx

from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.suite.suite import make_suite
from passnet.train.service.client import ServiceAddress
from passnet_service.app import make_app
from passnet_service.dispatch import Dispatcher
from passnet_service.graph_check import CHECK_LIMITS, GraphChecker
from passnet_service.queue import SubmissionQueue
from passnet_service.settings import ServiceSettings
from tests.judge.folders import small_graph
from tests.train.service.listening import listening
from tests.train.service.scripted_judge import LIMITS

TOKEN = "a-token-of-this-test"
SUITE = make_suite("small", [small_graph()])
SUITES = {"small": SUITE}
SETTINGS = ServiceSettings(RunSettings(JudgeSettings(device="cuda:0"), sandbox="none"), "direct")


@asynccontextmanager
async def service(folder, *judges, max_waiting=100, token=TOKEN, limits=LIMITS, check=CHECK_LIMITS):
    with closing(SubmissionQueue(folder, max_waiting)) as queue, GraphChecker(check) as checker:
        async with Dispatcher(queue, judges, 5.0) as dispatcher:
            app = make_app(dispatcher, SUITES, None, SETTINGS, "digest", limits, checker)
            async with listening(app, TOKEN, limits) as (_, port):
                headers = {"Authorization": f"Bearer {token}".encode()} if token else {}
                url = f"http://127.0.0.1:{port}"
                async with httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as http:
                    yield http


@contextmanager
def in_background(
    opened: AbstractAsyncContextManager[httpx.AsyncClient],
) -> Iterator[ServiceAddress]:
    """Run a `service` on a thread of its own, for synchronous clients."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        http = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(30)
        try:
            yield ServiceAddress(str(http.base_url), TOKEN, timeout_s=30.0)
        finally:
            ended = opened.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(ended, loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
