"""Random nets with packed weights are as without; their graphs run op by op, as Inductor takes
seconds for each."""

from typing import Any

import pytest
import torch

from passnet.passes.apply.packed_op import load_op
from passnet.passes.apply.packed_products import pack_products
from tests.passes.packed_nets import RandomNet
from tests.passes.test_packed_products import compare

pytestmark = pytest.mark.xdist_group("inductor")  # one process loads it


@pytest.mark.slow
@torch.no_grad()
def test_random_nets() -> None:
    load_op()
    num_packed = 0

    def packed(module: torch.fx.GraphModule, _: Any) -> Any:
        nonlocal num_packed
        num_packed += pack_products(module)
        return module.forward

    for seed in range(150):
        torch.manual_seed(seed)
        net, x = RandomNet(seed).eval(), torch.randn(2, 8, 6, 6)
        if seed % 3 == 0:
            x = x.contiguous(memory_format=torch.channels_last)
        try:
            net(x)
        except RuntimeError:  # a write into a value that repeats in memory
            continue
        torch._dynamo.reset()
        compare(net, torch.compile(net, backend=packed, dynamic=False), x)
    assert num_packed > 150
