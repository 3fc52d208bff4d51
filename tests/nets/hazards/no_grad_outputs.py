"""A head without gradients on a trunk with them; outputs need gradients as in eager."""

import torch
from torch import nn

KIND = "form"


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.head = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        with torch.enable_grad():
            hidden = self.trunk(x)
        with torch.no_grad():
            scores = self.head(hidden)
        return hidden, hidden.detach(), scores


def make():
    return Parts().eval()


def example():
    return (torch.randn(4, 8),)


def learned(net):
    hidden, _, _ = net(torch.ones(4, 8))
    with torch.enable_grad():
        hidden.sum().backward()
    grads = [weight.grad is not None for weight in net.parameters()]
    for weight in net.parameters():
        weight.grad = None
    return grads


def calls():
    x = torch.randn(4, 8)
    yield "fresh", (x,)
    yield "gradients of the trunk", learned
    yield "in inference mode", lambda net: torch.inference_mode()(net)(x)[2].is_inference()
    yield "with gradients on", lambda net: [y.requires_grad for y in torch.enable_grad()(net)(x)]
