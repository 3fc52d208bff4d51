"""A reference as KernelBench writes them: a layer, and GELU by its formula."""

import math

import torch
from torch import nn


class Model(nn.Module):
    """A linear layer with GELU, in the approximation by tanh."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return GELU of the layer's outputs."""
        x = self.linear(x)
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


batch_size = 512
features = 128


def get_inputs() -> list[torch.Tensor]:
    """Return one draw of the inputs."""
    return [torch.rand(batch_size, features)]


def get_init_inputs() -> list[int]:
    """Return the arguments of the module."""
    return [features]
