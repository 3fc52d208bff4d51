"""The memory that comparing takes besides a net's own."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from passnet.optimizer.backends.backend import build_backend
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.compare.agreement import MAX_FLOAT64_BYTES, EagerComparison
from passnet.optimizer.compare.float64_copy import copy_in_float64


def anonymous_bytes() -> int:
    """The memory of this process that is of no file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise AssertionError("Linux says it")


def most_more(work: Callable[[], object]) -> int:
    """Return how many bytes of memory some work takes at most at one moment."""
    before, most, is_done = anonymous_bytes(), [0], threading.Event()

    def watch() -> None:
        while not is_done.is_set():
            most[0] = max(most[0], anonymous_bytes() - before)
            time.sleep(0.002)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        work()
    finally:
        is_done.set()
        thread.join()
    return most[0]


def layers(num_layers: int, width: int) -> torch.nn.Module:
    """A net of many equal weights."""
    return torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(num_layers)]).eval()


class OneTable(torch.nn.Module):
    """A net that is nearly all one weight."""

    def __init__(self, num_rows: int) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(num_rows, 256)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table.weight[:4].sum()


NETS: dict[str, Callable[[], torch.nn.Module]] = {
    "many weights": lambda: layers(24, 1024),
    "one weight": lambda: OneTable(MAX_FLOAT64_BYTES // 1024),
}


@pytest.mark.parametrize("case", NETS)
def test_comparing_takes_less_than_the_weights_of_a_large_net_again(case: str) -> None:
    net = NETS[case]()
    num_bytes = sum(weight.nbytes for weight in net.parameters())
    width = 1024 if case == "many weights" else 256
    call = NetCall(net, (torch.randn(1, width),), {})
    built = call.built("off", lambda tensors: [net(tensors[0]) * 1.0001])

    def work() -> None:
        with torch.no_grad():
            assert EagerComparison(call, max_exact_s=60).agreement(built).wrong is not None
            same = call.built("same", lambda tensors: [net(tensors[0])])
            assert EagerComparison(call, max_exact_s=60).agreement(same).wrong is None

    work()  # code, threads and caches of the allocator
    assert most_more(work) < 0.8 * num_bytes


class Reads(torch.nn.Module):
    """A net that reads weights in all ways: an attention, an LSTM, a buffer, a list."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.lstm = torch.nn.LSTM(8, 8, batch_first=True)
        self.norm = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(8, 8))
        self.scales = torch.nn.ParameterList([torch.nn.Parameter(torch.rand(8)) for _ in range(2)])
        self.register_buffer("shift", torch.rand(8))
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed, _ = self.attention(x, x, x)
        y, _ = self.lstm(self.norm(mixed) + self.shift)
        return y * self.scales[0] + self.scales[1]


def test_a_copy_in_float64_is_right_and_leaves_the_net_as_it_was() -> None:
    torch.manual_seed(0)
    net, x = Reads(), torch.randn(2, 3, 8)
    scripted = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.jit.script(torch.nn.Linear(8, 8)))
    for each in (net, scripted.eval()):
        weights: Sequence[torch.Tensor] = [*each.parameters(), *each.buffers()]
        before = [weight.clone() for weight in weights]
        with torch.no_grad():
            right = each(x)
            exact = copy_in_float64(each)(x.double())
            assert exact.dtype is torch.float64
            assert torch.allclose(exact.float(), right, atol=1e-6)
            assert torch.equal(each(x), right)
        assert all(map(torch.equal, before, weights))
        assert all(weight.dtype is torch.float32 for weight in weights)


def test_a_package_lets_go_of_the_weights_that_it_read_before(tmp_path: Path) -> None:
    net = torch.nn.Linear(4, 4).eval()
    call = NetCall(net, (torch.randn(2, 4),), {})
    built = build_backend("aot", BACKENDS["aot"], call, tmp_path / "aot")
    own, storage = torch.nn.Linear(4, 4), net.weight.untyped_storage()
    weak = storage._weak_ref()
    for name, weight in own.named_parameters():
        call.weights[name].data = weight.data
    assert built.bind is not None
    built.bind(dict(own.named_parameters()))
    del storage
    assert torch.UntypedStorage._expired(weak)
    with torch.no_grad():
        assert torch.allclose(built.run(call.tensors())[0], own(call.tensors()[0]), atol=1e-6)
