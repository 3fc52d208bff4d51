"""The returned net is the net in everything but calls: methods, copies, its class."""

import copy
import inspect
import io
import pickle
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import passnet
from passnet.api import optimize_calls
from passnet.optimizer.call.fast_net import FastNet
from passnet.optimizer.call.net_state import attributes_of
from passnet.optimizer.optimize import optimize_net
from passnet.optimizer.settings import OptimizeSettings
from tests.optimizer.hand_made import entry_of, plus_hundred

X = torch.randn(3, 4)


@pytest.fixture(autouse=True)
def gradients_are_off():
    with torch.no_grad():
        yield


def made(net: torch.nn.Module, *args: Any) -> FastNet:
    """A net whose backend adds a hundred."""
    return FastNet(net, [entry_of(net, *args, run=plus_hundred)])


def layers() -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).eval()


def test_a_sequence_of_layers_is_read_as_one() -> None:
    net = layers()
    fast: Any = made(net, X)
    assert len(fast) == 3 and bool(fast) and fast[0] is net[0] and fast[-1] is net[2]
    assert [*fast] == [*net] and net[1] in fast and torch.nn.ReLU() not in fast
    assert [*reversed(fast)] == [*reversed([*net])]
    assert [*fast[:2]] == [net[0], net[1]] and type(fast[:2]) is torch.nn.Sequential
    assert dir(fast) == dir(net)
    assert torch.equal(fast(X), net(X) + 100)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "an item is set": lambda net: net.__setitem__(2, torch.nn.Identity()),
    "an item is deleted": lambda net: net.__delitem__(1),
    "an item is appended": lambda net: net.append(torch.nn.Tanh()),
    "items are added": lambda net: net.__iadd__(torch.nn.Sequential(torch.nn.Tanh())),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("by", ["the result", "the net"])
def test_a_sequence_of_layers_is_changed_as_one(change: str, by: str) -> None:
    net, twin = layers(), layers()
    fast: Any = made(net, X)
    twin.load_state_dict(net.state_dict())
    CHANGES[change](fast if by == "the result" else net)
    CHANGES[change](twin)
    assert [*map(type, fast)] == [*map(type, net)] == [*map(type, twin)]
    assert [name for name, _ in fast.named_children()] == [n for n, _ in twin.named_children()]
    assert [*fast.state_dict()] == [*twin.state_dict()]
    torch.testing.assert_close(fast(X), twin(X))


def test_what_returns_the_net_returns_the_result() -> None:
    fast: Any = made(layers(), X)
    same = fast
    same += torch.nn.Sequential(torch.nn.Tanh())
    assert same is fast and fast.append(torch.nn.ReLU()) is fast and len(fast) == 5
    assert isinstance(fast + torch.nn.Sequential(torch.nn.ReLU()), torch.nn.Sequential)


class Special(torch.nn.Module):
    """A net with special methods, a method that calls it, and methods of its own for torch's."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.entered, self.was_moved = torch.nn.Linear(4, 4), 0, False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)

    def generate(self, x: torch.Tensor, steps: int) -> torch.Tensor:
        for _ in range(steps):
            x = self(x)
        return x

    @property
    def size(self) -> int:
        return self.linear.in_features

    def to(self, *args: Any, **kwargs: Any) -> "Special":
        self.was_moved = True
        return super().to(*args, **kwargs)

    def children(self) -> Any:
        return iter([self.linear])

    def __contains__(self, name: object) -> bool:
        return name == "linear"

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> "Special":
        self.entered += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.entered -= 1

    def __matmul__(self, other: int) -> int:
        return other + 1

    def __rmatmul__(self, other: int) -> int:
        return other - 1

    def __iadd__(self, other: int) -> "Special":
        self.entered += other
        return self


def test_special_methods_of_a_class_are_the_nets() -> None:
    net = Special().eval()
    fast: Any = made(net, X)
    assert "linear" in fast and "other" not in fast and not fast
    with fast as entered:
        assert entered is fast and net.entered == 1
    fast += 5
    assert fast @ 1 == 2 and 1 @ fast == 0 and net.entered == 5
    fast += -5
    assert torch.equal(fast(X), net(X) + 100)
    plain: Any = made(torch.nn.Linear(4, 4).eval(), X)
    for function in (len, iter, lambda fast: fast[0]):
        with pytest.raises(TypeError):
            function(plain)
    assert bool(plain)


def test_methods_that_call_the_net_run_its_backends() -> None:
    net = Special().eval()
    fast: Any = made(net, X)
    assert torch.equal(fast.generate(X, 1), net(X) + 100) and fast.size == 4
    assert torch.equal(fast.generate(X, 2), net(net(X) + 100) + 100)


def test_methods_that_replace_those_of_torch_are_the_nets() -> None:
    net = Special().eval()
    fast: Any = made(net, X)
    assert [*fast.children()] == [net.linear] and fast.to("cpu") is fast and net.was_moved
    assert len(fast.built_backends) == 1
    assert fast.to(torch.float64) is fast and not fast.built_backends


def test_it_is_an_instance_of_the_nets_class() -> None:
    for net in (layers(), Special().eval()):
        fast = made(net, X)
        assert isinstance(fast, type(net)) and isinstance(fast, FastNet)
        assert not isinstance(fast, torch.nn.Linear)
    assert not isinstance(made(layers(), X), Special)
    assert type(made(layers(), X).__class__(torch.nn.ReLU())) is torch.nn.Sequential
    assert type(type(made(layers(), X))(torch.nn.ReLU())) is torch.nn.Sequential


def test_hooks_of_its_state_are_the_nets() -> None:
    net = layers()
    fast, seen = made(net, X), []
    fast.register_state_dict_post_hook(lambda *_: seen.append(1))
    fast.register_load_state_dict_post_hook(lambda *_: seen.append(2))
    fast.load_state_dict(net.state_dict())
    assert seen == [1, 2]


def test_buffers_and_parameters_are_added_to_the_net() -> None:
    net = layers()
    fast = made(net, X)
    fast.register_buffer("shift", torch.ones(2), persistent=False)
    fast.register_parameter("scale", torch.nn.Parameter(torch.ones(2)))
    fast.add_module("last", torch.nn.Identity())
    assert net.shift is fast.shift and "scale" in net.state_dict() and "last" in net._modules
    assert "shift" not in fast.state_dict()


@pytest.mark.parametrize(
    "copied",
    [
        copy.deepcopy,
        lambda net: pickle.loads(pickle.dumps(net)),
        lambda net: torch.load(saved(net), weights_only=False),
    ],
    ids=["deepcopy", "pickle", "torch.save"],
)
def test_a_copy_is_a_net_of_its_own(copied: Any, caplog: pytest.LogCaptureFixture) -> None:
    net = layers()
    fast = made(net, X)
    other = copied(fast)
    before, expected = other(X), net(X)
    torch.testing.assert_close(before, expected)
    net[0].weight.mul_(2)
    assert len(other) == 3 and torch.equal(other(X), before) and torch.equal(other[:](X), before)
    other[0].weight.zero_()
    assert torch.equal(fast(X), net(X) + 100)
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) <= 1 and all("backends are not copied" in text for text in logged)
    assert type(other) is torch.nn.Sequential


def saved(net: torch.nn.Module) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(net, file)
    file.seek(0)
    return file


def test_a_copy_of_what_has_no_backends_says_nothing_new(caplog: pytest.LogCaptureFixture) -> None:
    fast = FastNet(layers(), (), warns=False)
    copy.deepcopy(fast)(X)
    assert not [record for record in caplog.records if record.name == "passnet"]


def test_a_scripted_net_is_called_and_read_as_one() -> None:
    net = torch.jit.script(layers())
    fast: Any = FastNet(net)
    assert torch.equal(fast(X), net(X)) and bool(fast) and len([*fast.children()]) == 3
    assert [*fast.state_dict()] == [*net.state_dict()]
    torch.testing.assert_close(copy.deepcopy(fast)(X), net(X))


class Names(torch.nn.Module):
    """A net with attributes that are called as those of the result."""

    def __init__(self) -> None:
        super().__init__()
        self.original_net, self.built_backends = torch.nn.Linear(4, 4), ("own",)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.original_net(x)


def test_names_of_the_net_come_first() -> None:
    net = Names().eval()
    fast: Any = made(net, X)
    assert fast.original_net is net.original_net is not net and fast.built_backends == ("own",)
    assert torch.equal(fast(X), net(X) + 100)
    fast.built_backends = ()
    assert net.built_backends == ()


class Registering(torch.nn.Module):
    """A net whose class keeps a list of its subclasses."""

    names: list[str] = []  # noqa: RUF012 (a registry)

    def __init_subclass__(cls) -> None:
        cls.names.append(cls.__name__)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_the_class_of_the_net_takes_no_notice() -> None:
    made(Registering().eval(), X)
    assert Registering.names == []


def test_a_patched_forward_is_that_of_both() -> None:
    net = Special().eval()
    fast: Any = made(net, X)
    former = fast.forward
    assert str(inspect.signature(former)) == str(inspect.signature(net.forward))
    fast.forward = lambda x: former(x) * 2
    expected = net.linear(X) * 2
    assert torch.equal(fast(X), expected) and torch.equal(net(X), expected)
    del fast.forward
    assert torch.equal(fast(X), net.linear(X) + 100)


def test_another_class_of_the_net_is_that_of_both() -> None:
    net = torch.nn.Linear(4, 4).eval()
    fast: Any = made(net, X)
    torch.nn.utils.parametrizations.weight_norm(fast)
    assert type(net).__name__ == "ParametrizedLinear" and isinstance(fast, type(net))
    torch.testing.assert_close(fast.weight, net.weight)
    torch.testing.assert_close(fast(X), net(X))


def test_a_net_that_got_another_class_runs_as_one_of_it() -> None:
    class Doubled(Special):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x) * 2

    net = Special().eval()
    fast = made(net, X)
    net.register_forward_hook(lambda *_: None)
    net.__class__ = Doubled
    assert torch.equal(fast(X), net.linear(X) * 2) and isinstance(fast, Doubled)


REMADE: dict[str, Callable[[Any], Any]] = {
    "scripted": torch.jit.script,
    "traced": lambda net: torch.jit.trace(net, X),
    "rewritten": torch.fx.symbolic_trace,
    "exported": lambda net: torch.export.export(net, (X,)).module(),
    "compiled": lambda net: torch.compile(net, backend="eager", fullgraph=True),
    "in parallel": torch.nn.DataParallel,
}


@pytest.mark.parametrize("name", REMADE)
@pytest.mark.filterwarnings("ignore")
def test_what_torch_makes_of_it_follows_the_net(name: str) -> None:
    net = layers()
    other = REMADE[name](made(net, X))
    expected = net(X) + 100 * (name == "in parallel")
    torch.testing.assert_close(other(X), expected)


def test_what_was_optimised_may_be_optimised_again(caplog: pytest.LogCaptureFixture) -> None:
    net = layers()
    once = passnet.optimize(net, X, backends=("graph",), seconds=0.01)
    settings = OptimizeSettings(backends=("graph",), seconds=0.01)
    optimized = optimize_calls(once, [((X,), {})], settings)
    assert optimized.net.original_net is net and optimized.record.net == "Sequential"
    assert torch.equal(optimized.net(X), net(X))
    assert not [record for record in caplog.records if record.name == "passnet"]


class Keeps(torch.nn.Linear):
    """A net whose calls set attributes that others may read."""

    def __init__(self) -> None:
        super().__init__(4, 4)
        self.shape, self.table, self.made = None, None, None
        self.by_shape: dict[Any, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.shape = tuple(x.shape)
        if self.made is None:
            self.made = SimpleNamespace(scale=1.0)
        if self.table is None:
            self.table = torch.arange(4.0)
        shift = self.by_shape.setdefault(self.shape, torch.ones(4))
        return super().forward(x) * self.made.scale + self.table + shift


def test_what_a_first_call_keeps_is_kept_and_then_a_backend_serves() -> None:
    net, called = Keeps().eval(), Keeps().eval()
    entry = replace(
        entry_of(called, X),
        run=lambda tensors: [tensors[0] + 100],
        weights=dict(net.named_parameters()),
        attributes=attributes_of(called),
        keeps_values=True,
    )
    fast, served = FastNet(net, [entry]), X + 100
    assert not torch.equal(fast(X), served) and net.shape == (3, 4)
    assert net.table is not None and net.made is not None and [*net.by_shape] == [(3, 4)]
    assert torch.equal(fast(X), served)
    fast(X[:1])
    assert net.shape == (1, 4) and not torch.equal(fast(X), served) and net.shape == (3, 4)
    del net.by_shape[(1, 4)]
    assert torch.equal(fast(X), served)
    net.made.scale = 2.0
    assert not torch.equal(fast(X), served)


def test_a_net_that_keeps_values_is_served_after_its_first_call() -> None:
    net = Keeps().eval()
    settings = OptimizeSettings(backends=("graph",), seconds=0.01)
    fast = optimize_net(net, [((X,), {})], settings, serves="graph").net
    assert fast.built_backends and net.shape is net.table is net.made is None and not net.by_shape
    torch.testing.assert_close(fast(X), fast(X))
    assert net.shape == (3, 4) and net.made is not None
