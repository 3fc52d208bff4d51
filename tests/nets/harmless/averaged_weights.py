"""A net behind torch's own moving average of weights, as it is kept for deployment."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

KIND = "harmless"


def make():
    net = nn.Sequential(
        *(nn.Conv1d(6, 24, 5, padding=2), nn.BatchNorm1d(24), nn.ReLU(), nn.MaxPool1d(2)),
        *(nn.Conv1d(24, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU()),
        *(nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 6)),
    ).eval()
    averaged = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
    for _ in range(3):
        with torch.no_grad():
            for weight in net.parameters():
                weight.add_(0.05 * torch.randn_like(weight))
        averaged.update_parameters(net)
    return averaged.eval()


def example():
    return (torch.randn(4, 6, 128),)


def calls():
    yield "fresh", (torch.randn(4, 6, 128),)
    yield "small", (1e-3 * torch.randn(4, 6, 128),)
    yield "large", (100 * torch.randn(4, 6, 128),)
    yield "zeros", (torch.zeros(4, 6, 128),)
