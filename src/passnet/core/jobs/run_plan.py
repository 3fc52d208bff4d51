"""The plan of a run over many items: resume, parts, executor and workers."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from passnet.core.hardware import num_processors
from passnet.core.jobs.executors import EXECUTORS, Executor, executor, run_local, run_ray
from passnet.errors import InputError


@dataclass(frozen=True, slots=True)
class RunShard:
    """The part `number`, from 1, of `total` parts of a run."""

    number: int = 1
    total: int = 1

    def has(self, name: str) -> bool:
        """Return whether an item is in this part.

        Examples:
            >>> [RunShard(number, 3).has("an item") for number in (1, 2, 3)].count(True)
            1
        """
        digest = hashlib.sha256(name.encode()).hexdigest()
        return int(digest[:8], 16) % self.total + 1 == self.number

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"


_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}

WHOLE = RunShard()


def shard_of(text: str) -> RunShard:
    """Return the part that a text such as 2/8 names; raise InputError for any other text."""
    number, slash, total = text.partition("/")
    if not (slash and number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total)):
        raise InputError(f"--shard {text}: give two numbers such as 2/8, from 1/8 to 8/8")
    return RunShard(int(number), int(total))


def seconds_of(text: str) -> float:
    """Return the seconds in a text such as 90, 90s, 10m or 1h; raise InputError for others.

    Examples:
        >>> seconds_of("10m")
        600.0
    """
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([smh]?)", text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if seconds <= 0:
        raise InputError(f"{text!r} is no duration; write 90s, 10m or 1h")
    return seconds


def num_workers_of(jobs: int) -> int:
    """Return a number of workers; 0 stands for one on each core of this process."""
    return jobs or num_processors()


def silent(_: Any) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The plan of a run over many items; its fields make options of commands."""

    resume: bool = False
    """Continue an interrupted run and keep what it finished."""

    retry: bool = False
    """With --resume, redo items that failed or were unstable."""

    shard: RunShard = field(
        default=WHOLE, metadata={"convert": shard_of, "metavar": "NUMBER/TOTAL"}
    )
    """Work on this part of the items only, such as 2/8; --with joins the parts."""

    parts: tuple[Path, ...] = field(default=(), metadata={"option": "with"})
    """Take over the results of this folder, which holds another part of the same run."""

    executor: Executor = field(
        default=run_local,
        metadata={"choices": tuple(EXECUTORS), "convert": executor, "default": "local"},
    )
    """Work in processes on this machine, or on a Ray cluster."""

    num_workers: int = field(
        default=1, metadata={"option": "jobs", "least": 0, "most": 1024, "convert": num_workers_of}
    )
    """Work on this many items at a time; 0 means one for each core."""

    progress: Callable[[Any], None] = silent
    """Callback for the record of an item that is done, also for one that was done before."""

    @property
    def is_on_ray(self) -> bool:
        """Return whether the items go to a Ray cluster."""
        return self.executor is run_ray

    @property
    def num_actors(self) -> int | None:
        """Return the number of Ray actors; None for one worker here, and InputError for several."""
        if self.num_workers > 1 and not self.is_on_ray:
            raise InputError("--jobs goes with --executor ray, or divide the work by --shard")
        return self.num_workers if self.is_on_ray else None


DEFAULT_PLAN = RunPlan()
