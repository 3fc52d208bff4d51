"""neuraloperator: nets that learn the solutions of differential equations, in frequency."""

import importlib
from collections.abc import Callable
from typing import Any

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.mismatched_wheels import import_torchvision
from passnet.data.capture.net import Net, floats

ADDS = (
    "operators between functions: transforms to frequency and back, products of complex weights, "
    "factorised weights, skips by soft gates"
)
PACKAGES = ("neuraloperator",)

BATCH, SIDE, CHANNELS = 2, 64, 3
OperatorFactory = Callable[[Any], Any]

FLAT: dict[str, OperatorFactory] = {
    "fno": lambda m: m.FNO((16, 16), CHANNELS, 1, 32),
    "fno-norm": lambda m: m.FNO((16, 16), CHANNELS, 1, 32, norm="group_norm"),
    "fno-instance-norm": lambda m: m.FNO((16, 16), CHANNELS, 1, 32, norm="instance_norm"),
    "fno-no-mlp": lambda m: m.FNO((16, 16), CHANNELS, 1, 32, use_channel_mlp=False),
    "fno-linear-skip": lambda m: m.FNO((16, 16), CHANNELS, 1, 32, fno_skip="identity"),
    "fno-separable": lambda m: m.FNO((16, 16), CHANNELS, 1, 32, separable=True),
    "fno-preactivated": lambda m: m.FNO((16, 16), CHANNELS, 1, 32, preactivation=True),
    "fno-padded": lambda m: m.FNO((16, 16), CHANNELS, 1, 32, domain_padding=0.1),
    "tfno-tucker": lambda m: m.TFNO((16, 16), CHANNELS, 1, 32, factorization="Tucker", rank=0.1),
    "tfno-cp": lambda m: m.TFNO((16, 16), CHANNELS, 1, 32, factorization="CP", rank=0.1),
    "tfno-tt": lambda m: m.TFNO((16, 16), CHANNELS, 1, 32, factorization="TT", rank=0.1),
    "tfno-factorized": lambda m: m.TFNO(
        (16, 16), CHANNELS, 1, 32, factorization="Tucker", rank=0.1, implementation="factorized"),
    "uno": lambda m: m.UNO(
        CHANNELS, 1, 32, uno_out_channels=[32, 32, 32, 32],
        uno_n_modes=[[16, 16], [8, 8], [8, 8], [16, 16]],
        uno_scalings=[[1.0, 1.0], [0.5, 0.5], [1, 1], [2, 2]], n_layers=4),
}  # fmt: skip
LINE: dict[str, OperatorFactory] = {
    "fno-1d": lambda m: m.FNO((16,), CHANNELS, 1, 32),
    "tfno-1d": lambda m: m.TFNO((16,), CHANNELS, 1, 32, factorization="Tucker", rank=0.2),
}
SPACE: dict[str, OperatorFactory] = {
    "fno-3d": lambda m: m.FNO((8, 8, 8), CHANNELS, 1, 16),
    "tfno-3d": lambda m: m.TFNO((8, 8, 8), CHANNELS, 1, 16, factorization="Tucker", rank=0.1),
}
OPERATORS = {name: (make, 2) for name, make in FLAT.items()}
OPERATORS |= {name: (make, 1) for name, make in LINE.items()}
OPERATORS |= {name: (make, 3) for name, make in SPACE.items()}
"""Operator -> how to make it, and the dimensions of what its functions are over."""


def _load(package: str) -> Any:
    import_torchvision()
    return importlib.import_module(package)


names = listed("neuralop.models", OPERATORS, _load)


def build(name: str) -> Net:
    """Build an operator of moderate width, on functions of a line, a square or a cube."""
    make, num_axes = row_of(OPERATORS, name)
    side = SIDE if num_axes < 3 else SIDE // 4
    space = ("height", "width", "depth")[:num_axes]
    axes = ("batch", str(CHANNELS), *space)
    x = floats(BATCH, CHANNELS, *[side] * num_axes, axes=axes)
    return Net(make(_load("neuralop.models")).eval(), (x,), task="operator-learning")
