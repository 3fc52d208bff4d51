"""pypots: nets for time series with gaps, which fill them in, classify and forecast."""

import contextlib
import importlib
import inspect
import io
from typing import Any

import torch
from torch import nn

from passnet.data.capture.catalog import listed
from passnet.data.capture.mismatched_wheels import import_with_torchaudio
from passnet.data.capture.net import Net, NetInput, floats

ADDS = (
    "time series with gaps: decay by the time since a value was seen, states kept in both "
    "directions, attention that may not look at its own step, filters in frequency"
)
PACKAGES = ("pypots",)

BATCH, STEPS, FEATURES, CLASSES, HORIZON = 8, 48, 12, 5, 24

SETTINGS: dict[str, Any] = {
    "n_steps": STEPS, "n_features": FEATURES, "n_classes": CLASSES, "n_pred_steps": HORIZON,
    "n_pred_features": FEATURES, "n_layers": 2, "n_encoder_layers": 2, "n_decoder_layers": 1,
    "d_model": 64, "n_heads": 4, "d_k": 16, "d_v": 16, "d_ffn": 128, "factor": 3,
    "moving_avg_window_size": 13, "rnn_hidden_size": 64, "imputation_weight": 1.0,
    "consistency_weight": 0.1, "classification_weight": 1.0, "removal_percent": 10,
    "increase_factor": 0.5, "step_channels": 32, "dropout": 0.1, "attn_dropout": 0.1,
    "patch_size": 12, "patch_stride": 6, "n_fod": 2, "top_k": 3, "n_kernels": 4, "d_hidden": 64,
    "n_channels": 32, "d_time_embedding": 64, "d_feature_embedding": 16,
    "d_diffusion_embedding": 64, "seg_len": 12, "win_size": 2, "cut_freq": 12,
    "latent_size": 16, "d_input_embed": 24, "d_learnable_embed": 40, "d_proj": 16,
    "n_temporal_heads": 4, "n_seg_steps": 12, "d_dynamic": 32, "n_hidden_layers": 2, "n_blocks": 2,
    "conv_kernel": [4, 8], "downsampling_ratio": 2, "ffn_ratio": 1, "num_blocks": [1, 1],
    "large_size": [9, 9], "small_size": [5, 5], "dims": [32, 32], "d_projector_hidden": [32, 32],
    "n_projector_hidden_layers": 2, "inner_size": 3, "bucket_size": 4, "n_hashes": 2,
    "causal": False, "n_stacks": 1, "n_levels": 3, "n_groups": 1, "kernel_size": 3,
    "d_feature_encode": 8, "d_temporal_decoder_hidden": 32, "d_block_hidden": 32,
    "n_residual_layers": 2, "d_residual_hidden": 16, "d_embedding": 32, "n_embeddings": 64,
    "term": "long", "n_output_dims": 64, "multiscale": [1, 2],
}  # fmt: skip
"""Settings that nets require, under the names of the library."""

OWN: dict[str, dict[str, Any]] = {
    "DLinear": {"d_model": 64},
    "FiLM": {"window_size": [24]},
    "Pyraformer": {"window_size": [2, 2]},
    "RevIN_SCINet": {"n_decoder_layers": 1},
    "StemGNN": {"n_stacks": 2},
}
"""Settings of single nets."""

NETS: dict[str, tuple[str, ...]] = {
    "imputation": (
        "Autoformer", "BRITS", "Crossformer", "CSAI", "CSDI", "DLinear", "ETSformer", "FEDformer",
        "FiLM", "FreTS", "GPVAE", "GRUD", "ImputeFormer", "Informer", "iTransformer",
        "Koopa", "MICN", "ModernTCN", "MRNN", "NonstationaryTransformer", "PatchTST", "Pyraformer",
        "Reformer", "RevIN_SCINet", "SAITS", "SCINet", "SegRNN", "StemGNN", "TCN", "TEFN", "TiDE",
        "TimeMixer", "TimeMixerPP", "TimesNet", "TKAN", "TOTEM", "Transformer", "TSLANet", "USGAN",
    ),
    "classification": (
        "Autoformer", "BRITS", "CSAI", "GRUD", "iTransformer", "PatchTST", "Raindrop", "SAITS",
        "SeFT", "TEFN", "TimesNet",
    ),
    "forecasting": (
        "DLinear", "FiLM", "FITS", "MICN", "MixLinear", "ModernTCN", "SegRNN", "TEFN", "TimeMixer",
        "TimeMixerPP", "TimesNet", "Transformer",
    ),
}  # fmt: skip

TASKS = {
    "imputation": "time-series-imputation",
    "classification": "time-series-classification",
    "forecasting": "time-series-forecasting",
}


class GappedSeries(nn.Module):
    """A net that is called with tensors instead of a dictionary of them."""

    def __init__(self, net: nn.Module, keys: tuple[str, ...]) -> None:
        super().__init__()
        self.net = net
        self.keys = keys

    def forward(self, *values: torch.Tensor) -> Any:
        """Return the net's output for every series."""
        return self.net(dict(zip(self.keys, values, strict=True)))


def _load(module: str) -> Any:
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")):
        loaded = import_with_torchaudio(module)
    loaded_logger = importlib.import_module("pypots.utils.logging").logger
    loaded_logger.setLevel("ERROR")
    return loaded


names = listed(
    "pypots.imputation", [f"{task}-{net}" for task, nets in NETS.items() for net in nets], _load
)
"""Nets of each task, the task first."""


def build(name: str) -> Net:
    """Build a net of moderate size, on series of 48 steps with a fifth missing."""
    task, _, plain = name.partition("-")
    net_class = getattr(_load(f"pypots.{task}"), plain)
    params = inspect.signature(net_class.__init__).parameters
    own = OWN.get(plain, {})
    settings = SETTINGS | own
    settings = {
        key: settings[key]
        for key, param in params.items()
        if key in own or (key in settings and param.default is param.empty)
    }
    wrapper = net_class(**settings, device="cpu", verbose=False)
    keys, values = zip(*_inputs(plain).items(), strict=True)
    return Net(GappedSeries(wrapper.model, keys).eval(), values, domain="other", task=TASKS[task])


_WITH_GAPS = ("BRITS", "CSAI", "MRNN", "USGAN", "GRUD")
"""Nets that take the time since a value was last observed."""


def _inputs(plain: str) -> dict[str, NetInput]:
    axes = ("batch", "time", str(FEATURES))
    series = floats(BATCH, STEPS, FEATURES, axes=axes)
    observed = NetInput((floats(BATCH, STEPS, FEATURES).value > -0.8).float(), axes)
    gaps = NetInput(torch.ones_like(observed.value), axes)
    if plain == "GRUD":
        mean = floats(FEATURES, axes=(str(FEATURES),))
        return {"X": series, "missing_mask": observed, "deltas": gaps, "empirical_mean": mean,
                "X_filledLOCF": series}  # fmt: skip
    if plain == "Raindrop":
        times = NetInput(torch.arange(STEPS).float().repeat(BATCH, 1), ("batch", "time"))
        lengths = NetInput(torch.full((BATCH,), STEPS), ("batch",))
        return {"X": series, "timestamps": times, "lengths": lengths, "missing_mask": observed}
    inputs = {"X": series, "missing_mask": observed}
    if plain in _WITH_GAPS:
        inputs |= {"deltas": gaps}
    return inputs
