"""Running sums of 64-bit numbers, and differences of them: exact, and wrapping."""

import torch
from torch import nn

KIND = "values"


class RunningIds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(32, 8)

    def forward(self, deltas):
        ids = deltas.cumsum(-1)
        steps = torch.diff(ids, dim=-1)
        return self.table(ids % 32), ids, steps, ids.amax(-1)


def make():
    return RunningIds().eval()


def example():
    return (torch.randint(1, 4, (3, 10)),)


def calls():
    for bound in (2**25, 2**31, 2**55, 2**62):
        yield f"below {bound}", (torch.randint(bound // 2, bound, (3, 10)),)
    yield "negative", (torch.randint(-(2**40), 0, (3, 10)),)
