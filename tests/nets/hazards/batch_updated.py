"""A net that adds its result to the dict that it is given, and returns this very dict."""

import torch
from torch import nn

KIND = "form"


class Updating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 4)

    def forward(self, batch):
        batch["y"] = self.net(batch["x"])
        batch["sum"] = batch.get("sum", 0) + batch["y"].sum(0)
        return batch


def make():
    return Updating().eval()


def example():
    return ({"x": torch.randn(4, 8)},)


def is_same(net):
    batch = {"x": torch.ones(4, 8)}
    output = net(net(batch))
    return output is batch, batch["sum"], batch["y"], list(batch)


def calls():
    x = torch.randn(4, 8)
    yield "fresh", ({"x": x},)
    yield "a former result", ({"x": x, "y": torch.ones(4, 4), "sum": torch.ones(4)},)
    yield "identity", is_same
    yield "refused: no x", ({"y": x},)
