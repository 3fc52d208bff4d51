import copy

import torch

import passnet
from passnet.data.capture.capture import module_graph
from passnet.optimizer.backends.graphs import net_graph
from passnet.optimizer.blocks import block_times, op_blocks
from passnet.optimizer.call.net_call import NetCall
from tests.optimizer.nets import block


def test_the_blocks_of_a_net_are_timed_in_the_order_in_which_they_run() -> None:
    net = torch.nn.Sequential(block(), torch.nn.Identity()).eval()
    net.forward = lambda x: net[1](net[0](x)["first"])  # type: ignore[method-assign]
    found = block_times(NetCall(net, (torch.ones(2, 8),), {}))
    assert [each.name for each in found] == ["0", "0.linear", "0.norm", "1"]
    assert found[0].ms >= found[1].ms + found[2].ms > 0
    assert not net[0]._forward_hooks


def test_blocks_are_as_deep_as_there_are_few_enough() -> None:
    net = torch.nn.Sequential(torch.nn.Sequential(*[torch.nn.ReLU() for _ in range(3)])).eval()
    call = NetCall(net, (torch.ones(2),), {})
    assert [each.name for each in block_times(call)] == ["0", "0.0", "0.1", "0.2"]
    assert [each.name for each in block_times(call, max_blocks=3)] == ["0"]


def test_scripted_modules_are_no_blocks() -> None:
    inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    for scripted in (
        torch.jit.script(inner),
        torch.jit.trace(inner, torch.ones(2, 4)),
        torch.jit.freeze(torch.jit.script(copy.deepcopy(inner).eval())),
    ):
        net = torch.nn.Sequential(torch.nn.Linear(4, 4), scripted, torch.nn.Tanh()).eval()
        found = block_times(NetCall(net, (torch.ones(2, 4),), {}))
        assert [each.name for each in found] == ["0", "2"]


def test_a_net_with_a_scripted_module_is_optimised() -> None:
    scripted = torch.jit.script(torch.nn.Linear(4, 4))
    net, x = torch.nn.Sequential(scripted, torch.nn.ReLU()).eval(), torch.randn(2, 4)
    fast = passnet.optimize(net, x, backends=("graph",), seconds=0.01)
    with torch.no_grad():
        assert torch.equal(fast(x), net(x))


class Shared(torch.nn.Module):
    """A module that is called twice, one in a slice of a list, and an op of the net's own."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = torch.nn.Sequential(torch.nn.Tanh())
        self.layers = torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.Sigmoid()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.twice(self.twice(x))
        for layer in self.layers[1:]:
            x = layer(x)
        return x + 1


def test_each_op_of_a_graph_is_of_the_module_that_calls_it() -> None:
    call = NetCall(Shared().eval(), (torch.ones(2),), {})
    graph = net_graph(call)
    found = op_blocks(call.net, graph.module.graph)
    # the third is `_log_api_usage_once`, by which a slice of a list of modules is made
    assert found == ("twice.0", "twice.0", "", "layers.1", "")
    ops = module_graph(graph.module, list(graph.arguments)).graph.program.ops
    assert len(found) == len(ops)
