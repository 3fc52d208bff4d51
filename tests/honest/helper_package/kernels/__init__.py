"""The kernels of this folder's pass."""

from .linear import linear_relu

__all__ = ["linear_relu"]
