"""A net whose signature, documentation and constants callers read to choose what they pass."""

import inspect

import torch
from torch import nn

KIND = "interface"


class Documented(nn.Module):
    accepts = ("x", "mask")

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, *, scale: float = 1.0):
        """Return scores."""
        y = self.net(x) * scale
        return y if mask is None else y * mask


def make():
    return Documented().eval()


def example():
    return (torch.randn(4, 8),)


def chosen(net):
    """Pass the columns of a batch that the net takes, as trainers do."""
    batch = {"x": torch.ones(4, 8), "mask": torch.zeros(4, 1), "labels": torch.ones(4)}
    names = inspect.signature(net.forward).parameters
    return net(**{name: value for name, value in batch.items() if name in names})


def calls():
    x = torch.randn(4, 8)
    yield "fresh", (x,)
    yield "by signature", chosen
    yield "the signature", lambda net: str(inspect.signature(net.forward))
    yield "types", lambda net: sorted(net.forward.__annotations__)
    yield "documentation", lambda net: net.forward.__doc__
    yield "constants", lambda net: net.accepts
    yield "the name of the method", lambda net: net.forward.__name__
