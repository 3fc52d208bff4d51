"""The best path through a trellis, traced back by argmax: ties go to the first state."""

import torch
from torch import nn

KIND = "indices"


class Viterbi(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("moves", torch.randint(-3, 1, (5, 5)).float())

    def forward(self, scores):
        state, back = scores[:, 0], []
        for step in range(1, 8):
            best = (state.unsqueeze(-1) + self.moves).max(1)
            back.append(best.indices)
            state = best.values + scores[:, step]
        last = state.argmax(-1, keepdim=True)
        path = [last]
        for places in reversed(back):
            last = places.gather(1, last)
            path.insert(0, last)
        return torch.cat(path, 1), state


def make():
    return Viterbi().eval()


def example():
    return (torch.rand(3, 8, 5) * 8,)


def calls():
    yield "zeros", (torch.zeros(3, 8, 5),)
    yield "whole scores", (torch.randint(-2, 3, (3, 8, 5)).float(),)
    yield "impossible states", (torch.randint(0, 2, (3, 8, 5)).float().log(),)
    yield "impossible paths", (torch.full((3, 8, 5), -float("inf")),)
