"""A net with an entry gives on hostile inputs what the net itself gives, errors too."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from passnet.optimizer.call.fast_net import FastNet
from passnet.optimizer.call.net_call import BuiltBackend
from tests.optimizer.hand_made import Net, entry_of


@pytest.fixture(autouse=True)
def gradients_are_off():
    with torch.no_grad():
        yield


def fill(*values):
    return lambda x: x.copy_(torch.tensor(values * 12)[:12].view(3, 4))


HOSTILE_VALUES = {
    "nan": fill(float("nan")),
    "infinities": fill(float("inf"), -float("inf"), 0.0),
    "denormals": fill(1e-40, -1e-45),
    "huge": fill(3e38, -3e38),
    "signed zeros": fill(-0.0, 0.0),
    "plain": lambda x: x,
}
HOSTILE_FORMS = {
    "plain": lambda x: x,
    "none": lambda x: x[:0],
    "none wide": lambda x: x.new_empty(0, 4),
    "slice": lambda x: torch.cat([x, x], 1)[:, :4],
    "every second": lambda x: torch.cat([x, x])[::2],
    "transposed": lambda x: x.t().contiguous().t(),
    "reversed": lambda x: x.flip(0),
    "expanded": lambda x: x[:1].expand(3, 4),
    "overlapping": lambda x: x.view(-1).as_strided((3, 4), (1, 1)),
    "offset": lambda x: torch.cat([torch.zeros(1), x.reshape(-1)])[1:].view(3, 4),
    "misaligned": lambda x: (
        torch.frombuffer(bytearray(b"\0" + x.numpy().tobytes()), dtype=x.dtype, offset=1)
    ).view(3, 4),
    "double": lambda x: x.double(),
    "half": lambda x: x.half(),
    "integers": lambda x: x.nan_to_num(0, 0, 0).long(),
    "complex": lambda x: x.to(torch.complex64),
    "scalar": lambda x: x[0, 0],
    "more dims": lambda x: x[None],
    "parameter": lambda x: torch.nn.Parameter(x),
    "sparse": lambda x: x.to_sparse(),
    "inference": lambda x: _in_inference_mode(x),
    "list": lambda x: x.tolist(),
    "nothing": lambda x: None,
}


def _in_inference_mode(x):
    with torch.inference_mode():
        return x + 0


def outcome(net, x):
    """What a call gives, or the type and text of its error."""
    try:
        return net(x)
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)


@settings(max_examples=80, deadline=None, database=None)
@given(
    st.sampled_from(sorted(HOSTILE_VALUES)), st.sampled_from(sorted(HOSTILE_FORMS)), st.booleans()
)
def test_hostile_inputs_give_what_the_net_gives(values, form, has_gradients):
    net = Net().eval()
    entry = entry_of(net, torch.randn(3, 4))
    num_runs = []

    def run(tensors):
        num_runs.append(1)
        assert [(each.shape, each.dtype, each.stride()) for each in tensors] == [
            ((3, 4), torch.float32, (4, 1))
        ]
        return entry.run(tensors)

    counted = BuiltBackend(
        "counted", entry.args_spec, entry.leaves, run, entry.structure, entry.weights, False
    )
    fast = FastNet(net, [counted])
    x = HOSTILE_FORMS[form](HOSTILE_VALUES[values](torch.randn(3, 4)))
    with torch.set_grad_enabled(has_gradients):
        wanted, got = outcome(net, x), outcome(fast, x)
    assert isinstance(got, type(wanted))
    if isinstance(wanted, torch.Tensor):
        assert got.requires_grad is wanted.requires_grad and got.dtype is wanted.dtype
        assert torch.equal(got.nan_to_num(1, 2, 3), wanted.nan_to_num(1, 2, 3))
        assert torch.equal(got.isnan(), wanted.isnan())
    else:
        assert got == wanted
    fits = ("plain", "reversed", "offset", "misaligned", "inference")
    assert len(num_runs) == (form in fits and not has_gradients)
