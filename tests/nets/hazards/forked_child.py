"""A net that is called in a forked child process, as servers do, and then in its parent again."""

import os
import signal

import torch
from torch import nn

KIND = "process"

SECONDS = 60


def make():
    return nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 8)).eval()


def example():
    return (torch.randn(4, 16),)


def in_child(net):
    """Return what a forked child gets from the net, by a pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)  # ends a child that waits for ever
        try:
            os.write(writing, net(torch.ones(4, 16)).numpy().tobytes())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        contents = bytearray(pipe.read())
    os.waitpid(child, 0)
    return torch.frombuffer(contents, dtype=torch.float32) if contents else None


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "in a child", in_child
    yield "afterwards", (torch.randn(4, 16),)
    yield "in another child", in_child
