"""The devices that graphs are judged on, as far as the judge has to know them; torch stays out.

Only workers have a CUDA context: a process with one cannot be forked.
"""

import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Literal

from passnet.core.jobs.children import python_command, python_environment
from passnet.errors import InputError

STAGED = "staged"
"""A device for tests: tensors in ordinary memory that the judge does not share."""
UNUSED = "unused"
"""A device for workers that run no graph; they start in half the time."""
_NODES = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm*", "nvidia-modeset", "nvidia-caps/*")
"""Files in /dev that CUDA opens."""

_PROBE_TIMEOUT_S = 120.0

_PROBE = "import torch; torch.cuda.init(); print(torch.cuda.get_device_name(0))"


def kind_of(device: str) -> Literal["cpu", "cuda"]:
    """Return the device that graphs name: "cpu" or "cuda"."""
    return "cuda" if device.startswith("cuda") else "cpu"


def lock_name(device: str) -> str:
    """Return a name that two users of a device share; for a GPU, the first visible one."""
    if kind_of(device) == "cpu":
        return device
    return "cuda-" + (re.sub(r"[^\w-]", "", first_gpu()) or "0")


def first_gpu() -> str:
    """Return the number or name of the first visible GPU."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"


def device_environment(device: str) -> dict[str, str]:
    """Return environment variables for a parent of workers."""
    # NVML's check makes no CUDA context, which forks of the parent could not use.
    variables = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
    if kind_of(device) == "cpu":
        return variables | {"CUDA_VISIBLE_DEVICES": ""}
    visible_gpus = os.environ.get("CUDA_VISIBLE_DEVICES")
    return variables | ({} if visible_gpus is None else {"CUDA_VISIBLE_DEVICES": visible_gpus})


def device_nodes(device: str) -> list[Path]:
    """Return the files in /dev that the workers of a device must be able to open."""
    if kind_of(device) == "cpu":
        return []
    return sorted(path for pattern in _NODES for path in Path("/dev").glob(pattern))


@cache
def find_device(device: str) -> str:
    """Return a device's hardware by name, empty for a CPU; InputError if this machine lacks it."""
    if kind_of(device) == "cpu":
        return ""
    try:
        probe = subprocess.run(
            python_command("-c", _PROBE),
            capture_output=True,
            text=True,
            check=False,
            env=python_environment(),
            cwd="/",
            timeout=_PROBE_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as cause:
        text = f"device {device}: torch did not find out in {cause.timeout:.0f} s"
        raise InputError(text) from cause
    if probe.returncode:
        words = probe.stderr.strip().splitlines() or [f"exit code {probe.returncode}"]
        raise InputError(f"device {device} is not on this machine ({words[-1]}); use --device cpu")
    return probe.stdout.strip()
