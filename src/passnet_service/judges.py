"""The judges of a service: processes here, or actors of a Ray cluster."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from passnet.bench.cluster import check_machine, device_of
from passnet.bench.environment import Environment
from passnet.core.jobs.children import end_with_descendants, python_command, python_environment
from passnet.core.jobs.ray_cluster import ray_sentence
from passnet.core.records.serialise import decode, encode
from passnet.train.service.submission import Judged
from passnet_service.jobs import JudgeJob
from passnet_service.judging import READY, JobJudge
from passnet_service.open_actor import OpenActor
from passnet_service.settings import JudgeDevice, ServiceSettings

MAX_LINE_BYTES = 64 * 2**20
"""Most bytes of one answer."""


class JudgeLostError(Exception):
    """A judge ended before it answered."""


class ServiceJudge(Protocol):
    """A judge of one job at a time, which can be started again after a loss."""

    name: str

    async def open(self) -> None:
        """Start the judge unless it runs; raise JudgeLostError if it does not start."""
        ...

    async def judge(self, job: bytes) -> Judged:
        """Return the result of a job given as JSON; raise JudgeLostError if the judge is gone."""
        ...

    async def close(self) -> None:
        """End the judge and its work at once; `open` starts another one."""
        ...


class ProcessJudge:
    """A judge in a process on this machine, whose temporary files lie in a folder of its own.

    Args:
        number: position among the judges of the service, of which several may share a device.
        device: the device that it judges on.
        settings: settings of the service.
        folder: folder of the temporary files of all judges.
    """

    def __init__(
        self, number: int, device: JudgeDevice, settings: ServiceSettings, folder: Path
    ) -> None:
        self.name = f"{number} on {device}"
        self._folder = folder / f"judge-{number}"
        self._device = device
        run = settings.run
        on_device = replace(run, judge=replace(run.judge, device=device.kind))
        self._settings = replace(settings, run=on_device)
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Return its process, if it runs."""
        return None if self._process is None else self._process.pid

    async def open(self) -> None:
        """See `ServiceJudge`."""
        if self._process is not None:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        environment = python_environment()
        if self._device.kind == "cuda":
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
            number = self._device.number
            gpu = visible[number] if number < len(visible) and visible[0] else str(number)
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        self._process = await asyncio.create_subprocess_exec(
            *python_command("-m", "passnet_service.judging"),
            encode(self._settings).decode(),
            str(self._folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
            limit=MAX_LINE_BYTES,
        )
        assert self._process.stdout is not None, "it is a pipe"
        if await self._process.stdout.readline() != READY:
            raise JudgeLostError(await self._ending())

    async def judge(self, job: bytes) -> Judged:
        """See `ServiceJudge`."""
        process = self._process
        assert process is not None and process.stdin is not None, "it was opened"
        assert process.stdout is not None, "it is a pipe"
        line = b""
        with suppress(OSError):
            process.stdin.write(job + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            raise JudgeLostError(await self._ending())
        return decode(line, Judged)

    async def close(self) -> None:
        """See `ServiceJudge`."""
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                end_with_descendants(process.pid)
            await process.wait()
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _ending(self) -> str:
        """End the process if it still runs, and describe its end."""
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

    def __init__(self, name: str, settings: ServiceSettings, environment: Environment) -> None:
        self.name = name
        self._settings = settings
        self._environment = environment
        self._actor: OpenActor | None = None

    async def open(self) -> None:
        """See `ServiceJudge`."""
        if self._actor is None:
            opener = partial(_open_in_actor, self._settings, self._environment)
            self._actor = await asyncio.to_thread(OpenActor, opener, device_of(self._settings.run))

    async def judge(self, job: bytes) -> Judged:
        """See `ServiceJudge`."""
        assert self._actor is not None, "it was opened"
        try:
            return decode(await self._actor.work(job), Judged)
        except self._actor.lost as cause:
            await self.close()
            raise JudgeLostError(f"judge {self.name}: {ray_sentence(cause)}") from cause

    async def close(self) -> None:
        """See `ServiceJudge`."""
        actor, self._actor = self._actor, None
        if actor is not None:
            actor.end()


def _open_in_actor(settings: ServiceSettings, environment: Environment) -> Callable[[bytes], bytes]:
    """Return the judge of jobs given as JSON; it ends with the actor's process."""
    check_machine(environment, settings.run)
    judge = JobJudge(settings).__enter__()
    return lambda job: encode(judge.judge(decode(job, JudgeJob)))
