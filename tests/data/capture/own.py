"""Nets of the tests' own, as functions that a catalog entry can name."""

import os
import signal
import time

import torch

from passnet.data.capture.net import Net, NetInput, image


class Small(torch.nn.Module):
    """Two layers and a norm, with a table of indices that is made of values."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, width)
        self.norm = torch.nn.LayerNorm(width)
        self.second = torch.nn.Linear(width, width)
        torch.nn.init.normal_(self.second.weight, 0.5, 0.25)
        self.register_buffer("order", torch.arange(width).flip(0))

    def forward(self, x):
        return self.second(self.norm(self.first(x)).relu()[:, self.order])


class Broken(Small):
    """Has a graph break between two graphs."""

    def forward(self, x):
        y = self.first(x)
        torch._dynamo.graph_break()
        return self.second(self.norm(y)) + y


class Choosing(Small):
    """Looks at the value of a weight."""

    def forward(self, x):
        if float(self.second.weight.sum()) > 0:
            return self.first(x).relu()
        return self.first(x)


class Caching(Small):
    """Keeps a product of its weights when it is called first."""

    product = None

    def forward(self, x):
        if self.product is None:
            self.product = self.first.weight * 2
        return x @ self.product.T


class Counting(Small):
    """Writes into a buffer and a plain tensor, and replaces another buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros(4))
        self.register_buffer("total", torch.zeros(4))
        self.kept = torch.zeros(4)

    def forward(self, x):
        self.steps.add_(x[0])
        self.total = self.total + x[0]
        self.kept.mul_(0.5).add_(x[0])
        return self.first(x) + self.steps.sum() + self.total.sum() + self.kept.sum(), self.steps


def counting():
    return Counting(), torch.randn(2, 4)


def caching():
    return Caching(), torch.ones(2, 4)


@torch._dynamo.allow_in_graph
def strange(x):
    return x + 1


def foreign():
    return (lambda x: strange(x) * 2), torch.ones(3)


def half_foreign():
    def net(x):
        y = strange(x)
        torch._dynamo.graph_break()
        return y * 2

    return net, torch.ones(3)


def constant():
    def net(x):
        table = torch.arange(8).float().sin()
        torch._dynamo.graph_break()
        return x + table

    return net, torch.ones(2, 8)


def small():
    return Small(), torch.ones(2, 4)


def broken():
    return Broken(), torch.ones(2, 4)


def choosing():
    return Choosing(), torch.ones(2, 4)


def named():
    return Net(torch.nn.Conv2d(3, 4, 3), (image(1, 3, 16, 16),), domain="cv", task="edges")


def by_keyword():
    net = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x = NetInput(torch.ones(1, 5, 8), ("batch", "sequence", "width"))
    return Net(net, (x, x, x), {"need_weights": NetInput(False)})


def attending():
    x = torch.randn(3, 2, 8)
    return torch.nn.MultiheadAttention(8, 2), (x, x, x)


def lstm():
    return torch.nn.LSTM(4, 5, proj_size=3), torch.randn(3, 2, 4)


def gru():
    return torch.nn.GRU(4, 5, 2, bidirectional=True, batch_first=True), torch.randn(2, 3, 4)


def encoder():
    return torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), torch.randn(2, 3, 8)


def packed():
    def net(x):
        return torch.nn.utils.rnn.pack_padded_sequence(x, [2, 1], batch_first=True).data

    return net, torch.ones(2, 2, 4)


def huge():
    """7 billion parameters."""
    layers = [torch.nn.Linear(16384, 16384) for _ in range(26)]
    return torch.nn.Sequential(*layers), torch.ones(1, 16384)


def raises_when_built():
    raise ValueError("no such width")


def raises_when_called():
    return torch.nn.Linear(4, 2), torch.ones(2, 5)


def lacks_a_package():
    import a_package_that_nobody_has  # noqa: F401


def returns_nonsense():
    return 3


def dies():
    os.kill(os.getpid(), signal.SIGSEGV)


def dies_about_memory_format():
    os.write(2, b"y = x.contiguous(memory_format=torch.channels_last)\nno GPU here\n")
    os._exit(3)


def hangs():
    time.sleep(1000)


def eats_memory():
    return torch.zeros(40 * 2**30 // 8, dtype=torch.int64), torch.ones(1)


def leaves_a_child():
    if os.fork() == 0:
        time.sleep(1000)
    return small()


class Eighth(torch.nn.Module):
    """A net with weights of eight bits, which graphs cannot hold."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(4).to(torch.float8_e4m3fn))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale.to(torch.float32)


def eighth() -> Net:
    return Net(Eighth(), (NetInput(torch.ones(2, 4)),))
