"""The judge's knowledge of devices, without one."""

import mmap
from pathlib import Path

import pytest
import torch

from passnet.bench.environment import Gpu, gpu_of
from passnet.errors import InputError
from passnet.judge.processes.sandbox import Sandbox
from passnet.judge.protocol.device import (
    STAGED,
    device_environment,
    device_nodes,
    find_device,
    kind_of,
    lock_name,
)
from passnet.judge.protocol.messages import InputLayout
from passnet.judge.worker import arguments


def test_each_gpu_has_a_lock_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert (lock_name("cpu"), lock_name("cuda")) == ("cpu", "cuda-0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert lock_name("cuda") == "cuda-3"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-8a/../b")
    assert lock_name("cuda") == "cuda-GPU-8ab"
    assert (kind_of("cuda"), kind_of("staged"), kind_of("cpu")) == ("cuda", "cpu", "cpu")


def test_workers_of_the_cpu_see_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    by_nvml = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
    assert device_environment("cpu") == {**by_nvml, "CUDA_VISIBLE_DEVICES": ""}
    assert device_environment("cuda")["CUDA_VISIBLE_DEVICES"] == "2"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    # Without NVML, to ask whether there is a GPU makes a context, which no fork can use.
    assert device_environment("cuda") == by_nvml


@pytest.mark.parametrize("name", ["bubblewrap", "unshare"])
def test_a_sandbox_shows_the_files_of_a_device_and_keeps_dev_read_only(name: str) -> None:
    words = Sandbox(name).command(["true"], devices=[Path("/dev/nvidia0")])  # type: ignore[arg-type]
    assert any("/dev/nvidia0" in word for word in words)
    assert not any("/dev/nvidia0" in word for word in Sandbox(name).command(["true"]))  # type: ignore[arg-type]
    if name == "bubblewrap":
        remounted = [place for place, word in enumerate(words) if word == "--remount-ro"]
        assert words.index("/dev/nvidia0") < remounted[-1]
    assert device_nodes("cpu") == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="device cuda is not on this machine .*use --device cpu"):
        find_device("cuda")
    assert find_device("cpu") == ""


def test_a_gpu_is_described_by_its_line() -> None:
    line = "NVIDIA H200, 570.86.15, 143771, 1980, 3201"
    assert gpu_of(line) == Gpu("NVIDIA H200", "570.86.15", 143771, 1980, 3201)
    assert gpu_of("Some, 1.0, [N/A], 10, [N/A]") == Gpu("Some", "1.0", 0, 10, 0)


class Runtime:
    """Locks memory as CUDA's runtime does, which knows it by its address alone."""

    def __init__(self) -> None:
        self.locked: set[int] = set()

    def cudaHostRegister(self, address: int, num_bytes: int, flags: int) -> int:  # noqa: N802
        already, fine = 712, 0
        if address in self.locked:
            return already
        self.locked.add(address)
        return fine

    def cudaHostUnregister(self, address: int) -> int:  # noqa: N802
        self.locked.remove(address)
        return 0


def test_memory_is_unlocked_before_other_memory_can_lie_at_its_address() -> None:
    runtime, forgotten = Runtime(), []
    memory = mmap.mmap(-1, 4096)
    first, again = (  # the second does not fail: copies are slower
        arguments.PinnedMemory(memory, runtime, lambda: forgotten.append(1)) for _ in range(2)
    )
    assert runtime.locked and forgotten == [1]
    again.release()
    assert runtime.locked, "another one unlocks what it did not lock"
    first.release()
    first.release()
    assert not runtime.locked and forgotten == [1]


def test_arguments_of_bursts_are_unlocked_when_bursts_are_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = Runtime()
    monkeypatch.setattr(torch.cuda, "cudart", lambda: runtime)
    layouts = (InputLayout("float32", (4,), (0, 64)),)
    placement = arguments._DeviceArguments(layouts, mmap.mmap(-1, 4096), STAGED)
    placement.wait = lambda: None  # as on a GPU
    placement.place_slots(layouts, mmap.mmap(-1, 4096), mmap.mmap(-1, 4096))
    assert len(placement.slots) == 2 and len(runtime.locked) == 2
    placement.drop_slots()
    assert not placement.slots and not runtime.locked
