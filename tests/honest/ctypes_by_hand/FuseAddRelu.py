"""The shared object is loaded with ctypes, and called with pointers to float."""

import ctypes

import torch

from passnet.passes import cpp

SOURCE = r"""
extern "C" int add_relu(const float* x, const float* y, float* out, long n) {
  for (long i = 0; i < n; i++) out[i] = x[i] + y[i] < 0 ? 0.0f : x[i] + y[i];
  return 0;
}
"""
FLOATS = ctypes.POINTER(ctypes.c_float)
LIBRARY = ctypes.CDLL(str(cpp.build(SOURCE)))
LIBRARY.add_relu.argtypes = [FLOATS, FLOATS, FLOATS, ctypes.c_long]
LIBRARY.add_relu.restype = ctypes.c_int


def pattern(x, y):
    return torch.relu(x + y)


def replacement_args(x, y):
    return x, y


def floats(tensor):
    return ctypes.cast(tensor.data_ptr(), FLOATS)


def add_relu(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if LIBRARY.add_relu(floats(x), floats(y), floats(out), x.numel()) != 0:
        raise RuntimeError("the kernel failed")
    return out


def replacement_func():
    return add_relu
