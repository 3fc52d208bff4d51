"""Small nets to capture."""

from __future__ import annotations

import torch


class Mixed(torch.nn.Module):
    """BatchNorm, views, in-place operators and methods, index assignments, several outputs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(4)
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.norm(self.conv(x))
        y += 1
        z = torch.relu(y)
        z[:, 0] = 0.5
        z.mul_(2)
        flat = z.flatten(2).transpose(1, 2)
        low, high = self.linear(flat).chunk(2, dim=-1)
        low = low.contiguous()
        low += high
        pooled = z.mean(dim=(2, 3)) + self.shift
        return torch.softmax(low, dim=-1), high.tanh(), pooled.view(-1, 2)


def mixed() -> tuple[Mixed, torch.Tensor]:
    """The net in evaluation mode, and an input for it."""
    return Mixed().eval(), torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(1))
