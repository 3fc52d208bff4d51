"""The judges of a service, which take one item at a time and may be lost over it."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from passnet.bench.cluster import device_of
from passnet.core.jobs.actors import OpenActor
from passnet.core.jobs.children import python_command, python_environment
from passnet.core.records.serialise import decode, encode
from passnet.train.service.judging import READY, open_judging
from passnet.train.service.settings import JudgeDevice, ServiceSettings
from passnet.train.service.submission import Judged, JudgeItem

MAX_LINE_BYTES = 64 * 2**20
"""Most bytes of one answer, which holds trials with all their times."""


class JudgeLostError(Exception):
    """A judge ended before it answered."""


class ServiceJudge(Protocol):
    """A judge of one item at a time, which can be started again after it was lost."""

    name: str

    async def open(self) -> None:
        """Start the judge unless it runs.

        Raises:
            JudgeLostError: it does not start.
        """
        ...

    async def judge(self, item: bytes) -> Judged:
        """Return the result of an item given as JSON; the judge is open.

        Raises:
            JudgeLostError: the judge is gone.
        """
        ...

    async def close(self) -> None:
        """End the judge at once, and its work with it; `open` starts another one."""
        ...


class ProcessJudge:
    """A judge in a process on this machine."""

    def __init__(self, device: JudgeDevice, settings: ServiceSettings) -> None:
        self.name = str(device)
        self._device = device
        run = settings.run
        on_device = replace(run, judge=replace(run.judge, device=device.kind))
        self._settings = replace(settings, run=on_device)
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Id of the judging process, while there is one."""
        return None if self._process is None else self._process.pid

    async def open(self) -> None:
        """See `ServiceJudge`."""
        if self._process is not None:
            return
        environment = python_environment()
        if self._device.kind == "cuda":
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
            number = self._device.number
            gpu = visible[number] if number < len(visible) and visible[0] else str(number)
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        self._process = await asyncio.create_subprocess_exec(
            *python_command("-m", "passnet.train.service.judging"),
            encode(self._settings).decode(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
            limit=MAX_LINE_BYTES,
        )
        assert self._process.stdout is not None, "it is a pipe"
        if await self._process.stdout.readline() != READY:
            raise JudgeLostError(await self._ending())

    async def judge(self, item: bytes) -> Judged:
        """See `ServiceJudge`."""
        process = self._process
        assert process is not None and process.stdin is not None, "it was opened"
        assert process.stdout is not None, "it is a pipe"
        line = b""
        with suppress(OSError):
            process.stdin.write(item + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            raise JudgeLostError(await self._ending())
        return decode(line, Judged)

    async def close(self) -> None:
        """See `ServiceJudge`."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _ending(self) -> str:
        """Return how the process ended; one that still runs is ended."""
        process = self._process
        assert process is not None, "it was started"
        with suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                await process.wait()
        status = process.returncode
        await self.close()
        if status is None:
            return f"judge {self.name} stopped answering"
        ending = f"signal {-status}" if status < 0 else f"exit code {status}"
        return f"judge {self.name} was ended by {ending}"


class RayJudge:
    """A judge in an actor of a Ray cluster that has its own processors or GPU."""

    def __init__(self, name: str, settings: ServiceSettings) -> None:
        self.name = name
        self._settings = settings
        self._actor: OpenActor | None = None

    async def open(self) -> None:
        """See `ServiceJudge`."""
        if self._actor is None:
            opener = partial(_open_in_actor, self._settings)
            self._actor = await asyncio.to_thread(OpenActor, opener, device_of(self._settings.run))

    async def judge(self, item: bytes) -> Judged:
        """See `ServiceJudge`."""
        assert self._actor is not None, "it was opened"
        try:
            return decode(await self._actor.work(item), Judged)
        except self._actor.lost as cause:
            await self.close()
            reason = str(cause).strip().partition("\n")[0]
            raise JudgeLostError(f"judge {self.name}: {reason}") from cause

    async def close(self) -> None:
        """See `ServiceJudge`."""
        actor, self._actor = self._actor, None
        if actor is not None:
            actor.end()


def _open_in_actor(settings: ServiceSettings) -> Any:
    """Return the judge of items given as JSON; it ends with the actor's process."""
    judging = open_judging(settings)
    judge = judging.__enter__()

    def answer(item: bytes) -> bytes:
        assert judging is not None, "it is held open"
        return encode(judge(decode(item, JudgeItem)))

    return answer
