"""An LSTM cell whose state is replaced in a plain attribute at each call, first zeros."""

import torch
from torch import nn

KIND = "state"


class Agent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
        self.cell, self.policy = nn.LSTMCell(16, 16), nn.Linear(16, 3)
        self.memory = (torch.zeros(1, 16), torch.zeros(1, 16))

    def forward(self, observation):
        self.memory = self.cell(self.stem(observation), self.memory)
        return self.policy(self.memory[0])


def make():
    return Agent().eval()


def example():
    return (torch.randn(1, 6),)


def state(net):
    return [float(part.abs().sum()) for part in net.memory]


def episode(net):
    return [net(torch.linspace(-1, step, 6)[None]) for step in range(4)], net.memory


def calls():
    yield "an episode", episode
    yield "it goes on", episode
    yield "and on", episode
