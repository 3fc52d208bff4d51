"""What times depend on besides the code: the processor or card, its threads, and torch."""

import platform
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


_KIND_NUMBERS = {
    "cpu family": "family",
    "model": "model",
    "CPU implementer": "implementer",
    "CPU part": "part",
}
"""What tells kinds of processors apart, of x86 and of ARM, as the kernel calls it and as we do."""


def processor_name() -> str:
    """The processor as the system names it, and the numbers of its kind: a virtual machine says no
    more than "AMD EPYC" of generations that have different instructions.
    """
    facts = processor_facts()
    name = facts.get("model name") or platform.processor() or platform.machine()
    numbers = [f"{word} {facts[key]}" for key, word in _KIND_NUMBERS.items() if key in facts]
    return f"{name} ({', '.join(numbers)})" if numbers else name


FLOAT16_ARITHMETIC = {"avx512_fp16", "amx_fp16", "fphp", "asimdhp"}
"""What the kernel calls it if a processor computes in float16: of x86, and of ARM."""


def multiplies_float16() -> bool:
    """Whether the processor has arithmetic in float16; where that is not known, it is said to."""
    instructions = processor_instructions()
    return not instructions or not FLOAT16_ARITHMETIC.isdisjoint(instructions)


def processor_instructions() -> frozenset[str]:
    """The sets of instructions that the processor has, as the kernel calls them; none where it does
    not say.
    """
    facts = processor_facts()
    return frozenset((facts.get("flags") or facts.get("Features", "")).split())


@cache
def processor_facts() -> dict[str, str]:
    """What the system says of the first processor, by its own names; nothing where it does not."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def torch_minor_version() -> str:
    """The first two numbers of torch's version, which is not imported for that."""
    try:
        return ".".join(version("torch").split(".")[:2])
    except PackageNotFoundError:
        return "unknown"
