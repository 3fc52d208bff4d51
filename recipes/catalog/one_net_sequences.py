"""one_net_sequences: nets of one paper each on sequences, sounds, time series and table rows."""

import importlib
from collections.abc import Callable
from typing import Any

from passnet.data.capture.catalog import row_of
from passnet.data.capture.net import Net, NetInput, floats, integers
from passnet.data.capture.record import Domain

ADDS = "one paper each: landmarks, agents, bands of sound, variates as tokens"

WIDTH, LENGTH, NORM = 128, 256, "use_reversible_instance_norm"
STACK = {"dim": WIDTH, "depth": 2, "heads": 4, "dim_head": 32}
SERIES = STACK | {"num_variates": 16, "lookback_len": 96, "pred_length": (12, 24)}
TABLE = STACK | {"categories": (10, 5, 6, 5, 8), "num_continuous": 10}
SOUND = {"dim": 64, "depth": 1, "heads": 4, "dim_head": 16, "flash_attn": False}
NETS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "Nystromformer": ("nystrom_attention", "vectors", STACK | {"num_landmarks": 64}, ""),
    "AgentTransformer": ("agent_attention_pytorch", "vectors", STACK | {"num_agent_tokens": 8}, ""),
    "Conformer": ("conformer", "frames", STACK, "conv_causal"),
    "BSRoformer": ("bs_roformer", "sound", SOUND, "zero_dc use_pope"),
    "MelBandRoformer": ("bs_roformer", "sound", SOUND, "zero_dc use_pope"),
    "iTransformer": ("iTransformer", "series", SERIES, NORM),
    "iTransformer2D": ("iTransformer", "series", SERIES | {"num_time_tokens": 8}, NORM),
    "iTransformerFFT": ("iTransformer", "series", SERIES, NORM),
    "FTTransformer": ("tab_transformer_pytorch", "rows", TABLE, ""),
}  # fmt: skip
"""Package, kind of input, settings, and switches that are turned on one at a time."""

PACKAGES = tuple(sorted({package for package, *_ in NETS.values()}))
KINDS: dict[str, tuple[Domain, str, Callable[[], tuple[NetInput, ...]]]] = {
    "vectors": ("nlp", "feature-extraction", lambda: (floats(1, LENGTH, WIDTH),)),
    "frames": ("audio", "feature-extraction", lambda: (floats(1, LENGTH, WIDTH),)),
    "sound": ("audio", "audio-to-audio", lambda: (floats(1, 44_100),)),
    "series": ("other", "time-series-forecasting", lambda: (floats(1, 96, 16),)),
    "rows": ("other", "tabular-regression", lambda: (integers(5, 4, 5), floats(4, 10))),
}
"""Domain, task and inputs of each kind."""


def names() -> list[str]:
    """Return each net as it is, and with each of its switches."""
    return [f"{net}+{switch}".rstrip("+") for net in NETS for switch in ("", *NETS[net][3].split())]


def build(name: str) -> Net:
    """Build a small net."""
    class_name, _, switch = name.partition("+")
    package, kind, settings, _ = row_of(NETS, class_name)
    domain, task, inputs = KINDS[kind]
    make = getattr(importlib.import_module(package), class_name)
    net = make(**settings | ({switch: True} if switch else {}))
    return Net(net.eval(), inputs(), domain=domain, task=task)
