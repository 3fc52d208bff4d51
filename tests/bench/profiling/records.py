"""Records of profiles, as a run would leave them."""

from dataclasses import replace

from passnet.bench.profiling.record import CallParts, EagerParts, ProfileRecord

PARTS = CallParts(0.02, 0.003, 0.004, 0.0, 0.01, 0.0)
LOST = ProfileRecord(
    "lost", "subgraph", "ok", "timm", "cv", "float32", ("torch.add", "torch.relu"), 2, 0.5,
    eager_ms=0.02, compiled_ms=0.037, direct_ms=0.02, speedup=0.02 / 0.037, speedup_low=0.5,
    speedup_high=0.6, parts=PARTS, residue_ms=0.0, eager=EagerParts(0.004, 0.016, 1.0),
    self_ratio=1.0, num_graphs=1, num_generated=1, num_rounds=12, attempts=1,
)  # fmt: skip
"""Slower by dispatch: its kernels take less than those of eager torch."""

SLOW_KERNELS = replace(
    LOST, name="slow", library="kornia", dtype="bfloat16", num_ops=20,
    ops=("torch.softmax",) * 20, parts=replace(PARTS, generated=0.03), compiled_ms=0.057,
    direct_ms=0.04,
    speedup=0.02 / 0.057, speedup_low=0.3, speedup_high=0.4, weight=3.0,
)  # fmt: skip
"""Slower, and so are its kernels."""

WON = replace(
    LOST, name="won", eager_ms=0.1, speedup=0.1 / 0.037, speedup_low=2.6, speedup_high=2.8,
    eager=EagerParts(0.004, 0.096, 1.0),
)  # fmt: skip
UNSTABLE = replace(LOST, name="unstable", status="unstable", cause="the interval is wide")
