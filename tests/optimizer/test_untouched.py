"""The user's net, its arguments and the state of the process are as before, however it ends."""

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import passnet
from passnet.errors import InputError
from tests.optimizer.nets import block

QUICK: dict[str, Any] = {"backends": ("graph",), "seconds": 0.01}


class TrainingNorm(torch.nn.Module):
    """A batch norm left in training mode within a net in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)
        self.eval()
        self.norm.train()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


class Counter(torch.nn.Module):
    """A net that counts its calls in an attribute, a list and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.num_calls, self.history = 0, []
        self.register_buffer("total", torch.zeros((), dtype=torch.int64))
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.num_calls += 1
        self.history.append(tuple(x.shape))
        self.total += 1
        return torch.relu(x)


class Cache(torch.nn.Module):
    """A net that keeps a table from its first call."""

    def __init__(self) -> None:
        super().__init__()
        self.table = None
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.table is None:
            self.table = torch.arange(x.shape[-1]) / 2
        return torch.relu(x + self.table)


class ArgumentWriter(torch.nn.Module):
    """A net that writes into its argument."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.add_(1).relu()


class WeightWriter(torch.nn.Module):
    """A net that updates a parameter past torch's count of updates."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.weight.data.mul_(0.5)
        return x * self.weight


class Random(torch.nn.Module):
    """A net that draws from every global generator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand_like(x) + random.random() + np.random.rand()


class Late(Counter):
    """A net that fails at its third call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.num_calls == 2:
            raise ValueError("enough")
        return super().forward(x)


class Modes(torch.nn.Module):
    """A net that leaves gradients off and its own mode changed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.set_grad_enabled(False)
        self.training = False
        return torch.relu(x)


class SharedArgument(torch.nn.Module):
    """A net with tied weights and a view as a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("row", self.first.weight.detach()[0])
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x)) + self.row


NETS: dict[str, Callable[[], torch.nn.Module]] = {
    "block": block,
    "training norm": TrainingNorm,
    "counter": Counter,
    "cache": Cache,
    "argument writer": lambda: ArgumentWriter().eval(),
    "weight writer": WeightWriter,
    "random": lambda: Random().eval(),
    "fails late": Late,
    "modes": lambda: Modes().eval(),
    "tied weights": SharedArgument,
}


def held(value: Any) -> Any:
    """A value with its identity, as it is now."""
    if isinstance(value, torch.Tensor):
        contents = value.detach().clone()
        layout = (value.shape, value.stride(), value.data_ptr(), value.requires_grad)
        return id(value), contents.tolist(), layout, value._version
    if isinstance(value, dict):
        return id(value), {key: held(item) for key, item in value.items()}
    if isinstance(value, list):
        return id(value), [held(item) for item in value]
    return id(value), repr(value) if isinstance(value, (int, float, str, tuple)) else None


def state(net: torch.nn.Module, *args: torch.Tensor) -> list[Any]:
    """All that must stay as it is, of a net, its arguments and the process."""
    modules = [(name, held(vars(module))) for name, module in net.named_modules()]
    legacy = np.random.get_state()
    generators = (random.getstate(), legacy[1].tolist(), legacy[2:], torch.get_rng_state().tolist())
    modes = (torch.is_grad_enabled(), torch.get_num_threads(), torch.get_default_dtype())
    return [modules, [held(arg) for arg in args], generators, modes]


@pytest.fixture(autouse=True)
def gradients() -> Iterator[None]:
    """Gradients as they were, where a net switches them off."""
    with torch.enable_grad():
        yield


def fails(record: object) -> None:
    raise ZeroDivisionError


def interrupts(record: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("ends", ["returns", "fails", "interrupted"])
@pytest.mark.parametrize("name", NETS)
def test_nothing_changes_while_a_net_is_optimised(name: str, ends: str) -> None:
    net, x = NETS[name](), torch.linspace(-1, 1, 16 if name == "block" else 8).reshape(2, -1)
    before = state(net, x)
    progress = {"returns": None, "fails": fails, "interrupted": interrupts}[ends]
    errors = (ZeroDivisionError, KeyboardInterrupt)
    try:
        passnet.optimize(net, x, progress=progress, **QUICK)
    except errors:
        assert ends != "returns"
    except ValueError as error:
        assert (name, str(error)) == ("fails late", "enough")
    assert state(net, x) == before


def test_nothing_changes_while_a_net_is_loaded(tmp_path) -> None:
    net, x = Cache(), torch.ones(2, 4)
    passnet.optimize(net, x, out=tmp_path / "out", **QUICK)
    before = state(net, x)
    fast = passnet.load(tmp_path / "out", net)
    assert state(net, x) == before
    with torch.no_grad():
        assert torch.equal(fast(x), Cache()(x))


class Locked(torch.nn.Module):
    """A net that cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def forward(self, x: torch.Tensor, lock: Any = None) -> torch.Tensor:
        return torch.relu(x)


def test_what_cannot_be_copied_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match=r"^Locked cannot be copied \(.*pickle.*\); "):
        passnet.optimize(Locked().eval(), torch.ones(2), **QUICK)
    with pytest.raises(InputError, match=r"^the arguments of .* cannot be copied \(.*\); "):
        passnet.optimize(torch.relu, torch.ones(2), threading.Lock(), **QUICK)


class SharedByCopies(torch.nn.Module):
    """A net whose copies share its weight."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weight)

    def __deepcopy__(self, memo: dict[int, Any]) -> "SharedByCopies":
        return SharedByCopies(self.weight.detach()).eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


def test_weights_that_copies_share_are_refused_in_a_sentence() -> None:
    net = SharedByCopies(torch.ones(4)).eval()
    with pytest.raises(InputError, match="^copies of SharedByCopies share weight with it"):
        passnet.optimize(net, torch.ones(2, 4), **QUICK)
    assert net.weight.dtype is torch.float32 and torch.equal(net.weight, torch.ones(4))


def test_weights_without_values_are_refused_in_a_sentence() -> None:
    net = torch.nn.Sequential(torch.nn.LazyLinear(4)).eval()
    with pytest.raises(InputError, match=r"^weight 0\.weight has no values yet; call Sequential"):
        passnet.optimize(net, torch.ones(2, 4), **QUICK)
    assert torch.nn.parameter.is_lazy(net[0].weight)


def test_tensors_with_a_history_of_gradients_are_copied() -> None:
    net = torch.nn.utils.weight_norm(torch.nn.Linear(4, 4)).eval()
    x = torch.ones(2, 4, requires_grad=True) * 2
    fast = passnet.optimize(net, x, **QUICK)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), net(x))


@pytest.mark.parametrize(
    "engine", ["graph", "compile", pytest.param("aot", marks=pytest.mark.slow)]
)
def test_the_returned_net_sees_later_changes_of_weights(
    engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    net, x = block(), torch.randn(2, 8)
    address, threads = net.linear.weight.data_ptr(), threading.enumerate()
    fast = passnet.optimize(net, x, backends=(engine,), seconds=0.01)
    assert threading.enumerate() == threads
    for entry in fast.built_backends:
        assert entry.engine == engine
    with torch.no_grad():
        for change in (lambda: net.linear.weight.mul_(3), lambda: net.shift.data.add_(1)):
            change()
            torch.testing.assert_close(fast(x)["second"], net(x)["second"])
    assert net.linear.weight.data_ptr() == address
    assert not [each for each in caplog.records if each.name == "passnet"]


def test_a_cache_that_the_net_fills_later_is_no_change(caplog: pytest.LogCaptureFixture) -> None:
    net, x = Cache(), torch.ones(2, 4)
    fast = passnet.optimize(net, x, **QUICK)
    net(x)
    with torch.no_grad():
        assert torch.equal(fast(x), net(x))
    assert not [each for each in caplog.records if each.name == "passnet"]
