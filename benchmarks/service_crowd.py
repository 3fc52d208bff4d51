"""The reward service beside a crowd of silent and slow connections:
`python -m benchmarks.service_crowd [ROUNDS] [SECONDS]`.

32 clients ask for submissions that two judges compare, then for some that they time. In turn there
are and are not 200 connections that say nothing and 200 that send their head byte by byte, without
a token, so that other work on the machine weighs on both alike. `/healthz` is asked each second.
"""

import asyncio
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from rich.console import Console

from benchmarks.service import submissions
from passnet.pages.tables.tables import Table, print_table
from passnet.train.service.client import ServiceAddress, judge_all
from tests.train.service.running import serving

NUM_CLIENTS = 32
NUM_SILENT = 200
NUM_SLOW = 200


@dataclass(frozen=True)
class Slot:
    """The answers that came within a slot of time."""

    is_timed: bool
    is_crowded: bool
    num_answered: int
    seconds: float
    health_s: float
    """The longest answer of `/healthz`."""

    service_s: float
    """CPU time of the service's own process."""

    load: float


async def _stranger(port: int, is_slow: bool) -> None:
    """A connection without a token, opened again whenever the service closes it."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                while not reader.at_eof():
                    if is_slow:
                        writer.write(b"x")
                        await writer.drain()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(0.5):
                            await reader.read(1)
            finally:
                writer.close()
        await asyncio.sleep(0.1)


@asynccontextmanager
async def _crowd(port: int, is_there: bool) -> AsyncIterator[None]:
    kinds = [False] * NUM_SILENT + [True] * NUM_SLOW
    tasks = [asyncio.create_task(_stranger(port, kind)) for kind in kinds if is_there]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _longest_health_s(port: int) -> float:
    longest_s = 0.0
    with suppress(asyncio.CancelledError):
        while True:
            start = time.monotonic()
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                assert (await reader.read()).endswith(b"ok\n")
                writer.close()
            longest_s = max(longest_s, time.monotonic() - start)
            await asyncio.sleep(1)
    return longest_s


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _ask_on(address: ServiceAddress, numbers: Iterator[int], is_timed: bool) -> None:
    while True:
        await judge_all(address, submissions(1, next(numbers), is_timed))


async def _num_judged(address: ServiceAddress) -> int:
    headers = {"Authorization": f"Bearer {address.token}"}
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        return (await http.get(f"{address.url}/v1/status", headers=headers)).json()["judged"]


async def _slots(
    service: int, address: ServiceAddress, is_timed: bool, num_rounds: int, seconds: float
) -> list[Slot]:
    """Count the answers in slots of time, in turn with and without the crowd."""
    numbers = itertools.count(10**6 * (1 + is_timed))
    clients = [asyncio.create_task(_ask_on(address, numbers, is_timed)) for _ in range(NUM_CLIENTS)]
    await asyncio.sleep(seconds / 2)
    port = urlsplit(address.url).port or 0
    slots = []
    for number in range(2 * num_rounds):
        is_crowded = number % 4 in (1, 2)
        async with _crowd(port, is_crowded):
            health = asyncio.create_task(_longest_health_s(port))
            begin, before = time.monotonic(), await _num_judged(address)
            cpu_s = _cpu_s(service)
            await asyncio.sleep(seconds)
            judged, passed_s = await _num_judged(address) - before, time.monotonic() - begin
            health.cancel()
            load = os.getloadavg()[0]
            cpu_s = _cpu_s(service) - cpu_s
            health_s = await health
            slots.append(Slot(is_timed, is_crowded, judged, passed_s, health_s, cpu_s, load))
        print(slots[-1], flush=True)
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    return slots


def main(num_rounds: int = 3, seconds: int = 30) -> None:
    """Print a table."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "out", "--device", "cpu:0,cpu:1") as (service, address),
    ):
        address = replace(address, timeout_s=600.0)
        asyncio.run(judge_all(address, submissions(14)))  # compiles each kernel once
        slots = [
            slot
            for is_timed in (False, True)
            for slot in asyncio.run(_slots(service.pid, address, is_timed, num_rounds, seconds))
        ]
    head = (
        "part",
        "connections beside",
        "answered",
        "a minute",
        "longest /healthz",
        "its CPU",
        "load",
    )
    table = Table(f"{num_rounds} times {seconds} s each, {NUM_CLIENTS} clients, 2 judges", head)
    for kind in ((False, False), (False, True), (True, False), (True, True)):
        of = [slot for slot in slots if (slot.is_timed, slot.is_crowded) == kind]
        answered = sum(slot.num_answered for slot in of)
        table.rows.append(
            (
                "timed" if kind[0] else "compared",
                f"{NUM_SILENT} silent, {NUM_SLOW} slow" if kind[1] else "none",
                str(answered),
                f"{60 * answered / sum(slot.seconds for slot in of):.1f}",
                f"{max(slot.health_s for slot in of):.2f} s",
                f"{sum(slot.service_s for slot in of) / sum(slot.seconds for slot in of):.1%}",
                f"{statistics.mean(slot.load for slot in of):.1f}",
            )
        )
    print_table(Console(width=130), table)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
