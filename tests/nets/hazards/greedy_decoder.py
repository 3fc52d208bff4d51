"""A decoder that stops at its end token: as many steps as each prompt takes."""

import torch
from torch import nn

KIND = "control flow"


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(12, 24)
        self.cell = nn.GRUCell(24, 24)
        self.out = nn.Linear(24, 12)

    def forward(self, prompt):
        state = torch.zeros(1, 24, dtype=self.out.weight.dtype)
        for token in prompt:
            state = self.cell(self.words(token)[None], state)
        tokens = []
        while len(tokens) < 15:
            token = self.out(3 * state)[0].argmax()
            tokens.append(token)
            if token.item() == 0:
                break
            state = self.cell(self.words(token)[None], state)
        return torch.stack(tokens)


def make():
    net = Decoder().eval()
    with torch.no_grad():
        net.out.bias[0] += 0.4
    return net


def example():
    return (torch.tensor([1, 2, 3]),)


def calls():
    for prompt in ([1, 2, 3], [4, 5, 6], [7, 8, 1], [9, 2, 2], [11, 11, 11], [0, 0, 0], [10, 3, 5]):
        yield f"prompt {prompt}", (torch.tensor(prompt),)
