"""A net that callers pickle, save as a whole, and send to other processes, as a module can be."""

import io
import pickle

import torch
from torch import nn

KIND = "interface"


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def saved(net):
    file = io.BytesIO()
    torch.save(net, file)
    file.seek(0)
    return torch.load(file, weights_only=False)(torch.ones(4, 8))


def calls():
    x = torch.randn(4, 8)
    yield "pickled", lambda net: pickle.loads(pickle.dumps(net))(x)
    yield "saved as a whole", saved
    yield "a part", lambda net: pickle.loads(pickle.dumps(net.get_submodule("0")))(x)
    yield "its state", lambda net: pickle.loads(pickle.dumps(net.state_dict()))
