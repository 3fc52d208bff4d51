"""Recurrent layers by weights that are packed once: values, layouts, and what is left alone."""

from typing import Any

import pytest
import torch
from torch import nn

from passnet.passes.apply.packed_op import load_op
from passnet.passes.apply.packed_products import pack_products
from tests.passes.test_packed_products import compare, compiled

pytestmark = pytest.mark.xdist_group("inductor")  # one process loads the op


def packed(net: nn.Module, expected: int, dynamic: bool = False) -> Any:
    """Return a function that runs a net's graph with packed weights, op by op."""
    load_op()
    torch._dynamo.reset()

    def backend(module: torch.fx.GraphModule, inputs: Any) -> torch.fx.GraphModule:
        assert pack_products(module) == expected
        return module

    return torch.compile(net.eval(), backend=backend, dynamic=dynamic)


def run(net: nn.Module, *call: torch.Tensor, expected: int = 1) -> Any:
    """Compare a net's graph with packed weights with eager torch; return it."""
    fast = packed(net, expected)
    with torch._dynamo.config.patch(allow_rnn=True):
        compare(net, fast, *call)
    return fast


LAYERS = [
    *(nn.LSTM(9, 20), nn.LSTM(9, 33, 2, batch_first=True, bidirectional=True)),
    *(nn.LSTM(9, 16, bias=False, dropout=0.5, num_layers=2), nn.GRU(9, 20, bidirectional=True)),
    *(nn.GRU(9, 37, 3, bias=False, batch_first=True), nn.RNN(9, 5, bidirectional=True)),
    nn.RNN(9, 18, 2, nonlinearity="relu", batch_first=True),
]


@pytest.mark.parametrize("net", LAYERS, ids=str)
@pytest.mark.parametrize("sizes", [(4, 3, 9), (1, 1, 9), (6, 9)], ids=str)
def test_layers(net: nn.Module, sizes: tuple[int, ...]) -> None:
    fast = run(net, x := torch.randn(sizes))
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        for weight in net.parameters():
            weight.mul_(1.25)
        compare(net, fast, x)


@pytest.mark.parametrize("is_extreme", [False, True])
def test_states_that_are_given(is_extreme: bool) -> None:
    net, x, states = nn.LSTM(9, 20, 2), torch.randn(5, 2, 9), torch.randn(2, 2, 2, 20)
    if is_extreme:
        x[1] *= 1e4
        states[0, 1] = torch.inf
        x[2, 1, 3] = torch.nan
    fast, kept = packed(net, 1), (x.clone(), states.clone())
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        own, right = fast(x, tuple(states)), net(x, tuple(states))
    leaves = torch.utils._pytree.tree_leaves
    for value, expected in zip(leaves(own), leaves(right), strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-5, equal_nan=True)
    torch.testing.assert_close((x, states), kept, rtol=0, atol=0, equal_nan=True)


def test_any_length() -> None:
    net = nn.LSTM(9, 20, bidirectional=True, batch_first=True)
    fast = packed(net, 1, dynamic=True)
    with torch._dynamo.config.patch(allow_rnn=True):
        for batch, length in ((2, 5), (3, 4), (2, 9), (4, 2), (5, 7), (6, 3)):
            compare(net, fast, torch.randn(batch, length, 9))


class Cells(nn.Module):
    """Cells, each on the state of the one before, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTMCell(9, 20), nn.GRUCell(20, 17, bias=False)
        self.rnn, self.last = nn.RNNCell(17, 6), nn.RNNCell(6, 9, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        hidden, cell = self.lstm(x)
        hidden, cell = self.lstm(x + 1, (hidden, cell))
        y = self.last(self.rnn(self.gru(hidden)))
        return y, hidden, cell


def test_cells() -> None:
    run(Cells(), torch.randn(3, 9), expected=5)


class Tagger(nn.Module):
    """A convolution, whose layout changes, two kinds of layers and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(9, 9, 3, padding=1)
        self.lstm, self.gru = nn.LSTM(9, 8, batch_first=True), nn.GRU(8, 7, batch_first=True)
        self.last = nn.Linear(7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.lstm(self.convolution(x).mT)
        return self.last(self.gru(y)[0])


def test_layers_between_other_packed_ones() -> None:
    run(Tagger(), torch.randn(2, 9, 5), expected=4)


def test_a_layer_inside_torch_compile() -> None:
    net, x = Tagger().eval(), torch.randn(2, 9, 5)
    fast, own = compiled(net, x)
    assert own.num_packed == 4 and not torch._dynamo.config.allow_rnn
    with torch._dynamo.config.patch(error_on_recompile=True):
        compare(net, fast, x)


class Written(nn.Module):
    """A layer whose weight is written into at each call."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(9, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.gru.bias_hh_l0.add_(0.125)
        return self.gru(x)[0]


def test_what_is_left_alone() -> None:
    call = torch.randn(4, 2, 9)
    run(nn.LSTM(9, 8, proj_size=3), call, expected=0)
    with torch.no_grad():
        written = Written()
        twin = Written()
        twin.load_state_dict(written.state_dict())
        with torch._dynamo.config.patch(allow_rnn=True):
            fast = packed(written, 0)
            for _ in range(2):
                torch.testing.assert_close(fast(call), twin(call))
    half = nn.GRU(9, 5).to(torch.bfloat16)
    fast = packed(half, 0)
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        compare(half, fast, call.to(torch.bfloat16))
