"""The settings and limits of a reward service."""

import hashlib
import re
from dataclasses import dataclass, field

from passnet.bench.environment import Environment
from passnet.core.records.serialise import SCHEMA_VERSION, encode
from passnet.errors import InputError
from passnet.judge.candidate import CallMode
from passnet.judge.settings import RunSettings

_DEVICE = re.compile(r"(cpu|cuda):(\d+)")


@dataclass(frozen=True, slots=True)
class JudgeDevice:
    """The device of one judge; judges on one GPU, or on the CPU, take turns to measure."""

    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings of the judging of submissions."""

    run: RunSettings
    """Settings of the judge; its device is that of all judges."""

    call: CallMode = "compiled"
    """Call rewritten graphs through torch.compile, directly, or behind passnet's own checks."""

    budget_s: float = field(default=300.0, metadata={"option": "timeout"})
    """Give a submission this many seconds in all, on all its graphs.

    After that it is a `timeout` on each. The wait for its turn to measure does not count.
    """


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Limits of a service."""

    max_waiting: int = 4096
    """Let at most this many submissions wait; ask clients to come back later."""

    item_timeout_s: float = 3600.0
    """Restart a judge that takes more than this many seconds for one submission, waits included.

    That is a fault of the service: a judge ends a submission at its budget.
    """

    head_timeout_s: float = 5.0
    """Seconds for a client to send the whole head of a request."""

    body_bytes: int = 4 * 2**20
    """Most bytes of a request's body."""

    body_timeout_s: float = 30.0
    """Seconds for a client to send the body of a request, and to read the answer."""

    wait_s: float = 30.0
    """Longest wait of one request for an answer."""

    strangers: int = 512
    """Most connections that have not shown the token; for another one the oldest is dropped."""

    connections: int = 512
    """Most requests with the token at a time."""


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """The record of a service in its folder."""

    schema_version: int
    settings: ServiceSettings
    environment: Environment


def settings_digest(settings: ServiceSettings, environment: Environment) -> str:
    """Hash the settings, hardware and versions that an answer depends on."""
    names = ("cpu", "python", "torch", "passnet", "compiler")
    facts = (
        *(getattr(environment, name) for name in names),
        environment.gpu and environment.gpu.name,
    )
    return hashlib.sha256(encode((SCHEMA_VERSION, settings, facts))).hexdigest()


def parse_devices(text: str) -> tuple[JudgeDevice, ...]:
    """Read a list of devices, one for each judge: "cpu:0,cpu:1" or "cuda:0,cuda:1".

    Raises:
        InputError: a word is no device, or there are devices of both kinds.

    Examples:
        >>> [str(device) for device in parse_devices("cuda:0, cuda:1")]
        ['cuda:0', 'cuda:1']
    """
    devices = []
    for word in text.split(","):
        match = _DEVICE.fullmatch(word.strip())
        if match is None:
            raise InputError(
                f"--device: {word.strip()!r} is no device; give for example cpu:0 or cuda:0,cuda:1"
            )
        devices.append(JudgeDevice(match[1], int(match[2])))
    if len({device.kind for device in devices}) > 1:
        raise InputError("--device: give either CPUs or GPUs; times of both are never compared")
    return tuple(devices)
