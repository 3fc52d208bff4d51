"""Random nets with packed weights are as without; their graphs run op by op, as Inductor takes
seconds for each."""

from typing import Any

import pytest
import torch

from passnet.passes.apply.packed_op import FROZEN, freeze_weights, load_op
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


class Shuffled(torch.nn.Module):
    """Convolutions of shuffled channels, as of ShuffleNet; it may write into, or return, these."""

    def __init__(self, copies: bool, writes: bool, returns: bool) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(8, 12, 1), torch.nn.Conv2d(6, 9, 3)
        self.copies, self.writes, self.returns = copies, writes, returns

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.first(x)
        batch, channels, height, width = y.shape
        groups = y.view(batch, 3, channels // 3, height, width)
        shuffled = groups.transpose(1, 2)
        if self.copies:
            shuffled = shuffled.contiguous().view(batch, -1, height, width)
        else:
            shuffled = shuffled.reshape(batch, -1, height, width)
        if self.writes:
            shuffled.add_(1.0)
        z = self.second(shuffled.chunk(2, 1)[1])
        return (z, shuffled, y) if self.returns else (z,)


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize(("writes", "returns"), [(False, False), (False, True), (True, True)])
@torch.no_grad()
def test_shuffled_channels_stay_last(copies: bool, writes: bool, returns: bool) -> None:
    load_op()
    graphs: list[torch.fx.Graph] = []

    def packed(module: torch.fx.GraphModule, _: Any) -> Any:
        assert pack_products(module) == 2
        graphs.append(module.graph)
        return module.forward

    net, x = Shuffled(copies, writes, returns).eval(), torch.randn(2, 8, 6, 6)
    torch._dynamo.reset()
    compare(net, torch.compile(net, backend=packed, dynamic=False), x)
    methods = [node.target for node in graphs[0].nodes if node.op == "call_method"]
    assert methods.count("contiguous") == 1 + 2 * returns, "of outputs alone"
    assert methods.count("reshape") == 1
    [shuffled] = [node for node in graphs[0].nodes if node.target == "reshape"]
    assert shuffled.args[1:] == (2, 6, 6, 12), "channels are last in memory"


def written_between(conv: torch.nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = conv(x)
    batch, channels, height, width = y.shape
    groups = y.view(batch, 3, channels // 3, height, width).transpose(1, 2).contiguous()
    y.mul_(2.0)
    return y, groups.view(batch, -1, height, width)


def written_after(conv: torch.nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = conv(x)
    batch, channels, height, width = y.shape
    last = y.permute(0, 2, 3, 1).unsqueeze(-1).contiguous()
    merged = last.view(batch, height * width, channels, 1)
    merged.add_(1.0)
    return y, merged


@pytest.mark.parametrize("function", [written_between, written_after])
@torch.no_grad()
def test_a_copy_of_channels_is_made_where_it_was(function: Any) -> None:
    load_op()

    def packed(module: torch.fx.GraphModule, _: Any) -> Any:
        pack_products(module)
        return module.forward

    conv, x = torch.nn.Conv2d(8, 12, 1), torch.randn(2, 8, 6, 6)
    torch._dynamo.reset()
    fast = torch.compile(lambda x: function(conv, x), backend=packed, dynamic=False)
    compare(lambda x: function(conv, x), fast, x)


class ConvolvedAndRecurrent(torch.nn.Module):
    """A net whose layers become packed ops of both kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.lstm = torch.nn.Conv1d(8, 6, 3), torch.nn.LSTM(6, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(self.conv(x).mT)[0]


@torch.no_grad()
def test_frozen_weights_are_frozen_in_all_ops() -> None:
    load_op()
    forms: list[str] = []

    def packed(module: torch.fx.GraphModule, _: Any) -> Any:
        num_packed = pack_products(module)
        freeze_weights(module.graph)
        module.recompile()
        ops = [node for node in module.graph.nodes if "passnet_packed" in str(node.target)]
        forms.extend(node.args[-1] for node in ops)
        assert num_packed == len(forms) == 2
        return module.forward

    net, x = ConvolvedAndRecurrent().eval(), torch.randn(2, 8, 9)
    torch._dynamo.reset()
    compare(net, torch.compile(net, backend=packed, dynamic=False), x)
    assert all(form.endswith(f" {FROZEN}") for form in forms)
