"""An access beyond a tensor between pages without access ends its process, and is located."""

import ctypes
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from passnet.judge.candidate import Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool, worker_library
from passnet.judge.settings import JudgeSettings
from passnet.judge.trial import Trial
from passnet.judge.worker.fence import Fence
from tests.judge.folders import small_graph, write_passes

pytestmark = pytest.mark.xdist_group("judge")

SIZE = 4000
"""Bytes of the tensor that accesses are made beside: 32 less than a multiple of 64."""


def fenced_in(layout: int, access: Callable[[Fence, torch.Tensor], object]) -> tuple[int, str]:
    """How a process ends that makes an access beside a fenced tensor, argument 3, and what it says;
    the code is negative for a signal.
    """
    library = worker_library("fence")
    assert library is not None
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 2)
        fence = Fence(str(library))
        fence.lay_out(layout)
        tensor = torch.empty(SIZE // 4)
        fence.name(tensor, 3)
        access(fence, tensor)
        fence.check()
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as said:
        text = said.read().strip()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text


def reads(offset: int) -> Callable[[Fence, torch.Tensor], object]:
    return lambda _, tensor: ctypes.string_at(tensor.data_ptr() + offset, 1)


def writes(offset: int) -> Callable[[Fence, torch.Tensor], object]:
    return lambda _, tensor: ctypes.memset(tensor.data_ptr() + offset, 1, 1)


def writes_and_frees(_: Fence, tensor: torch.Tensor) -> None:
    other = torch.empty(5)
    ctypes.memset(other.data_ptr() + 20, 1, 1)
    del other
    os._exit(0)


def reads_freed(_: Fence, tensor: torch.Tensor) -> None:
    ctypes.string_at(tensor.clone().data_ptr(), 1)


BESIDE = "argument 3, which has 4000 bytes"
ACCESSES = {
    "behind": (0, reads(4032), f"it read 32 bytes behind the end of {BESIDE}"),
    "before": (1, reads(-1), f"it read 1 bytes before the beginning of {BESIDE}"),
    "written behind": (0, writes(4032), f"it wrote 32 bytes behind the end of {BESIDE}"),
    "written before": (1, writes(-4), f"it wrote 4 bytes before the beginning of {BESIDE}"),
    "written right behind": (0, writes(4000), f"it wrote 0 bytes behind the end of {BESIDE}"),
    "written on the same page": (1, writes(4090), f"it wrote 90 bytes behind the end of {BESIDE}"),
    "written, and then freed": (
        0, writes_and_frees, "it wrote 0 bytes behind the end of a tensor of 20 bytes that it made",
    ),
    "freed": (
        0, reads_freed, "it read in a tensor of 4000 bytes that it made, and was freed before",
    ),
    "far": (0, reads(1 << 45), "it read or wrote far from every tensor"),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCESSES)
def test_an_access_beyond_a_tensor_ends_the_process_and_says_where(name: str) -> None:
    layout, access, said = ACCESSES[name]
    code, text = fenced_in(layout, access)
    assert (code, text) == (-signal.SIGSEGV, said)


def is_sound(_: Fence, tensor: torch.Tensor) -> None:
    """What is allowed, and what tensors are like in both layouts."""
    assert tensor.data_ptr() % 64 == 0 and torch.empty(0, 3).numel() == 0
    assert torch.empty(7, dtype=torch.bool).fill_(True).all()
    grown = torch.ones(3).resize_(100_000).zero_()
    assert grown.sum() == 0
    ctypes.string_at(tensor.data_ptr() + SIZE, 32)
    kept = [torch.full((n,), float(n)) for n in range(1, 300)]
    assert all(float(each[-1]) == n for n, each in enumerate(kept, 1))


@pytest.mark.parametrize(("layout", "value"), [(0, "nan"), (1, "3.3961776292304601e+38")])
def test_what_is_allowed_goes_on_and_what_nobody_wrote_is_filled(layout: int, value: str) -> None:
    def access(fence: Fence, tensor: torch.Tensor) -> None:
        assert torch.allclose(tensor, torch.tensor(float(value)), equal_nan=True)
        is_sound(fence, tensor)

    assert fenced_in(layout, access) == (0, "")


def test_without_a_compiler_there_is_no_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    worker_library.cache_clear()
    try:
        assert worker_library("fence") is None
    finally:
        worker_library.cache_clear()


def judged(parents: ParentPool, root: Path, body: str) -> Trial:
    passes = write_passes(Path(tempfile.mkdtemp(dir=root)), body)
    candidate = Candidate("passes", "passes", str(passes), "direct", root=str(root))
    [trial] = judge_graph(parents, small_graph(), [candidate], JudgeSettings(timing=None))
    return trial


def test_what_fails_in_the_fenced_run_alone_is_noted(parents: ParentPool, root: Path) -> None:
    body = (
        "import torch\n"
        "def replacement(x, y):\n"
        "    if not torch.empty(64).isfinite().any():\n"
        "        raise RuntimeError('no')\n"
        "    return torch.relu(x + y)\n"
    )
    trial = judged(parents, root, body)
    assert (trial.status, trial.smallest_t) == ("ok", -10), trial.error
    [found] = [each for each in trial.findings if each.name == "not_fenced"]
    assert found.weight == "note" and "no" in found.evidence and trial.phases_s["fence"] > 0


def test_what_ends_its_worker_in_any_run_is_named_too(parents: ParentPool, root: Path) -> None:
    body = (
        "import ctypes\ndef replacement(x, y):\n    ctypes.memset(x.data_ptr() + (1 << 44), 0, 1)\n"
    )
    trial = judged(parents, root, body)
    assert trial.status == "crash" and trial.error is not None
    assert "far from every tensor" in trial.error
    assert "out_of_bounds" in [each.name for each in trial.findings]
