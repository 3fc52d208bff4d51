"""A student that adds its teacher's logits; the teacher is hidden in a tuple and updated later."""

import torch
from torch import nn

KIND = "state"


def classifier():
    return nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))


class Student(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.teacher = classifier(), (classifier().eval(),)

    def forward(self, x):
        return self.body(x) + self.teacher[0](x)


def make():
    return Student().eval()


def example():
    return (torch.randn(3, 12),)


def averaged(net):
    for own, other in zip(net.teacher[0].parameters(), net.body.parameters(), strict=True):
        own.lerp_(other, 0.5)
    return net(torch.ones(3, 12))


def in_training(net):
    net.teacher[0].append(nn.Dropout(1.0)).train()
    return net(torch.ones(3, 12))


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "the teacher averaged", averaged
    yield "the teacher in training, all dropped", in_training
