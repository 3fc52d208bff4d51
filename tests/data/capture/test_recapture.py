"""A net captured again gives the graphs that it has at those sizes, and in that dtype."""

import pytest
import torch

from passnet.data.capture.capture import capture
from passnet.data.capture.net import NetInput, floats, ones, tokens
from passnet.data.capture.recapture import recapture, resized_value
from passnet.errors import CaptureError
from passnet.graph.canonical import fingerprints
from tests.data.capture import own, sized

HERE = sized.__file__


def test_values_are_repeated_or_cut_along_named_axes():
    ids = tokens(50, 2, 3)
    grown = resized_value(ids, {"batch": 4, "sequence": 5})
    assert grown.shape == (4, 5)
    assert torch.equal(grown[2:], grown[:2]) and torch.equal(grown[:, 3:], grown[:, :2])
    assert torch.equal(resized_value(ids, {"sequence": 2}), ids.value[:, :2])
    assert resized_value(ids, {"height": 9}) is ids.value


def test_only_floats_of_32_bits_are_cast():
    assert resized_value(floats(2), {}, torch.bfloat16).dtype is torch.bfloat16
    assert resized_value(ones(2), {}, torch.bfloat16).dtype is torch.int64
    assert resized_value(NetInput(3), {}, torch.bfloat16) == 3


def test_inputs_that_cannot_be_had_are_refused():
    with pytest.raises(CaptureError, match=f"{4 * 2**50} bytes, above {2 * 2**30}"):
        resized_value(floats(2, axes=("batch",)), {"batch": 2**50})
    with pytest.raises(CaptureError, match="axis batch has no elements"):
        resized_value(floats(0, axes=("batch",)), {"batch": 4})


@pytest.mark.parametrize("name", ["rms", "table"])
def test_other_sizes_give_the_graph_of_the_net_at_these(name):
    recaptured = recapture(f"{HERE}:{name}", {"batch": 3, "time": 10})
    assert recaptured.axes == {"batch": 2, "time": 6}
    [actual] = recaptured.graphs
    net = getattr(sized, name)().module
    [expected] = capture(net, torch.randn(3, 10, 8))
    assert fingerprints(actual).full == fingerprints(expected).full


def test_another_dtype_gives_the_graph_of_the_cast_net():
    [actual] = recapture(f"{HERE}:rms", {}, "bfloat16").graphs
    [expected] = capture(sized.Rms().eval().bfloat16(), torch.randn(2, 6, 8).bfloat16())
    assert fingerprints(actual).full == fingerprints(expected).full


def test_an_input_that_is_given_twice_stays_one_argument():
    entry = f"{own.__file__}:attending"
    [cast] = recapture(entry, {}, "bfloat16").graphs
    [graph] = recapture(entry, {}).graphs
    assert len(cast.tensors) == len(graph.tensors) == 5


def test_a_recurrent_net_is_cast_with_the_weights_it_lists():
    [graph] = recapture(f"{own.__file__}:gru", {}, "bfloat16").graphs
    assert {spec.dtype for spec in graph.tensors} == {"bfloat16"}


def test_a_net_that_refuses_a_size_says_so():
    with pytest.raises(CaptureError, match="too many"):
        recapture(f"{HERE}:fixed", {"batch": 8})
