"""A plan: which steps make a layer norm, in order."""

import torch


class Plan:
    """Steps that are applied one after the other."""

    def __init__(self, *steps):
        self.steps = steps

    def exec_plan(self, value, *more):
        for step in self.steps:
            value = step(value, *more)
        return value


def centre(x, *_):
    return x - x.mean(-1, keepdim=True)


def normalise(x, weight, bias, eps):
    scale = torch.rsqrt(torch.linalg.vecdot(x, x).div_(x.shape[-1]).add_(eps))
    return torch.addcmul(bias, x * scale.unsqueeze(-1), weight)
