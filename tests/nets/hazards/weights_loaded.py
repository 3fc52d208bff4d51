"""A net that loads other weights after optimisation, in place and by assign=True."""

import io

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        self.out = nn.Sequential(nn.Flatten(), nn.Linear(288, 4))

    def forward(self, x):
        return self.out(self.stem(x))


def make():
    return Net().eval()


def example():
    return (torch.randn(2, 3, 8, 8),)


def loaded(scale, **options):
    def use(net):
        values = {name: scale * value.clone() for name, value in net.state_dict().items()}
        file = io.BytesIO()
        torch.save(values, file)
        file.seek(0)
        net.load_state_dict(torch.load(file), **options)
        return net(torch.linspace(-1, 1, 384).reshape(2, 3, 8, 8).sin())

    return use


def one_wrong(net):
    try:
        net.load_state_dict({**net.state_dict(), "out.1.bias": torch.zeros(5)})
    except RuntimeError as error:
        return type(error).__name__, net(torch.ones(2, 3, 8, 8))
    return "it loads a bias of another shape"


def calls():
    yield "fresh", (torch.randn(2, 3, 8, 8),)
    yield "loaded", loaded(2)
    yield "loaded by assign=True", loaded(-1, assign=True)
    yield "loaded again", loaded(0.5)
    yield "one of them does not fit", one_wrong
