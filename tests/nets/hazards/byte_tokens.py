"""A tokeniser of bytes: classes looked up in a table, words numbered, and hashed by a product."""

import torch
from torch import nn

KIND = "values"


class ByteTokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        kinds = torch.zeros(256, dtype=torch.uint8)
        kinds[97:123], kinds[65:91], kinds[48:58], kinds[128:] = 1, 2, 3, 4
        self.register_buffer("kinds", kinds)
        self.table = nn.Embedding(512, 8)

    def forward(self, text):
        kinds = self.kinds[text.long()]
        lower = torch.where(kinds == 2, text + 32, text)
        starts = (kinds > 0) & (nn.functional.pad(kinds[:, :-1], (1, 0)) == 0)
        words = starts.long().cumsum(-1) * (kinds > 0)
        pairs = (lower[:, :-1].long() * 257 + lower[:, 1:]) % 512
        return self.table(pairs).mean(1), kinds, lower, words


def make():
    return ByteTokens().eval()


def _text(words):
    return torch.tensor([list(word.ljust(24).encode())[:24] for word in words], dtype=torch.uint8)


def example():
    return (_text(["the quick brown fox jumps", "over the lazy dog"]),)


def calls():
    yield "capitals", (_text(["THE Quick BROWN Fox", "OVER The LAZY Dog 42"]),)
    yield "beyond ASCII", (_text(["na\u00efve caf\u00e9", "\u4f60\u597d world"]),)
    yield "blank", (_text(["", ""]),)
    yield "any bytes", (torch.randint(0, 256, (2, 24), dtype=torch.uint8),)
