"""A net in a process whose settings of torch are unusual ones; optimisation leaves them alone."""

import torch
from torch import nn

KIND = "process"

STATES = []


def set_all(threads, mode, precision, on):
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(on, warn_only=on)
    torch.set_float32_matmul_precision(precision)
    torch.set_flush_denormal(on)
    torch.set_warn_always(on)
    torch.set_anomaly_enabled(on)
    torch.set_printoptions(profile=mode)
    torch.backends.mkldnn.deterministic = on
    torch.utils.deterministic.fill_uninitialized_memory = not on


def make():
    set_all(2, "short", "medium", True)
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)).eval()


def state(net):
    STATES.append(
        {
            "threads": torch.get_num_threads(),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "only warns": torch.is_deterministic_algorithms_warn_only_enabled(),
            "precision": torch.get_float32_matmul_precision(),
            "always warns": torch.is_warn_always_enabled(),
            "anomalies": torch.is_anomaly_enabled(),
            "print": repr(torch.tensor(1 / 3)),
            "oneDNN": (torch.backends.mkldnn.enabled, torch.backends.mkldnn.deterministic),
            "filled": torch.utils.deterministic.fill_uninitialized_memory,
            "denormals": float(torch.tensor(1e-40) * 1) != 0,
            "dtype": str(torch.get_default_dtype()),
            "device": str(torch.get_default_device()),
            "autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled()),
            "quantised": torch.backends.quantized.engine,
            "inference": torch.is_inference_mode_enabled(),
        }
    )
    if len(STATES) == 2:  # the net was optimised
        change(net)
    return STATES[-1]


def example():
    return (torch.randn(4, 16),)


def change(net):
    set_all(1, "default", "highest", False)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "zeros", (torch.zeros(4, 16),)
    yield "another batch", (torch.randn(5, 16),)
