"""zuko: normalising flows and other densities that are learned."""

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.net import Net, floats

ADDS = (
    "densities: masked autoregressive nets, couplings, splines by searching their knots, monotonic "
    "nets, triangular maps and log-determinants"
)
PACKAGES = ("zuko",)

BATCH, FEATURES, CONTEXT = 64, 8, 5

FlowFactory = Callable[[Any, int], Any]
"""From the module of flows and the width of what they depend on to a flow."""

FLOWS: dict[str, FlowFactory] = {
    "gmm": lambda z, c: z.GMM(FEATURES, c, components=6),
    "gmm-diagonal": lambda z, c: z.GMM(FEATURES, c, components=6, covariance_type="diagonal"),
    "gmm-spherical": lambda z, c: z.GMM(FEATURES, c, components=6, covariance_type="spherical"),
    "gmm-tied": lambda z, c: z.GMM(FEATURES, c, components=6, tied=True),
    "nice": lambda z, c: z.NICE(FEATURES, c),
    "maf": lambda z, c: z.MAF(FEATURES, c),
    "maf-coupling": lambda z, c: z.MAF(FEATURES, c, passes=2),
    "maf-residual": lambda z, c: z.MAF(FEATURES, c, residual=True),
    "realnvp": lambda z, c: z.RealNVP(FEATURES, c),
    "nsf": lambda z, c: z.NSF(FEATURES, c),
    "nsf-coupling": lambda z, c: z.NSF(FEATURES, c, passes=2, bins=16),
    "ncsf": lambda z, c: z.NCSF(FEATURES, c),
    "sospf": lambda z, c: z.SOSPF(FEATURES, c),
    "bpf": lambda z, c: z.BPF(FEATURES, c),
    "naf": lambda z, c: z.NAF(FEATURES, c),
    "unaf": lambda z, c: z.UNAF(FEATURES, c),
    "gf": lambda z, c: z.GF(FEATURES, c),
    "cnf": lambda z, c: z.CNF(FEATURES, c),
}

ON_CONTEXT = "-conditional"


class LogDensity(nn.Module):
    """The log density of a flow at some points, which may depend on a context."""

    def __init__(self, flow: nn.Module) -> None:
        super().__init__()
        self.flow = flow

    def forward(self, x: torch.Tensor, context: torch.Tensor | None = None) -> torch.Tensor:
        """Return the log density at every point."""
        return self.flow(context).log_prob(x)


names = listed(
    "zuko", [flow + end for flow in FLOWS for end in ("", ON_CONTEXT)], importlib.import_module
)
"""Each flow alone, and depending on a context."""


def build(name: str) -> Net:
    """Build a flow of eight dimensions with the library's sizes, for 64 log densities."""
    torch.distributions.Distribution.set_default_validate_args(False)
    flows = importlib.import_module("zuko.flows")
    plain = name.removesuffix(ON_CONTEXT)
    depends = plain != name
    flow = row_of(FLOWS, plain)(flows, CONTEXT if depends else 0)
    points = floats(BATCH, FEATURES, axes=("batch", str(FEATURES)), scale=0.5)
    context = (floats(BATCH, CONTEXT, axes=("batch", str(CONTEXT))),) if depends else ()
    return Net(LogDensity(flow).eval(), (points, *context), task="density-estimation")
