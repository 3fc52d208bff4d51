"""A GRU over packed rows: the lengths of each call decide how far each row runs."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

KIND = "control flow"


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.rnn = nn.Embedding(30, 12), nn.GRU(12, 16, batch_first=True)
        self.out = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 5))

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(
            self.words(ids), lengths, batch_first=True, enforce_sorted=False
        )
        padded, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(padded)


def make():
    return Packed().eval()


def example():
    return torch.randint(0, 30, (3, 7)), torch.tensor([7, 4, 5])


def calls():
    for lengths in ([7, 4, 5], [2, 7, 1], [7, 7, 7], [3, 3, 2]):
        yield f"lengths {lengths}", (torch.randint(0, 30, (3, 7)), torch.tensor(lengths))
    yield "refused: a length of 0", (torch.randint(0, 30, (3, 7)), torch.tensor([7, 0, 5]))
