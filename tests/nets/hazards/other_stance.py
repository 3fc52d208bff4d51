"""A net beside a compiled one, under the stance that nothing may be compiled anew any more."""

import torch
from torch import nn

KIND = "process"

STATES = []

OTHERS = []


def make():
    torch.compiler.set_stance("default")
    if not OTHERS:
        OTHERS.append(torch.compile(nn.Linear(8, 4).eval(), backend="eager", dynamic=False))
    with torch.no_grad():
        OTHERS[0](torch.ones(2, 8))
    torch.compiler.set_stance("fail_on_recompile")
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)).eval()


def tried(rows):
    try:
        with torch.no_grad():
            return OTHERS[0](torch.ones(rows, 8)).shape[0]
    except RuntimeError as error:
        return type(error).__name__


def state(net):
    STATES.append((tried(2), tried(3)))
    if len(STATES) == 2:  # the net was optimised
        change(net)
    return STATES[-1]


def example():
    return (torch.randn(4, 16),)


def change(net):
    torch.compiler.set_stance("default")


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "zeros", (torch.zeros(4, 16),)
    yield "another batch", (torch.randn(5, 16),)
