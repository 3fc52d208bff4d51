"""What the pass of this folder calls."""

from .linear import linear_relu

__all__ = ["linear_relu"]
