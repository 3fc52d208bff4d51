"""Checks of calls as tests make and ask them."""

import torch

from passnet.optimizer.call import compiled_check
from passnet.optimizer.call.call_check import python_check

WAYS = {"c++": compiled_check.compiled_check, "python": python_check}
"""The two ways to check a call."""

X = torch.randn(3, 4)


class Anything(torch.nn.Module):
    """A net without weights that takes all."""

    def forward(self, *args, **kwargs):
        return torch.ones(1)


def fits(check, *args, **kwargs):
    """Whether a call fits; its tensors are then handed on in order."""
    found = check(args, kwargs)
    return isinstance(found, list)
