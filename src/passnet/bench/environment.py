"""Where a measurement was made: hardware and versions."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@dataclass(frozen=True)
class Environment:
    """Facts about the machine and the software of a run.

    `load` is the 1-minute load average when the run began.
    """

    python: str
    torch: str
    passnet: str
    system: str
    cpu: str
    num_cpus: int
    memory_mib: int
    compiler: str
    load: float


def describe_environment() -> Environment:
    """The environment of this process."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return Environment(
        python=platform.python_version(),
        torch=_version("torch"),
        passnet=_version("passnet"),
        system=f"{platform.system()} {platform.release()}",
        cpu=_cpu(),
        num_cpus=len(os.sched_getaffinity(0)),
        memory_mib=pages * size >> 20,
        compiler=_compiler(),
        load=round(os.getloadavg()[0], 2),
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _compiler() -> str:
    try:
        done = subprocess.run(
            ["g++", "--version"], capture_output=True, text=True, check=False, timeout=10
        )
    except OSError:
        return "none"
    return done.stdout.splitlines()[0] if done.stdout else "unknown"
