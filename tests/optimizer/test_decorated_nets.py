"""Nets whose methods are decorated, or that hold what cannot be copied, are served or told why."""

import functools
import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from passnet.errors import InputError
from passnet.optimizer.call.fast_net import FastNet
from passnet.optimizer.optimize import optimize_net
from passnet.optimizer.settings import OptimizeSettings

X = torch.randn(2, 4)
QUICK = OptimizeSettings(backends=("graph",), seconds=0.02)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).relu()


class InAutocast(Layer):
    @torch.autocast("cpu", enabled=False)
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.float())


class CompiledPart(Layer):
    @torch.compile(backend="eager")
    def part(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part(x) + 1


class Activated(Layer):
    def __init__(self, activate: Callable[..., Any], *args: Any) -> None:
        super().__init__()
        self.activate, self.args = activate, args

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activate(self.layer(x), *self.args)


@functools.singledispatch
def by_kind(x: Any) -> Any:
    return x


@by_kind.register
def _(x: torch.Tensor) -> torch.Tensor:
    return x.tanh()


class LosesItsMode(Layer):
    """A net whose copies are in training mode, as those of torchvision's feature extractors."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "LosesItsMode":
        made = LosesItsMode()
        made.load_state_dict(self.state_dict())
        return made


class WithLimits(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.limits, self.functions = torch.finfo(torch.float16), nn.functional

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.functions.relu(self.layer(x)).clamp(max=self.limits.max)


def compiled(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


SERVED: dict[str, Callable[[], Any]] = {
    "forward in autocast": InAutocast,
    "compiled method": CompiledPart,
    "compiled function": lambda: torch.compile(compiled, backend="eager"),
    "function of several kinds": lambda: Activated(by_kind),
    "copy in another mode": LosesItsMode,
    "limits and a Python module": WithLimits,
    "op": lambda: Activated(torch.ops.aten.relu.default),
}


def optimized(net: Any, *args: Any) -> tuple[FastNet, str]:
    """Return the optimised net, and why the backend does not serve it."""
    settings, calls = QUICK, [(args or (X,), {})]
    done = optimize_net(net, calls, settings, serves="graph")
    return done.net, str(done.record.forms[0].engines[1].reason)


@pytest.mark.parametrize("name", SERVED)
def test_it_is_served(name: str, caplog: pytest.LogCaptureFixture) -> None:
    net = SERVED[name]()
    net = net.eval() if isinstance(net, nn.Module) else net
    fast, reason = optimized(net)
    assert fast.built_backends, reason
    with caplog.at_level(logging.WARNING, "passnet"), torch.no_grad():
        for x in (X, -X):
            torch.testing.assert_close(fast(x), net(x))
            with torch.autocast("cpu"):
                fast(x)
    assert [line for line in caplog.messages if "was changed" in line] == []


def bound_forward() -> nn.Module:
    net = Layer()
    net.forward = torch.compile(net.forward, backend="eager")  # type: ignore[method-assign]
    return net


class SparseGraph(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.edges = torch.eye(2).to_sparse()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sparse.mm(self.edges, self.layer(x))


REFUSED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "forward of the net itself": (bound_forward, "forward of a copy of the net calls the net its"),
    "pruned": (lambda: prune.l1_unstructured(nn.Linear(4, 4), "weight", 0.5), "anew, as"),
    "sparse": (SparseGraph, "attribute edges is a sparse tensor"),
    "frozen script": (
        lambda: torch.jit.freeze(torch.jit.script(nn.Sequential(nn.Linear(4, 4)).eval())),
        "Dynamo does not support",
    ),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_a_reason(name: str) -> None:
    make, says = REFUSED[name]
    net = make()
    net = net.eval() if hasattr(net, "training") else net
    fast, reason = optimized(net)
    assert not fast.built_backends and says in reason
    with torch.no_grad():
        torch.testing.assert_close(fast(X), net(X))


def test_a_size_is_to_be_given_as_a_tuple() -> None:
    with pytest.raises(InputError, match=r"is a torch\.Size; give it as a tuple"):
        optimized(Activated(torch.Tensor.expand).eval(), X, torch.Size([2, 4]))


def test_what_a_decorated_function_closes_over_is_watched() -> None:
    scale = [2.0]

    @torch.no_grad()
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * scale[0]

    net = Activated(scaled).eval()
    fast, reason = optimized(net)
    assert fast.built_backends, reason
    scale[0] = 3.0
    with torch.no_grad():
        torch.testing.assert_close(fast(X), net(X))
