"""What tests of the optimizer share."""

from collections.abc import Iterator

import pytest
import torch

from passnet.optimizer.call.call_check import input_signature
from tests.optimizer.checks import WAYS


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    """Turn gradients off, as calls fit no backend where they are on."""
    with torch.no_grad():
        yield


@pytest.fixture(params=WAYS)
def check_of(request):
    """A function that makes the check of an entry, in C++ and in Python."""

    def make(net, entry):
        return WAYS[request.param](input_signature(net, entry))

    return make
