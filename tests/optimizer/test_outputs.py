"""Outputs of all nestings: tensors are computed, constants are as in the example, or a sentence."""

import math
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

import passnet
from passnet.errors import BackendError, InputError
from passnet.optimizer.backends.backend import build_backend
from passnet.optimizer.backends.graphs import build_graph
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.fast_net import FastNet, copied
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.call.values import difference, flattened, lost_part, nested
from passnet.optimizer.compare.form import with_form
from tests.optimizer.hand_made import entry_of, plus_hundred

X = torch.randn(3, 4)

Pair = namedtuple("Pair", ["first", "second"])


@dataclass
class Prediction:
    scores: torch.Tensor
    label: str = "cat"
    inner: Any = None

    @property
    def best(self) -> torch.Tensor:
        return self.scores.amax(-1)


@dataclass(frozen=True, slots=True)
class Frozen:
    scores: torch.Tensor
    count: int = field(default=3, kw_only=True)


class Cache:
    """A cache of keys, which no library knows."""

    def __init__(self, keys: torch.Tensor) -> None:
        self.layers, self.length, self.kind = [keys], keys.shape[0], Pair

    def longest(self) -> int:
        return max(len(keys) for keys in self.layers)


class Handle:
    """An object with a state of its own."""

    def __init__(self, keys: torch.Tensor) -> None:
        self.keys = keys

    def __setstate__(self, state: Any) -> None:
        raise NotImplementedError


OUTPUTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "tensor": lambda x: x,
    "tensor and None": lambda x: (x, None),
    "numbers and text": lambda x: [x, 3, 0.5, math.nan, True, "a", torch.float16, (1, 2)],
    "size": lambda x: {"x": x, "rows": x.shape[0], "shape": x.shape},
    "named tuple": lambda x: Pair(x, (x + 1, None)),
    "ordered": lambda x: OrderedDict(b=x, a=None),
    "dataclass": lambda x: Prediction(x, "dog", {"y": [x * 2]}),
    "frozen dataclass": lambda x: (Frozen(x), Frozen(x + 1, count=4)),
    "cache": lambda x: (x + 1, Cache(x)),
    "the same tensor twice": lambda x: (x, None, x),
}


def equal(value: Any, right: Any) -> bool:
    """Whether two outputs are alike, to the types and the attributes of objects."""
    if isinstance(right, torch.Tensor):
        return isinstance(value, torch.Tensor) and torch.equal(value, right)
    if type(value) is not type(right):
        return False
    if isinstance(right, dict):
        return [*value] == [*right] and equal([*value.values()], [*right.values()])
    if isinstance(right, (list, tuple)):
        return len(value) == len(right) and all(map(equal, value, right))
    if isinstance(right, Frozen):
        return value.count == right.count and equal(value.scores, right.scores)
    if isinstance(right, (Prediction, Cache)):
        return equal(vars(value), vars(right))
    return repr(value) == repr(right)


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_are_taken_apart_and_made_anew(name: str) -> None:
    outputs = OUTPUTS[name](X)
    tensors, structure = flattened(outputs)
    assert equal(nested(structure, tensors), outputs)
    assert not equal(nested(structure, [tensor + 1 for tensor in tensors]), outputs)
    assert difference(structure, flattened(OUTPUTS[name](X + 1))[1]) is None


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_call_that_fits_returns_them_as_the_net_does(name: str) -> None:
    net = OUTPUTS[name]
    fast = FastNet(net, [entry_of(net, X, run=plus_hundred)])
    other = X * 2
    with torch.no_grad():
        found = fast(other)
    expected = flattened(net(other))[0]
    assert all(map(torch.equal, flattened(found)[0], [tensor + 100 for tensor in expected]))
    assert equal(nested(flattened(found)[1], expected), net(other))


class Wrapped(torch.nn.Module):
    """A net with weights that nests its output."""

    def __init__(self, nests: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.linear, self.nests = torch.nn.Linear(4, 4), nests

    def forward(self, x: torch.Tensor) -> Any:
        return self.nests(self.linear(x).tanh())


@pytest.mark.parametrize("name", [name for name in OUTPUTS if "twice" not in name])
def test_a_graph_returns_the_tensors_alone(name: str, tmp_path: Path) -> None:
    net = Wrapped(OUTPUTS[name]).eval()
    call = NetCall(net, (X,), {})
    built = build_graph(call, tmp_path, "graph")
    other = torch.randn(3, 4)
    with torch.no_grad():
        assert equal(built([other]), net(other))


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_exported_program_returns_the_tensors_alone(name: str) -> None:
    net = Wrapped(OUTPUTS[name]).eval()
    call = NetCall(net, (X,), {})
    other = torch.randn(3, 4)
    found = call.exported_flat.module()(other)
    with torch.no_grad():
        expected = call.eager_outputs([other])
    first = [expected[number] for number in call.distinct_outputs.values()]
    assert all(map(torch.equal, found, first)) and len(found) == len(first)


def test_a_net_with_a_scripted_part_is_exported() -> None:
    part = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), part).eval()
    x = torch.randn(3, 4)
    net_copy, *_ = copied(net, [])
    [found] = NetCall(net_copy, (X,), {}).exported_flat.module()(x)
    assert torch.equal(found, net(x))


def test_a_net_with_such_outputs_is_optimised() -> None:
    net = Wrapped(OUTPUTS["dataclass"]).eval()
    fast = passnet.optimize(net, X, backends=("graph",), seconds=0.01)
    with torch.no_grad():
        found = fast(X)
        assert equal(found, net(X)) and torch.equal(found.best, net(X).best)


def test_a_cache_of_transformers_is_made_anew() -> None:
    transformers = pytest.importorskip("transformers")
    outputs = pytest.importorskip("transformers.modeling_outputs")

    def cached(x: torch.Tensor) -> Any:
        cache = transformers.DynamicCache()
        cache.update(x[None, None], x[None, None] * 2, 0)
        return outputs.BaseModelOutputWithPast(last_hidden_state=x, past_key_values=cache)

    call = NetCall(cached, (X,), {})
    assert call.refusal is None and len(call.outputs) == 3
    found = call.built("made", lambda tensors: [tensor + 1 for tensor in call.outputs])([X])
    assert type(found) is outputs.BaseModelOutputWithPast and found.to_tuple()[0] is found[0]
    layer, right = found.past_key_values.layers[0], cached(X).past_key_values.layers[0]
    assert type(found.past_key_values) is transformers.DynamicCache
    assert torch.equal(layer.values, right.values + 1) and vars(layer).keys() == vars(right).keys()
    assert found.past_key_values.get_seq_length() == 3


REFUSED: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "set": (lambda x: (x, {1}), "returns a set, .* return tensors"),
    "numpy": (lambda x: (x, x.numpy()), "returns a ndarray"),
    "net": (lambda x: (x, torch.nn.Linear(1, 1)), "returns a Linear"),
    "function": (lambda x: (x, lambda: x), "returns a function"),
    "own state": (lambda x: (x, Handle(x)), "returns a Handle, .* register Handle with"),
    "an object twice": (lambda x: [x, *[Cache(x)] * 2], "returns a Cache"),
    "no tensor": (lambda x: 3, "returns no tensor; return its numbers as tensors"),
    "sparse": (lambda x: x.to_sparse(), "returns a sparse tensor"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_outputs_are_refused_before_anything_is_built(name: str, tmp_path: Path) -> None:
    net, said = REFUSED[name]
    with pytest.raises(InputError, match=said):
        passnet.optimize(net, X, progress=lambda record: pytest.fail(record.engine))


class Noted(Pair):
    """A named tuple with an attribute besides its items."""


def noted(x: torch.Tensor) -> Noted:
    made = Noted(x, x)
    made.note = 7
    return made


HELD, OF_OBJECT = ["cat", "dog"], Cache(X)

OF_ITS_OWN: dict[str, tuple[Callable[..., Any], str]] = {
    "a list": (lambda x, own: (x * 2, HELD), "returns a list of its own or of its arguments"),
    "an object": (lambda x, own: {"y": x * 2, "of": OF_OBJECT}, "returns a Cache of its own"),
    "an argument": (lambda x, own: (x * 2, own), "returns a dict of its own or of its argum"),
    "one list twice": (lambda x, own: [[x * 2]] * 2, "returns one list in two places"),
    "an attribute": (lambda x, own: noted(x * 2), "returns a Noted with an attribute, note, that"),
}


@pytest.mark.parametrize("name", OF_ITS_OWN)
def test_outputs_that_are_known_by_identity_are_refused(name: str) -> None:
    net, said = OF_ITS_OWN[name]
    call = NetCall(net, (X, {"rows": X}), {})
    assert call.refusal is not None and said in call.refusal, call.refusal


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_made_at_each_call_are_served(name: str) -> None:
    assert lost_part(OUTPUTS[name](X)) is None
    assert NetCall(Wrapped(OUTPUTS[name]).eval(), (X,), {}).refusal is None


MOVING: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "a sum": (lambda x: (x, float(x.sum())), "returns .* and then .*; return tensors instead"),
    "an index": (lambda x: (x, int(x[0].argmax())), "returns . and then .; return tensors"),
    "a tensor at times": (lambda x: (x, x if x[0, 0] > 0 else None), "a tensor|None and then"),
    "an object at times": (lambda x: (x, {1} if x[0, 0] < 0 else 2), "returns objects for some"),
    "a name": (lambda x: (x, "+" if x[0, 0] > 0 else "-"), r"returns '\+' and then '-'"),
}


@pytest.mark.parametrize("name", MOVING)
def test_constants_that_move_are_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    net, said = MOVING[name]
    call = NetCall(net, (torch.linspace(1, 2, 12).reshape(3, 4),), {})
    with pytest.raises(BackendError, match=said):
        build_backend("graph", BACKENDS["graph"], call, tmp_path / "graph")


def test_constants_that_move_later_are_noted_at_any_call() -> None:
    call = NetCall(lambda x: (x, bool(x.isnan().any())), (X,), {})
    assert call.refusal is None
    call.eager_outputs([X * torch.nan])
    assert call.refusal == "the net returns False and then True; return tensors instead"
    call = NetCall(lambda x: [x] * (1 + int(x.sum() > 0)), (-X.abs(),), {})
    call.eager_outputs([X.abs()])
    assert call.refusal and "returns outputs that are nested in other ways" in call.refusal


def test_constants_of_other_types_are_told_apart() -> None:
    for first, second in ((1, True), (1, 1.0), (0.0, -0.0), ("a", b"a"), (Pair, Cache)):
        structures = [flattened((X, value))[1] for value in (first, second)]
        assert difference(*structures) and not difference(structures[0], structures[0]), first


def test_an_output_that_is_an_argument_or_another_output_is_that_very_tensor() -> None:
    def returned(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * 2
        return x, y, y, x[:1]

    call = NetCall(returned, (torch.ones(2, 3),), {})
    built = call.built("copies", lambda tensors: [each.clone() for each in returned(*tensors)])
    x = torch.rand(2, 3)
    first, second, again, view = with_form(call, built).run([x])
    assert first is x and again is second
    assert view is not x and view.data_ptr() == x.data_ptr()


def test_outputs_of_inference_mode_are_refused_where_a_backend_has_others() -> None:
    inferring = torch.inference_mode()(torch.relu)
    call = NetCall(inferring, (torch.ones(2),), {})
    with pytest.raises(BackendError, match="tensors of inference mode"):
        with_form(call, call.built("usual", lambda tensors: [torch.relu(tensors[0])]))
    same = call.built("same", lambda tensors: [inferring(tensors[0])])
    assert with_form(call, same) is same
