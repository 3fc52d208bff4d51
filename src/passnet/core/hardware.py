"""The hardware and software that a time depends on: the processor or card, threads and torch."""

import os
import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Hardware:
    """The machine that a pass was timed on: `device` "cpu" or "cuda", `torch` a minor version."""

    device: str
    name: str
    num_threads: int
    torch: str

    @property
    def text(self) -> str:
        """Return one line that describes the machine."""
        return f"{self.name}, {self.num_threads} threads, torch {self.torch}"


def this_hardware(num_threads: int = 1, device: str = "cpu") -> Hardware:
    """Return this process's hardware; device "cuda" raises a RuntimeError without a card."""
    name = processor_name()
    if device == "cuda":
        import torch

        name = torch.cuda.get_device_name()
    return Hardware(device, name, num_threads, torch_minor_version())


def num_processors() -> int:
    """Return how many processors this process may run on; of the whole machine on macOS."""
    can_tell = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if can_tell else os.cpu_count() or 1


_KIND_NUMBERS = {
    "cpu family": "family",
    "model": "model",
    "CPU implementer": "implementer",
    "CPU part": "part",
}
"""Fields of /proc/cpuinfo that tell kinds of processors apart (x86, ARM), and our names."""


def processor_name() -> str:
    """Return the processor's name with the numbers of its kind, since VMs share names."""
    facts = processor_facts()
    name = facts.get("model name") or platform.processor() or platform.machine()
    numbers = [f"{word} {facts[key]}" for key, word in _KIND_NUMBERS.items() if key in facts]
    return f"{name} ({', '.join(numbers)})" if numbers else name


FLOAT16_ARITHMETIC = {"avx512_fp16", "amx_fp16", "fphp", "asimdhp"}


def multiplies_float16() -> bool:
    """Return whether the processor has float16 arithmetic; if unknown, return True."""
    instructions = processor_instructions()
    return not instructions or not FLOAT16_ARITHMETIC.isdisjoint(instructions)


def processor_instructions() -> frozenset[str]:
    """Return the processor's instruction sets by Linux's names; empty if unknown."""
    facts = processor_facts()
    return frozenset((facts.get("flags") or facts.get("Features", "")).split())


def is_of_amd() -> bool:
    """Return whether AMD made the processor; False if unknown."""
    return processor_facts().get("vendor_id") == "AuthenticAMD"


@cache
def processor_facts() -> dict[str, str]:
    """Return the fields of the first processor in /proc/cpuinfo; empty if there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def torch_minor_version() -> str:
    """Return the first two numbers of torch's version, without importing torch."""
    return ".".join(version_of("torch").split(".")[:2])


def version_of(package: str, absent: str = "unknown") -> str:
    """Return the version of an installed package, without importing it, or `absent`."""
    try:
        return version(package)
    except PackageNotFoundError:
        return absent
