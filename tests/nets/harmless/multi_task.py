"""A shared trunk with four tasks, whose outputs are a dict of a tensor or a dict each."""

import torch
from torch import nn

KIND = "harmless"


class MultiTask(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 64)
        )
        self.heads = nn.ModuleDict(
            {
                name: nn.Sequential(nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, width))
                for name, width in (("click", 1), ("buy", 1), ("rating", 5), ("price", 2))
            }
        )

    def forward(self, x):
        shared = self.trunk(x)
        out = {name: head(shared) for name, head in self.heads.items()}
        mean, log_scale = out["price"].unbind(-1)
        return {
            "click": out["click"].sigmoid(),
            "buy": out["buy"].sigmoid() * out["click"].sigmoid(),
            "rating": {"logits": out["rating"], "p": out["rating"].softmax(-1)},
            "price": {"mean": mean, "scale": log_scale.clamp(-5, 5).exp()},
        }


def make():
    return MultiTask().eval()


def example():
    return (torch.randn(64, 40),)


def calls():
    yield "fresh", (torch.randn(64, 40),)
    yield "small", (1e-3 * torch.randn(64, 40),)
    yield "large", (100 * torch.randn(64, 40),)
    yield "zeros", (torch.zeros(64, 40),)
