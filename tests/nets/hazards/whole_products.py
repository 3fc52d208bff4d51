"""Products of whole numbers along a row, in 32 and 64 bits: they wrap at 64."""

import torch
from torch import nn

KIND = "values"


class WholeProducts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sizes = nn.Parameter(torch.tensor(1.5))

    def forward(self, counts, ids):
        shares = counts.float().prod(-1) * self.sizes
        return counts.prod(-1), ids.prod(-1), (ids * 3 + 1).prod(0), shares


def make():
    return WholeProducts().eval()


def example():
    return torch.randint(1, 3, (4, 6), dtype=torch.int32), torch.randint(1, 3, (4, 6))


def calls():
    ids = torch.randint(1, 3, (4, 6))
    for bound in (100, 5000, 2**30):
        counts = torch.randint(bound // 2, bound, (4, 6), dtype=torch.int32)
        yield f"below {bound}", (counts, ids * counts)
    yield "zeros", (torch.zeros(4, 6, dtype=torch.int32), ids)
    yield "negative", (torch.randint(-40, 0, (4, 6), dtype=torch.int32), -ids)
