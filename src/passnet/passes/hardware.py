"""What times depend on besides the code: the processor or card, its threads, and torch."""

import platform
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a pass was timed on.

    Args:
        device: "cpu" or "cuda".
        name: of the processor, or of the card.
        num_threads: of the processor, for a call.
        torch: the first two numbers of its version.
    """

    device: str
    name: str
    num_threads: int
    torch: str

    @property
    def text(self) -> str:
        """All of it in a few words."""
        return f"{self.name}, {self.num_threads} threads, torch {self.torch}"


def this_hardware(num_threads: int = 1, device: str = "cpu") -> Hardware:
    """What this process runs on, with some threads; for "cuda" torch is asked for the card.

    Raises:
        RuntimeError: there is no card.
    """
    name = processor_name()
    if device == "cuda":
        import torch

        name = torch.cuda.get_device_name()
    return Hardware(device, name, num_threads, torch_minor_version())


def processor_name() -> str:
    """The processor as the system names it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


FLOAT16_ARITHMETIC = {"avx512_fp16", "amx_fp16", "fphp", "asimdhp"}
"""What the kernel calls it if a processor computes in float16: of x86, and of ARM."""


@cache
def multiplies_float16() -> bool:
    """Whether the processor has arithmetic in float16; where that is not known, it is said to."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return True
    flags = [line for line in text.splitlines() if line.startswith(("flags", "Features"))]
    return not flags or not FLOAT16_ARITHMETIC.isdisjoint(flags[0].split())


def torch_minor_version() -> str:
    """The first two numbers of torch's version, which is not imported for that."""
    try:
        return ".".join(version("torch").split(".")[:2])
    except PackageNotFoundError:
        return "unknown"
