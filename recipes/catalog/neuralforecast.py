"""neuralforecast: nets that forecast time series, with and without exogenous variables."""

import contextlib
import importlib
import logging
from typing import Any

import torch
from torch import nn

from passnet.data.capture.catalog import listed
from passnet.data.capture.mismatched_wheels import import_torchvision
from passnet.data.capture.net import Net, NetInput, floats, ones

ADDS = (
    "forecasters: decomposition into trend and season, basis expansion, attention by frequency, "
    "mixing over time and series, recurrent nets"
)
PACKAGES = ("neuralforecast",)

BATCH, HISTORY, HORIZON, SERIES = 8, 96, 24, 7
FUTURE, PAST, STATIC = 3, 2, 4
"""Numbers of exogenous variables: known ahead, known in the past, and of a series as a whole."""

EXOGENOUS = "-exogenous"

UNIVARIATE = (
    "RNN", "GRU", "LSTM", "TCN", "DeepAR", "DilatedRNN", "MLP", "NHITS", "NBEATS", "NBEATSx",
    "DLinear", "NLinear", "TFT", "VanillaTransformer", "Informer", "Autoformer", "PatchTST",
    "FEDformer", "TimesNet", "BiTCN", "TiDE", "DeepNPTS",
)  # fmt: skip

MULTIVARIATE = (
    "StemGNN", "TSMixer", "TSMixerx", "MLPMultivariate", "iTransformer", "SOFTS", "SOFTSSharp",
    "TimeMixer", "RMoK", "TimeXer", "XLinear",
)  # fmt: skip

WITH_EXOGENOUS = (
    "RNN", "GRU", "LSTM", "TCN", "DilatedRNN", "MLP", "NHITS", "NBEATSx", "TFT", "BiTCN", "TiDE",
    "DeepNPTS", "TSMixerx", "MLPMultivariate",
)  # fmt: skip
"""Nets that take all three kinds of exogenous variables."""


class WindowBatch(nn.Module):
    """A forecaster that is called with tensors instead of a dictionary of them."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(
        self,
        insample_y: torch.Tensor,
        insample_mask: torch.Tensor,
        futr_exog: torch.Tensor | None = None,
        hist_exog: torch.Tensor | None = None,
        stat_exog: torch.Tensor | None = None,
    ) -> Any:
        """Return the forecast of every window."""
        return self.net({"insample_y": insample_y, "insample_mask": insample_mask, "futr_exog":
                         futr_exog, "hist_exog": hist_exog, "stat_exog": stat_exog})  # fmt: skip


def _load(module: str) -> Any:
    logging.getLogger("lightning_fabric.utilities.seed").setLevel(logging.WARNING)
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    with contextlib.suppress(ImportError):
        import_torchvision()  # what the library needs imports it where it is installed
    return importlib.import_module(module)


names = listed(
    "neuralforecast.models",
    [*UNIVARIATE, *MULTIVARIATE, *(name + EXOGENOUS for name in WITH_EXOGENOUS)],
    _load,
)
"""Nets of one series, of several, and those with exogenous variables."""


def build(name: str) -> Net:
    """Build a net with the library's sizes, on windows of 96 steps with 24 to forecast."""
    plain = name.removesuffix(EXOGENOUS)
    several = plain in MULTIVARIATE
    config: dict[str, Any] = {"h": HORIZON, "input_size": HISTORY}
    if several:
        config["n_series"] = SERIES
    if name != plain:
        config |= {
            "futr_exog_list": [f"future_{i}" for i in range(FUTURE)],
            "hist_exog_list": [f"past_{i}" for i in range(PAST)],
            "stat_exog_list": [f"static_{i}" for i in range(STATIC)],
        }
    net = WindowBatch(getattr(_load("neuralforecast.models"), plain)(**config)).eval()
    args = _inputs(several, is_exogenous=name != plain)
    return Net(net, args, domain="other", task="time-series-forecasting")


def _inputs(several: bool, is_exogenous: bool) -> tuple[NetInput, ...]:
    """Return the past of one series or several, its mask, and the exogenous variables."""
    series = SERIES if several else 1
    past = floats(BATCH, HISTORY, series, axes=("batch", "time", str(series)))
    history = (past, NetInput(ones(BATCH, HISTORY, series).value.float(), past.axes))
    if not is_exogenous:
        return history
    if several:
        axes = ("batch", "variable", "time", "series")
        future = floats(BATCH, FUTURE, HISTORY + HORIZON, SERIES, axes=axes)
        static = floats(SERIES, STATIC, axes=("series", "variable"))
        return (*history, future, floats(BATCH, PAST, HISTORY, SERIES, axes=axes), static)
    axes = ("batch", "time", "variable")
    future = floats(BATCH, HISTORY + HORIZON, FUTURE, axes=axes)
    static = floats(BATCH, STATIC, axes=("batch", "variable"))
    return (*history, future, floats(BATCH, HISTORY, PAST, axes=axes), static)
