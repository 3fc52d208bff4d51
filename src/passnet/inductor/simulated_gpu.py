"""Answers to Inductor's questions about a GPU while it plans, without a GPU.

It asks for the GPU's properties, a device guard, and three choices of a CUDA build: a convolution's
layout, attention's kernel, and whether Triton is there.
"""

import contextlib
import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from passnet.errors import FusionError
from passnet.inductor.attention import attention_on_cuda, layout_of_convolution


@dataclass(frozen=True, slots=True)
class GpuProperties:
    """Properties of a GPU that planning reads, under torch's names; `gcnArchName` is its name."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    total_memory: int
    gcnArchName: str  # noqa: N815, torch's name
    regs_per_multiprocessor: int = 65_536
    max_threads_per_multi_processor: int = 2_048
    max_threads_per_block: int = 1_024
    warp_size: int = 32
    shared_memory_per_block: int = 49_152
    shared_memory_per_block_optin: int = 232_448
    shared_memory_per_multiprocessor: int = 233_472
    L2_cache_size: int = 50 * 2**20


H200 = GpuProperties("NVIDIA H200", 9, 0, 132, 141 * 10**9, "NVIDIA H200")
"""The GPU to plan for if the machine has none.

Source: NVIDIA H200 data sheet (memory), H100 architecture white paper (132 multiprocessors of the
SXM5 board, second-level cache), CUDA C++ Programming Guide (limits of compute capability 9.0)."""

DEVICE_GUARDS = "_ZN3c104impl26device_guard_impl_registryE"
"""Symbol of libc10: a table with one device guard for each type of device."""

CUDA_GUARD, META_GUARD = 1, 14
"""Indices of CUDA and the meta device in that table (c10/core/DeviceType.h)."""


class DevicelessMode(FakeTensorMode):
    """Fake tensors that never touch a device, even if there is one."""

    @property
    def avoid_device_init(self) -> bool:
        """Return True; False would put constants on the device."""
        return True


@contextlib.contextmanager
def answering_for_gpu() -> Iterator[None]:
    """Let Inductor plan for cuda:0 with the properties of this machine's GPU, or of `H200`."""
    properties = torch.cuda.get_device_properties(0) if torch.cuda.is_available() else H200
    with _guarded(), _with_properties(properties), _with_choices():
        yield


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    """Provide a device guard for CUDA that does nothing, if this build of torch has none.

    Without one, an index into a fake tensor on a GPU is an error.
    """
    library = Path(torch.__file__).parent / "lib" / "libc10.so"
    guards = ctypes.c_void_p * (META_GUARD + 1)
    try:
        table = guards.in_dll(ctypes.CDLL(str(library)), DEVICE_GUARDS)
    except (OSError, ValueError) as cause:
        raise FusionError(
            f"torch {torch.__version__} has no table of device guards at {library}; plan for the "
            "CPU, or use a build of torch for Linux"
        ) from cause
    own = table[CUDA_GUARD]
    if own is None:
        table[CUDA_GUARD] = table[META_GUARD]
    try:
        yield
    finally:
        table[CUDA_GUARD] = own


@contextlib.contextmanager
def _with_properties(properties: Any) -> Iterator[None]:
    """Answer questions for the GPU's properties, and drop cached values from others."""
    from torch._dynamo import device_interface
    from torch._dynamo.device_interface import CudaInterface
    from torch._subclasses import fake_tensor

    answers: dict[str, Any] = {
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: (properties.major, properties.minor),
        "get_device_name": lambda device=None: properties.name,
        "current_device": lambda: 0,
        "is_available": lambda: False,  # whoever may use one when it is there does not
        "is_bf16_supported": lambda *_, **__: True,
    }
    cached_properties = device_interface.caching_worker_device_properties
    cached_devices = device_interface.caching_worker_current_devices
    with contextlib.ExitStack() as stack:
        for name, answer in answers.items():
            stack.enter_context(patch.object(torch.cuda, name, answer))
        for name in ("get_device_properties", "current_device", "is_bf16_supported"):
            stack.enter_context(patch.object(CudaInterface, name, staticmethod(answers[name])))
        stack.enter_context(patch.dict(cached_properties, {"cuda": [properties]}))
        stack.enter_context(patch.dict(cached_devices, {"cuda": 0}))
        stack.enter_context(patch.object(fake_tensor, "init_gpu_context", lambda device: None))
        _forget()
        stack.callback(_forget)
        yield


def _forget() -> None:
    """Drop Inductor's cached device properties."""
    from torch._inductor import utils
    from torch._inductor.runtime.hints import DeviceProperties

    getters = (utils.is_big_gpu, utils.get_max_num_sms, utils.using_b200)
    for cached in (DeviceProperties.create, *getters):
        cached.cache_clear()


@contextlib.contextmanager
def _with_choices() -> Iterator[None]:
    """Provide the choices of CUDA's own code, and a Triton to plan for (none is called)."""
    from torch._inductor import scheduler
    from torch._inductor.fx_passes import fuse_attention

    select, layout = torch._C._select_conv_backend, torch._C._conv_determine_backend_memory_format

    def selected(*args: Any, **kwargs: Any) -> Any:
        inputs: torch.Tensor = args[0] if args else kwargs["input"]  # by name up to torch 2.11
        return None if inputs.is_cuda else select(*args, **kwargs)

    def laid_out(inputs: torch.Tensor, weight: torch.Tensor, backend: Any) -> torch.memory_format:
        if backend is None:
            return layout_of_convolution(inputs, weight)
        return layout(inputs, weight, backend)

    with (
        patch.object(scheduler, "has_triton", lambda: True),
        patch.object(torch._C, "_select_conv_backend", selected),
        patch.object(torch._C, "_conv_determine_backend_memory_format", laid_out),
        patch.object(fuse_attention, "_scaled_dot_product_attention", attention_on_cuda),
        patch.object(torch.nn.functional, "scaled_dot_product_attention", attention_on_cuda),
    ):
        yield
