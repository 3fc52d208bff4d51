"""The environment of a measurement: hardware and versions."""

import os
import platform
import subprocess
from dataclasses import dataclass

from passnet.core.hardware import num_processors, processor_name, version_of
from passnet.judge.protocol.device import first_gpu
from passnet.judge.settings import RunSettings


@dataclass(frozen=True)
class Gpu:
    """Facts about the first visible GPU; clocks are the highest, and unknown facts empty or 0."""

    name: str = ""
    driver: str = ""
    memory_mib: int = 0
    sm_clock_mhz: int = 0
    memory_clock_mhz: int = 0


@dataclass(frozen=True)
class Environment:
    """The machine and the software of a run."""

    python: str
    torch: str
    passnet: str
    system: str
    cpu: str
    num_cpus: int
    memory_mib: int
    compiler: str
    load: float
    """The 1-minute load average when the run began."""

    gpu: Gpu | None = None
    """None in a run on the CPU."""


def describe_environment(with_gpu: bool = False) -> Environment:
    """Describe the environment of this process."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return Environment(
        python=platform.python_version(),
        torch=version_of("torch"),
        passnet=version_of("passnet"),
        system=f"{platform.system()} {platform.release()}",
        cpu=processor_name(),
        num_cpus=num_processors(),
        memory_mib=pages * size >> 20,
        compiler=_first_line(["g++", "--version"]) or "none",
        load=round(os.getloadavg()[0], 2),
        gpu=_describe_gpu() if with_gpu else None,
    )


def hardware_text(environment: Environment, settings: RunSettings) -> str:
    """Return the hardware of a run in words.

    Examples:
        >>> env = Environment("3.11", "2.13", "0.1.0", "Linux", "AMD EPYC", 2, 4096, "g++", 0.0)
        >>> hardware_text(env, RunSettings())
        'AMD EPYC, 2 cores, 1 thread'
    """
    threads = f"{settings.num_threads} thread{'s' * (settings.num_threads > 1)}"
    if settings.judge.device != "cpu":
        gpu = environment.gpu
        name = gpu.name if gpu is not None and gpu.name else settings.judge.device
        return f"{name}, host {environment.cpu}, {threads}"
    cores = f"{environment.num_cpus} core{'s' * (environment.num_cpus > 1)}"
    return f"{environment.cpu}, {cores}, {threads}"


def _describe_gpu() -> Gpu:
    query = "--query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.memory"
    layout = "--format=csv,noheader,nounits"
    line = _first_line(["nvidia-smi", query, layout, f"--id={first_gpu()}"])
    return gpu_of(line) if line else Gpu()


def gpu_of(line: str) -> Gpu:
    """Read the GPU from a line of `nvidia-smi`."""
    name, driver, *numbers = [part.strip() for part in line.split(",")]
    memory, sm_clock, memory_clock = [int(part) if part.isdecimal() else 0 for part in numbers]
    return Gpu(name, driver, memory, sm_clock, memory_clock)


def _first_line(command: list[str]) -> str:
    """Return the first line of a command's output; empty where it is missing or fails."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return ""
    return process.stdout.partition("\n")[0]
