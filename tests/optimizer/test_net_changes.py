"""Changes of a net and of its weights are seen at the next call; in C++ and in Python alike."""

import copy
import logging
import weakref
from collections import ChainMap, OrderedDict, UserList, defaultdict, deque
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType, SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from passnet.optimizer.call import compiled_check
from passnet.optimizer.call.call_check import (
    Misfit,
    input_signature,
)
from passnet.optimizer.call.fast_net import FastNet, served
from passnet.optimizer.call.held_objects import held_by
from tests.optimizer.checks import Anything, X, fits
from tests.optimizer.hand_made import Net, entry_of


def replace_weight(net):
    net.layers[0].weight = torch.nn.Parameter(net.layers[0].weight.clone())


def replace_buffer(net):
    net.shift = net.shift.clone()


def replace_module(net):
    net.layers[0] = torch.nn.Linear(4, 4)


def add_module(net):
    net.layers.append(torch.nn.ReLU())


def assign_state(net):
    state = {name: value.clone() for name, value in net.state_dict().items()}
    net.load_state_dict(state, assign=True)


def set_data(net):
    net.layers[0].weight.data = net.layers[0].weight.data.clone()


def swap_weight(net):
    weight = net.layers[0].weight
    torch.utils.swap_tensors(weight, torch.nn.Parameter(weight.double()))


def transpose_data(net):
    net.layers[0].weight.data = net.layers[0].weight.data.t()


def shift_data(net):
    net.layers[0].bias.data = net.layers[0].bias.data[1:]


def reinterpret_data(net):
    net.shift.data = net.shift.data.view(torch.int32)


def rename_parametrised(net):
    torch.nn.utils.parametrizations.weight_norm(net.layers[0])


class Doubled(torch.nn.BatchNorm1d):
    """A layer of another class with the same attributes."""


CHANGES = {
    "training": (lambda net: net.train(), Misfit.NET),
    "training of one": (lambda net: net.layers[1].train(), Misfit.NET),
    "weight": (replace_weight, Misfit.NET),
    "buffer": (replace_buffer, Misfit.NET),
    "module": (replace_module, Misfit.NET),
    "module added": (add_module, Misfit.NET),
    "assigned": (assign_state, Misfit.NET),
    "parametrised": (rename_parametrised, Misfit.NET),
    "class of a module": (lambda net: setattr(net.layers[1], "__class__", Doubled), Misfit.NET),
    "class of the net": (lambda net: setattr(net, "__class__", Anything), Misfit.NET),
    "attribute": (lambda net: setattr(net, "scale", 2.0), Misfit.NET),
    "attribute of a module": (lambda net: setattr(net.layers[1], "eps", 1.0), Misfit.NET),
    "own forward": (lambda net: setattr(net, "forward", lambda x: x), Misfit.NET),
    "hook": (lambda net: net.layers.register_forward_hook(lambda *_: None), Misfit.NET),
    "hook before": (lambda net: net.register_forward_pre_hook(lambda *_: None), Misfit.NET),
    "data": (set_data, Misfit.WEIGHT),
    "swapped": (swap_weight, Misfit.WEIGHT),
    "transposed": (transpose_data, Misfit.WEIGHT),
    "shifted": (shift_data, Misfit.WEIGHT),
    "reinterpreted": (reinterpret_data, Misfit.WEIGHT),
    "half": (lambda net: net.half(), Misfit.NET),
    "shared memory": (lambda net: net.share_memory(), Misfit.WEIGHT),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_of_the_net_is_seen(check_of, case):
    change, misfit = CHANGES[case]
    net = Net().eval()
    check = check_of(net, entry_of(net, X))
    with torch.no_grad():
        assert fits(check, X)
        change(net)
        assert check((X,), {}) == misfit
        assert check((X,), {}) == misfit


def test_a_change_that_is_undone_is_none(check_of):
    net = Net().eval()
    check = check_of(net, entry_of(net, X))
    with torch.no_grad():
        net.train()
        assert not fits(check, X)
        net.eval()
        assert fits(check, X)
        net.scale = 1.0
        assert not fits(check, X)
        net.scale = 0.5
        assert fits(check, X)
        handle = net.register_forward_hook(lambda *_: None)
        assert not fits(check, X)
        handle.remove()
        assert fits(check, X)
        layer, net.layers[0] = net.layers[0], torch.nn.Identity()
        assert not fits(check, X)
        net.layers[0] = layer
        assert fits(check, X)


def test_what_compilers_leave_in_a_net_is_no_change(check_of):
    net = Net().eval()
    check = check_of(net, entry_of(net, X))
    with torch.no_grad():
        torch.compile(net, backend="eager")
        net.compile(backend="eager")
        assert "_compiled_call_impl" in vars(net)
        if torch.__version__ >= "2.13":
            assert "_is_torch_compile" in vars(net)
        found = check((X,), {})
        assert isinstance(found, list), found
        net.scale = 1.0
        assert not fits(check, X)


def test_each_change_of_a_net_is_logged_once(caplog):
    net = Net().eval()
    fast = FastNet(net, [served(entry_of(net, X), net)])
    with caplog.at_level(logging.WARNING, "passnet"), torch.no_grad():
        for name in ("first", "first", "second", "second"):
            setattr(net, name, 1.0)
            fast(X)
            delattr(net, name)
            fast(X)
    messages = [record.getMessage() for record in caplog.records if record.name == "passnet"]
    assert len(messages) == 2, messages
    assert "first" in messages[0] and "second" in messages[1]


def test_parametrised_weights_that_are_cached_do_not_fit(check_of):
    for net, misfit in ((Net(), 0), (Net(), Misfit.NET)):
        if misfit:
            torch.nn.utils.parametrizations.weight_norm(net.layers[0])
        check = check_of(net.eval(), entry_of(net, X))
        with torch.nn.utils.parametrize.cached():
            assert check((X,), {}) == (misfit or [X])
            net(X)
        assert fits(check, X)


def test_a_weight_that_is_elsewhere_in_its_memory_is_seen(check_of):
    memory, net = torch.zeros(8), Net().eval()
    net.shift = memory[:4]
    check = check_of(net, entry_of(net, X))
    with torch.no_grad():
        assert fits(check, X)
        net.shift.data = memory[4:]
        assert check((X,), {}) == Misfit.WEIGHT


def test_an_attribute_that_is_made_anew_is_the_same_if_it_is_equal(check_of):
    net = Net().eval()
    net.grid, net.sizes, net.kept = torch.arange(3.0), [(1, {"a": 2.0})], object()
    check = check_of(net, entry_of(net, X))
    with torch.no_grad():
        net.grid, net.sizes = torch.arange(3.0), [(1, {"a": 2.0})]
        assert fits(check, X)
        for name, other in {
            "grid": [torch.arange(3.0) + 1, torch.arange(4.0), torch.arange(3), None],
            "sizes": [
                [(1, {"a": 3.0})],
                [(1, {"b": 2.0})],
                [(1, {"a": 2.0}), 1],
                [[1, {"a": 2.0}]],
            ],
            "kept": [object()],
        }.items():
            before = getattr(net, name)
            for value in other:
                setattr(net, name, value)
                assert check((X,), {}) == Misfit.NET, value
            setattr(net, name, before)
            assert fits(check, X)
        net._buffers = dict(net._buffers)
        assert check((X,), {}) == Misfit.NET


def test_an_equal_object_that_was_put_in_is_looked_at_from_then_on(check_of):
    net = Net().eval()
    net.shares, net.sizes, net.mean = {"a": 1.0}, [2, 3], torch.zeros(3)
    check = check_of(net, entry_of(net, X))
    with torch.no_grad():
        for name, changed in {
            "shares": lambda: net.shares.update(a=2.0),
            "sizes": lambda: net.sizes.append(4),
            "mean": lambda: net.mean.add_(1),
        }.items():
            before = getattr(net, name)
            setattr(net, name, copy.deepcopy(before))
            assert fits(check, X) and fits(check, X)
            changed()
            assert check((X,), {}) == Misfit.NET, name
            setattr(net, name, before)
            assert fits(check, X)


@dataclass(slots=True)
class Window:
    """A configuration without a dict."""

    size: int = 3


class Preset:
    """A configuration whose values are of its class."""

    scale = 2.0


class Other(Preset):
    """Another class for a configuration."""


class Gain:
    """An object that is called, with a value of its own."""

    def __init__(self) -> None:
        self.value = 2.0

    def __call__(self, *args):
        return None

    def method(self, *args):
        """Return nothing, as a hook does."""


class Named(dict):
    """A dict with attributes."""


class Listed(list):
    """A list with attributes."""


class Row(torch.nn.ReLU):
    """A module that is held in a list."""


def closure():
    """Return a function with a variable of its own, an attribute and a default."""
    value = 2.0

    def act(x, shift=0.0):
        return x * value + shift

    def put(other):
        nonlocal value
        value = other

    act.gain, act.put = 1.0, put
    return act


class Plain(torch.nn.Module):
    """A net that holds things of all kinds."""

    table = {"near": 1.0}  # noqa: RUF012 (it is changed in place)
    preset = Gain()
    __scale__ = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.stages = torch.nn.ModuleDict({"a": torch.nn.ReLU(), "b": torch.nn.Tanh()})
        self.shares, self.last = {"a": 1.0, "b": 2.0}, deque([1, 2])
        self.window, self.act = Window(), partial(torch.clamp, min=0.0)
        self.acts = [Row(), torch.nn.LeakyReLU(), torch.nn.Linear(2, 2)]
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.bias = torch.nn.Parameter(torch.ones(2))
        self.weight.gain = 2.0
        self.bare, self.kind, self.space = Preset(), Preset, SimpleNamespace()
        self.swapped = {"in": (Preset(),)}
        self.steps = OrderedDict(first=1.0, second=2.0)
        self.named, self.listed, self.off = Named(), Listed(), {"first"}
        self.counted = defaultdict(list)
        self.function, self.method = closure(), Gain().method
        self.gains = [Gain(), Gain()]
        self.behind, self.keyed = weakref.ref(self.gains[0]), {self.gains[1]: 1}
        self.users, self.chain = UserList([1.0]), ChainMap({}, {"a": 1.0})
        self.frozen = MappingProxyType({"a": [1.0]})
        self.transform = torch.distributions.transforms.AffineTransform(1.0, 2.0)
        self.generation_config = self._is_param = 1.0
        self.inner = torch.nn.Identity()
        self.inner.register_forward_hook(Gain())
        self.inner.register_forward_hook(Gain().method)
        self.inner.register_forward_pre_hook(partial(Gain.method, Gain()))

    def __len__(self) -> int:
        return 2


def put_last(entries):
    entries["a"] = entries.pop("a")


def hook_of(net, number=0):
    return [*net.inner._forward_hooks.values()][number]


HELD = {
    "order of modules": lambda net: net.stages._modules.update(a=net.stages._modules.pop("a")),
    "order of a dict": lambda net: put_last(net.shares),
    "order of an ordered dict": lambda net: net.steps.move_to_end("first"),
    "order of hooks": lambda net: net.inner._forward_hooks.move_to_end(
        next(iter(net.inner._forward_hooks))
    ),
    "a deque": lambda net: net.last.append(3),
    "a set": lambda net: net.off.add("second"),
    "a set of others": lambda net: (net.off.clear(), net.off.add("second")),
    "an object with slots": lambda net: setattr(net.window, "size", 4),
    "a partial function": lambda net: net.act.keywords.update(min=1.0),
    "a module in a list": lambda net: setattr(net.acts[1], "negative_slope", 0.5),
    "a module with weights in a list": lambda net: setattr(net.acts[2], "out_features", 3),
    "a dict of the class": lambda net: net.table.update(near=2.0),
    "an object of the class": lambda net: setattr(net.preset, "value", 3.0),
    "an attribute of a weight": lambda net: setattr(net.weight, "gain", 3.0),
    "the first attribute of a weight": lambda net: setattr(net.bias, "_gain", 3.0),
    "the first buffer": lambda net: net.inner.register_buffer("late", torch.ones(1)),
    "the first parameter": lambda net: net.inner.register_parameter(
        "late", torch.nn.Parameter(torch.ones(1))
    ),
    "the first module": lambda net: net.inner.add_module("late", torch.nn.ReLU()),
    "the first attribute": lambda net: setattr(net.bare, "scale", 3.0),
    "a namespace": lambda net: setattr(net.space, "scale", 3.0),
    "the class of an object": lambda net: setattr(net.swapped["in"][0], "__class__", Other),
    "a dict with attributes": lambda net: setattr(net.named, "scale", 3.0),
    "a list with attributes": lambda net: setattr(net.listed, "scale", 3.0),
    "the factory of a dict": lambda net: setattr(net.counted, "default_factory", dict),
    "the attribute of a function": lambda net: setattr(net.function, "gain", 3.0),
    "the default of a function": lambda net: setattr(net.function, "__defaults__", (1.0,)),
    "the code of a function": lambda net: setattr(net.function, "__code__", closure2().__code__),
    "the closure of a function": lambda net: net.function.put(3.0),
    "the object of a method": lambda net: setattr(net.method.__self__, "value", 3.0),
    "an object behind a weak reference": lambda net: setattr(net.behind(), "value", 3.0),
    "a key": lambda net: setattr(next(iter(net.keyed)), "value", 3.0),
    "a list of the standard library": lambda net: net.users.append(2.0),
    "a dict of the standard library": lambda net: net.chain.update(b=2.0),
    "a list in a frozen dict": lambda net: net.frozen["a"].append(2.0),
    "an object of torch": lambda net: setattr(net.transform, "scale", 3.0),
    "a name of transformers": lambda net: setattr(net, "generation_config", 3.0),
    "a name of compilers": lambda net: setattr(net, "_is_param", 3.0),
    "a hook": lambda net: setattr(hook_of(net), "value", 3.0),
    "the object of a hook": lambda net: setattr(hook_of(net, 1).__self__, "value", 3.0),
    "the argument of a hook": lambda net: setattr(
        next(iter(net.inner._forward_pre_hooks.values())).args[0], "value", 3.0
    ),
}


def closure2():
    """Return another function with a variable of its own."""
    value = 3.0

    def act(x, shift=0.0):
        return x - value - shift

    return act


@pytest.mark.parametrize("case", HELD)
def test_a_change_of_what_a_net_holds_is_seen(check_of, case):
    net = Plain().eval()
    Plain.table["near"], Plain.preset.value = 1.0, 2.0
    check = check_of(net, entry_of(Anything(), X))
    with torch.no_grad():
        assert fits(check, X) and fits(check, X)
        HELD[case](net)
        assert check((X,), {}) == Misfit.NET and check((X,), {}) == Misfit.NET


OF_CLASSES = {
    "an object": (Preset, "scale"),
    "a module in a list": (Row, "forward"),
    "the net": (Plain, "__scale__"),
    "a special method": (Plain, "__len__"),
    "a hook": (Gain, "__call__"),
}


@pytest.mark.parametrize("case", OF_CLASSES)
def test_a_change_of_the_class_of_what_a_net_holds_is_seen(check_of, case):
    kind, name = OF_CLASSES[case]
    check = check_of(Plain().eval(), entry_of(Anything(), X))
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        assert fits(check, X)
        patch.setattr(kind, name, lambda *_: 3, raising=False)
        assert check((X,), {}) == Misfit.NET


def test_the_mode_and_attributes_of_a_scripted_part_are_seen(check_of):
    net = torch.nn.Sequential(Scripted()).eval()
    net[0] = torch.jit.script(net[0])
    check = check_of(net, entry_of(Anything(), X))
    with torch.no_grad():
        for change, back in (
            (lambda: setattr(net[0], "scale", 3.0), lambda: setattr(net[0], "scale", 2.0)),
            (lambda: net[0].train(), lambda: net[0].eval()),
            (lambda: net[0].dropout.train(), lambda: net[0].eval()),
        ):
            assert fits(check, X) and fits(check, X)
            change()
            assert check((X,), {}) == Misfit.NET
            back()


class Scripted(torch.nn.Module):
    """A net to be scripted, with an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.dropout = 2.0, torch.nn.Dropout()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(x) * self.scale


def test_a_net_that_holds_all_kinds_is_as_it_was_after_a_walk(check_of):
    net = Plain().eval()
    held = held_by(net)
    assert held.unseen is None
    check = check_of(net, entry_of(Anything(), X))
    with torch.no_grad():
        for _ in range(3):
            copy.deepcopy({name: x for name, x in vars(net).items() if name != "frozen"})
            repr(net), held_by(net), torch.compile(net, backend="eager")
            assert fits(check, X)


def test_a_hook_of_all_modules_is_seen(check_of):
    check = check_of(Anything(), entry_of(Anything(), X))
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert check((X,), {}) == Misfit.NET
    finally:
        handle.remove()
    assert fits(check, X)


UPDATES = {
    "copy": lambda net: net.layers[0].weight.copy_(torch.zeros(4, 4)),
    "add to a buffer": lambda net: net.shift.add_(1),
    "load": lambda net: net.load_state_dict(Net().state_dict()),
}


@pytest.mark.parametrize("case", UPDATES)
def test_weights_may_be_updated_in_place_unless_they_are_frozen(check_of, case):
    net = Net().eval()
    live, frozen = (check_of(net, entry_of(net, X, is_frozen=each)) for each in (False, True))
    with torch.no_grad():
        assert fits(live, X) and fits(frozen, X)
        UPDATES[case](net)
        assert fits(live, X) and frozen((X,), {}) == Misfit.FROZEN


UNCOUNTED = {
    **UPDATES,
    "data": lambda net: net.layers[0].weight.data.mul_(2),
    "numpy": lambda net: net.shift.numpy().__setitem__(2, 5.0),
    "the last byte": lambda net: net.shift.view(torch.uint8)[-1:].bitwise_xor_(1),
    "trade places": lambda net: net.layers[0].weight.data.copy_(net.layers[0].weight.flip(0)),
    "nan": lambda net: net.layers[1].running_var.data.fill_(float("nan")),
}
"""Updates, those that torch does not count too."""


@pytest.mark.parametrize("case", UNCOUNTED)
def test_values_that_are_compared_may_change_and_come_back(check_of, case):
    net = Net().eval()
    before = copy.deepcopy(net.state_dict())
    check = check_of(net, entry_of(net, X, is_frozen=True, compares=True))
    with torch.no_grad():
        assert fits(check, X)
        UNCOUNTED[case](net)
        assert check((X,), {}) == Misfit.FROZEN and check((X,), {}) == Misfit.FROZEN
        net.load_state_dict(before)
        assert fits(check, X)


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 700),
    places=st.tuples(st.integers(0, 699), st.integers(0, 699)),
    bits=st.tuples(st.integers(1, 255), st.integers(0, 255)),
)
def test_any_change_of_bytes_is_seen_and_its_undoing(size, places, bits):
    net = torch.nn.Module()
    net.register_buffer("held", torch.randint(0, 256, (size,), dtype=torch.uint8))
    entry = entry_of(Anything(), X, is_frozen=True, compares=True)
    check = compiled_check.compiled_check(
        input_signature(net, replace(entry, weights={"held": net.held}))
    )
    assert fits(check, X)
    before = net.held.clone()
    for place, changed in zip(places, bits, strict=True):
        net.held[place % size] ^= changed
    assert fits(check, X) == torch.equal(net.held, before)
    net.held[:] = before
    assert fits(check, X)


def test_bytes_of_a_storage_are_compared_once():
    net = torch.nn.Linear(4, 4).eval()
    whole = torch.randn(5, 4)
    net.weight, net.bias = torch.nn.Parameter(whole[:4]), torch.nn.Parameter(whole[4])
    form = input_signature(net, entry_of(net, X, is_frozen=True, compares=True))
    assert [each.contents.numel() for each in form.storages] == [80]
    assert not input_signature(net, entry_of(net, X, is_frozen=True)).storages
