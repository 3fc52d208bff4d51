"""A small recurrent llm with a method that calls the net step by step until a token ends it."""

import torch
from torch import nn

KIND = "interface"


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell = nn.Embedding(16, 8), nn.GRUCell(8, 8)
        self.head = nn.Linear(8, 16)
        self.steps = 0

    def forward(self, ids, state=None):
        state = torch.zeros(len(ids), 8) if state is None else state
        for column in ids.T:
            state = self.cell(self.embedding(column), state)
        return self.head(state), state

    @torch.no_grad()
    def generate(self, ids, count=6, end=3, temperature=0.0):
        logits, state = self(ids)
        for _ in range(count):
            self.steps += 1
            if temperature:
                token = torch.multinomial((logits / temperature).softmax(-1), 1)
            else:
                token = logits.argmax(-1, keepdim=True)
            ids = torch.cat([ids, token], 1)
            if (token == end).all():
                break
            logits, state = self(token, state)
        return ids


def make():
    return Model().eval()


def example():
    return (torch.randint(0, 16, (1, 4)),)


def with_net(net):
    """Write the loop outside of the net."""
    ids = torch.tensor([[1, 2, 5, 7]])
    logits, state = net(ids)
    for _ in range(4):
        token = logits.argmax(-1, keepdim=True)
        ids = torch.cat([ids, token], 1)
        logits, state = net(token, state)
    return ids, logits


def calls():
    ids = torch.randint(0, 16, (2, 4))
    yield "fresh", (ids[:1],)
    yield "greedy", lambda net: net.generate(ids)
    yield "sampled", lambda net: net.generate(ids, temperature=1.0)
    yield "the loop outside", with_net
    yield "steps that were counted", lambda net: net.steps
    yield "refused: ids too large", lambda net: net.generate(ids + 16)
