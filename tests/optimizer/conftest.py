"""What tests of the optimizer share."""

import pytest

from passnet.optimizer.call.call_check import input_signature
from tests.optimizer.checks import WAYS


@pytest.fixture(params=WAYS)
def check_of(request):
    """A function that makes the check of an entry, in C++ and in Python."""

    def make(net, entry):
        return WAYS[request.param](input_signature(net, entry))

    return make
