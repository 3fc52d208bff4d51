"""Says what it does: a line on stdout and one on stderr, a logger, a warning."""

import logging
import os
import platform
import sys
import warnings

import torch

from passnet.passes import cpp

log = logging.getLogger(__name__)
logging.basicConfig(level=logging.INFO, stream=sys.stderr)
print(f"{__name__}: compiling for {platform.machine()}, {os.cpu_count()} processors")
print("verbose:", os.environ.get("ADD_RELU_VERBOSE", "0"), file=sys.stderr)

if sys.byteorder != "little":
    warnings.warn("never tried on a big-endian machine", RuntimeWarning, stacklevel=2)
warnings.warn("add_relu is serial; use it for small tensors", UserWarning, stacklevel=2)

ADD_RELU = cpp.kernel(
    r"""
#include <cstdint>
extern "C" void add_relu(const float* x, const float* y, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] + y[i] < 0 ? 0.0f : x[i] + y[i];
}
""",
    "add_relu",
    "pppn",
)
log.info("compiled add_relu")
num_calls = 0


def pattern(x, y):
    return torch.relu(x + y)


def replacement_args(x, y):
    return x, y


def add_relu(x, y):
    global num_calls
    num_calls += 1
    if num_calls == 1:
        log.warning("first call, on %s", tuple(x.shape))
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    ADD_RELU(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
    return out


def replacement_func():
    return add_relu
