"""A gaussian process that adds jitter where Cholesky fails: singular inputs take the other way."""

import torch
from torch import nn

KIND = "control flow"


class Process(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.log_noise = nn.Parameter(torch.tensor(-1.0))

    def forward(self, x, y):
        hidden = self.features(x)
        covariance = hidden @ hidden.mT + self.log_noise.exp() * torch.diag_embed(y.abs())
        try:
            factor = torch.linalg.cholesky(covariance)
        except torch.linalg.LinAlgError:
            covariance = covariance + torch.eye(x.shape[0], dtype=x.dtype)
            factor = torch.linalg.cholesky(covariance)
        return torch.cholesky_solve(y[:, None], factor)[:, 0]


def make():
    return Process().eval()


def example():
    return torch.randn(8, 4), 1 + torch.rand(8)


def calls():
    yield "as the example", (torch.randn(8, 4), 1 + torch.rand(8))
    yield "zeros", (torch.zeros(8, 4), torch.zeros(8))
    yield "a part of zeros", (torch.randn(8, 4), torch.zeros(8).index_fill(0, torch.tensor([1]), 2))
    yield "refused: NaN", (torch.full((8, 4), torch.nan), torch.rand(8))
