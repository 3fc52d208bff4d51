"""A forecaster that fills gaps with the mean if there is a NaN: gaps come in later calls alone."""

import torch
from torch import nn

KIND = "control flow"


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.out = nn.Linear(64, 6)

    def forward(self, series):
        if torch.isnan(series).any():
            mean = series.nanmean(-1, keepdim=True).nan_to_num()
            series = torch.where(series.isnan(), mean, series)
        level = series.mean(-1, keepdim=True)
        return self.out(self.body(series - level)) + level


def make():
    return Forecaster().eval()


def example():
    return (torch.randn(4, 30),)


def calls():
    series = torch.randn(4, 30)
    yield "no gap", (series.clone(),)
    series[2, 5] = torch.nan
    yield "one gap", (series.clone(),)
    series[0] = torch.nan
    yield "a row of gaps", (series.clone(),)
    yield "an infinity", (torch.randn(4, 30).index_fill(1, torch.tensor([0]), torch.inf),)
