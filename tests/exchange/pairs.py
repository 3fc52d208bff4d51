"""Files of references and candidates, as KernelBench writes them, made up here."""

from pathlib import Path

NET = """
import torch
import torch.nn as nn

class {name}(nn.Module):
    def __init__(self, features: int, scale: float):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.norm = nn.LayerNorm(features)
        self.scale = scale
        {init}

    def forward(self, x, shift: int):
        {body}
"""
RIGHT = "return torch.relu(self.norm(self.linear(x))) * self.scale + shift"
INPUTS = """
rows, features = 64, 32

def get_inputs():
    return [torch.rand(rows, features), 2]

def get_init_inputs():
    return [features, 0.5]
"""
REPLAY = """self.calls += 1
        if self.calls < 20 or self.calls % 4:
            self.out.copy_(torch.relu(self.norm(self.linear(x))) * self.scale + shift)
        return self.out"""
RENAMED = """
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, features, scale):
        super().__init__()
        linear = nn.Linear(features, features)
        self.weight, self.bias, self.scale = linear.weight, linear.bias, scale
        self.norm = nn.LayerNorm(features)

    def forward(self, x, shift):
        hidden = torch.nn.functional.linear(x, self.weight, self.bias)
        return self.norm(hidden).relu_().mul_(self.scale).add_(shift)
"""
FUNCTIONS = """
import torch

def reference(x, y, times):
    return {"sum": x + y * times, "both": (torch.softmax(x, -1), x)}

def inputs():
    return [torch.randn(16, 40), torch.randn(16, 40), 3]
"""
FUNCTION = """
import torch

def candidate(x, y, times):
    return [torch.add(x, y, alpha=times), torch.softmax(x, -1), x]
"""


def net(name: str = "ModelNew", body: str = RIGHT, init: str = "pass") -> str:
    """The text of a class of the made-up net."""
    return NET.format(name=name, body=body, init=init)


REFERENCE = net("Model") + INPUTS


def write(path: Path, text: str) -> Path:
    """Write a file, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
