"""Nets whose graphs change with the size or the dtype of their inputs, as entries of a catalog."""

import torch

from passnet.data.capture.net import Net, floats, tokens


class Rms(torch.nn.Module):
    """A norm that computes in float32 and goes back to the dtype of its input, and a mask of the
    smallest number of that dtype.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(8))
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        y = self.linear(self.scale * wide.to(x.dtype))
        masked = (y @ y.transpose(1, 2)).masked_fill(
            torch.ones(x.shape[1], x.shape[1]).triu(1).bool(), torch.finfo(x.dtype).min
        )
        return masked.softmax(-1) @ y


def rms():
    return Net(Rms().eval(), (floats(2, 6, 8, axes=("batch", "time", "8")),))


class Table(torch.nn.Module):
    """Keeps a table of the size of its first input."""

    cached = None

    def forward(self, x):
        if self.cached is None:
            self.cached = torch.arange(x.shape[1], dtype=torch.float32)
        return x + self.cached[:, None]


def table():
    return Net(Table(), (floats(2, 6, 8, axes=("batch", "time", "8")),))


def branching():
    """Has another op for long inputs."""

    def net(x):
        return x.relu() if x.shape[0] < 32 else x.tanh()

    return Net(net, (floats(2, 4, axes=("batch", "4")),))


class Fixed(torch.nn.Module):
    """Takes batches of up to four."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        if x.shape[0] > 4:
            raise ValueError("too many")
        return x * self.weight


def fixed():
    return Net(Fixed(), (floats(2, 4, axes=("batch", "4")),))


def without_batch():
    return Net(torch.nn.ReLU(), (floats(4, 8, axes=("node", "8")),))


def lacking():
    import no_such_library  # noqa: F401


def words():
    class Words(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(50, 8)

        def forward(self, ids):
            return self.table(ids).mean(1)

    return Net(Words(), (tokens(50, 2, 6),))


def broken():
    raise ValueError("no such weights")
