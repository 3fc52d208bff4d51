"""A plain object that is called and holds its weights in a dict; these are replaced later."""

import torch

KIND = "process"


class Predictor:
    def __init__(self) -> None:
        self.weights = {"w": torch.randn(16, 8), "b": torch.randn(8)}

    def __call__(self, x):
        return torch.relu(x @ self.weights["w"] + self.weights["b"])


def make():
    return Predictor()


def change(net):
    net.weights["b"] = torch.ones(8)
    net.weights["w"].mul_(2)


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another batch", (torch.randn(3, 16),)
    yield "zeros", (torch.zeros(4, 16),)
