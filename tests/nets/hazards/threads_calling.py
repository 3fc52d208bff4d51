"""A net that several threads call at once, with inputs of their own, while others look on."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

KIND = "interface"


def make():
    return nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 8)).eval()


def example():
    return (torch.randn(4, 16),)


def pooled(net, grads=False):
    start = threading.Barrier(4)

    def called(number):
        start.wait()
        with torch.set_grad_enabled(grads):
            outputs = [net(torch.full((4, 16), number + step / 8)) for step in range(50)]
        return torch.stack(outputs).detach()

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(called, range(4)))


def modes(net):
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: net(torch.ones(4, 16)).requires_grad).result()
    return first, net(torch.ones(4, 16)).requires_grad


def written(net):
    """Call the net in threads after its weights were changed in another one."""

    def scaled():
        with torch.no_grad():
            for weight in net.parameters():
                weight.mul_(0.5)

    thread = threading.Thread(target=scaled)
    thread.start()
    thread.join()
    return pooled(net)


def calls():
    yield "four at once", pooled
    yield "with gradients on", lambda net: pooled(net, True)
    yield "gradients are on in a new thread", modes
    yield "weights that a thread has changed", written
