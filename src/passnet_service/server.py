"""A reward service from start to end: its folder, token, judges and port."""

from __future__ import annotations

import asyncio
import os
import resource
import secrets
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from passnet.bench.cluster import environment_on_ray
from passnet.bench.environment import Environment
from passnet.bench.run import environment_here
from passnet.core.jobs.children import reap_adopted
from passnet.core.jobs.folder_lock import LOCK_FILE, folder_lock
from passnet.core.records.serialise import (
    SCHEMA_VERSION,
    make_folder,
    read_json,
    replacing,
    write_json,
)
from passnet.errors import InputError
from passnet.judge.suite.suite import Suite
from passnet_service.dispatch import Dispatcher
from passnet_service.graph_check import GraphChecker
from passnet_service.judges import ProcessJudge, RayJudge, ServiceJudge
from passnet_service.queue import PRIVATE, SubmissionQueue
from passnet_service.settings import (
    JudgeDevice,
    ServiceInfo,
    ServiceLimits,
    ServiceSettings,
    settings_digest,
)

SERVICE_FILE = "service.json"
TOKEN_FILE = "token"
SCRATCH_FOLDER = "scratch"
REAP_EVERY_S = 1.0
OWN_DESCRIPTORS = 96
"""Descriptors for files, judges and checks of graphs."""

LOOPBACK = "127.0.0.1"
MIN_TOKEN_CHARACTERS = 16


@dataclass(frozen=True)
class ServicePlan:
    """The arguments of a service."""

    out: Path
    """Folder of the service; its queue goes on where it stopped."""

    devices: Sequence[JudgeDevice]
    """The devices of the judges, one each."""

    settings: ServiceSettings
    suites: Mapping[str, Suite] = field(default_factory=dict)
    """Suites whose tasks clients may name."""

    held_out: Suite | None = None
    """Other shapes of these tasks, on which passes must not be wrong."""

    limits: ServiceLimits = ServiceLimits()
    host: str = LOOPBACK
    port: int = 0
    """The port; 0 takes a free one."""

    token: str | None = None
    """The clients' token; None takes the one in the folder, made if there is none."""

    on_ray: bool = False
    """Judge on a Ray cluster, with as many judges as there are devices."""


def serve(plan: ServicePlan, started: Callable[[str], None]) -> None:
    """Serve until this process is told to end; `started` gets the service's address.

    Raises:
        InputError: libraries of the service are missing, the port is taken, or the folder is in
            use or has answers of other settings.
        MeasureError: a judge does not start.
    """
    if find_spec("h11") is None:
        raise InputError("h11 is not installed; pip install 'passnet[serve]'")
    run = plan.settings.run
    on_device = replace(run.judge, device=plan.devices[0].kind)
    held_out = plan.held_out.content_hash if plan.held_out else None
    settings = replace(plan.settings, run=replace(run, judge=on_device, held_out=held_out))
    environment = (environment_on_ray if plan.on_ray else environment_here)(settings.run)
    make_folder(plan.out)
    with folder_lock(plan.out), _listening(plan.host, plan.port) as listener:
        with suppress(OSError):  # a file system without locks
            (plan.out / LOCK_FILE).chmod(PRIVATE)
        token = plan.token or _kept_token(plan.out)
        if len(token) < MIN_TOKEN_CHARACTERS or not token.isascii() or not token.isprintable():
            raise InputError(
                f"the token must have {MIN_TOKEN_CHARACTERS} printable ASCII characters or more"
            )
        digest = _same_as_before(plan.out, settings, environment)
        num_on_ray = len(plan.devices) if plan.on_ray else 0
        on_ray = [RayJudge(f"{n} on Ray", settings, environment) for n in range(num_on_ray)]
        with closing(SubmissionQueue(plan.out, plan.limits.max_waiting)) as queue:
            judging = _serve(plan, settings, queue, listener, token, digest, started, on_ray)
            asyncio.run(judging)


async def _serve(
    plan: ServicePlan,
    settings: ServiceSettings,
    queue: SubmissionQueue,
    listener: socket.socket,
    token: str,
    digest: str,
    started: Callable[[str], None],
    on_ray: Sequence[ServiceJudge],
) -> None:
    from passnet_service.app import make_app
    from passnet_service.connections import Connections

    host, port = listener.getsockname()[:2]
    scratch = _emptied(plan.out)
    here: list[ProcessJudge] = []
    judges = [*on_ray]
    if not plan.on_ray:
        devices = enumerate(plan.devices)
        here = [ProcessJudge(number, each, settings, scratch) for number, each in devices]
        judges = [*here]
    limits = _within_descriptors(plan.limits, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    async with Dispatcher(queue, judges, limits.item_timeout_s) as dispatcher:
        with GraphChecker(folder=str(scratch)) as checker:
            suites = (plan.suites, plan.held_out)
            app = make_app(dispatcher, *suites, settings, digest, limits, checker)
            server = asyncio.create_task(Connections(app, token, limits).accept(listener))
            started(f"http://{f'[{host}]' if ':' in host else host}:{port}")
            fed = asyncio.create_task(dispatcher.fed())

            def started_pids() -> list[int]:
                pids = (judge.pid for judge in here)
                return [*checker.pids(), *(pid for pid in pids if pid is not None)]

            reaper = asyncio.create_task(_reap(started_pids))
            tasks = (server, fed, reaper)
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                    with suppress(asyncio.CancelledError, Exception):
                        await task


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as cause:
        raise InputError(
            f"cannot listen on {host}:{port}: {cause}; choose another --port"
        ) from cause
    with listener:
        yield listener


async def _reap(started_pids: Callable[[], Sequence[int]]) -> None:
    """Reap what ended judges have left, for ever."""
    while True:
        reap_adopted(started_pids())
        await asyncio.sleep(REAP_EVERY_S)


def _within_descriptors(limits: ServiceLimits, num_descriptors: int) -> ServiceLimits:
    """Return limits that leave the service descriptors of its own: a connection needs one."""
    most = max((num_descriptors - OWN_DESCRIPTORS) // 2, 2)
    return replace(
        limits,
        strangers=min(limits.strangers, most),
        connections=min(limits.connections, most),
    )


def _emptied(out: Path) -> Path:
    """Empty the folder of temporary files, which a killed service may have left, and return it."""
    scratch = out.resolve() / SCRATCH_FOLDER
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o700)
    return scratch


def _kept_token(out: Path) -> str:
    """Return the token in a folder, made if there is none; only its owner can read it."""
    path = out / TOKEN_FILE
    if not path.exists() or path.stat().st_size == 0:  # emptied by a full disk or a power cut
        with replacing(path, PRIVATE) as partial, partial.open("w") as stream:
            stream.write(secrets.token_urlsafe(32) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
    return path.read_text(encoding="utf-8").strip()


def _same_as_before(out: Path, settings: ServiceSettings, environment: Environment) -> str:
    """Return the digest of settings and environment, after a check against the folder's."""
    digest = settings_digest(settings, environment)
    path = out / SERVICE_FILE
    if path.exists():
        before = read_json(path, ServiceInfo)
        if settings_digest(before.settings, before.environment) != digest:
            raise InputError(
                f"{out}: its answers were made with other settings, or on another machine; choose "
                "another --out, or start it as before"
            )
    else:
        write_json(path, ServiceInfo(SCHEMA_VERSION, settings, environment))
    path.chmod(PRIVATE)
    return digest
