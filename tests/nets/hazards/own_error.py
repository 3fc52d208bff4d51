"""A net that raises its own error for ids beyond its table, with a text that callers print."""

import torch
from torch import nn

KIND = "process"


class UnknownId(ValueError):
    pass


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(16, 8), nn.Linear(8, 4)

    def forward(self, ids):
        if int(ids.max()) >= self.table.num_embeddings:
            raise UnknownId(f"id {int(ids.max())} is not below {self.table.num_embeddings}")
        return self.head(self.table(ids))


def make():
    return Table().eval()


def example():
    return (torch.randint(0, 16, (2, 5)),)


def text(ids):
    def tried(net):
        try:
            return net(ids)
        except Exception as error:  # noqa: BLE001 (a backend may raise anything)
            return type(error).__name__, str(error)

    return tried


def calls():
    yield "fresh", (torch.randint(0, 16, (2, 5)),)
    yield "refused: an unknown id", (torch.full((2, 5), 99),)
    yield "the text of the error", text(torch.full((2, 5), 16))
    yield "whether a negative id is an error", text(torch.full((2, 5), -1))
    yield "whether a fraction is an error", text(torch.full((2, 5), 0.5))
