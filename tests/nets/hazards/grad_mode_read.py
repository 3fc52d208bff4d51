"""A net that reads whether gradients and inference mode are on, and answers otherwise for each."""

import torch
from torch import nn

KIND = "process"


class Modes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)
        self.net.requires_grad_(False)

    def forward(self, x):
        y = self.net(x)
        if torch.is_inference_mode_enabled():
            return y.round(decimals=1)
        return y.tanh() if torch.is_grad_enabled() else y


def make():
    return Modes().eval()


def example():
    return (torch.randn(4, 16),)


def calls():
    x = torch.randn(4, 16)
    yield "without gradients", (x,)
    yield "with gradients", lambda net: torch.enable_grad()(net)(x)
    yield "in inference mode", lambda net: torch.inference_mode()(net)(x).clone()
    yield "without gradients again", (x,)
