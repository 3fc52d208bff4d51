"""Nets that write, draw or keep a state are refused in a sentence; a table of a first call is no
state. Arguments that cannot be checked are refused before anything is built.
"""

import array
import collections
import copy
import ctypes
import enum
import functools
import io
import itertools
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import passnet
from passnet.errors import InputError
from passnet.optimizer.blocks import block_times
from passnet.optimizer.call.effects import SMALL
from passnet.optimizer.call.held_objects import MOST, entries_of, held_by
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.call.values import other_values
from passnet.optimizer.record import BackendRecord

X = torch.linspace(-1, 2, 12).reshape(3, 4)


class Stateful(nn.Module):
    """A net that does something with its attributes before it returns."""

    total = 0
    seen: list[int] = []  # noqa: RUF012 (the state is of the class)

    def __init__(self, effect: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__()
        self.effect, self.linear = effect, nn.Linear(4, 4)
        self.count, self.table, self.cache = 0, None, {}
        self.history: list[Any] = []
        self.recent = collections.deque([torch.zeros(4)], maxlen=1)
        self.numbers, self.config = itertools.count(), SimpleNamespace(scale=1.0)
        self.generator = torch.Generator()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("large", torch.zeros(SMALL))
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shift = self.effect(self, x)
        return self.linear(x) + (0 if shift is None else shift)


def sets(name: str, value: Callable[[Any, torch.Tensor], Any]) -> Callable[[Any, Any], None]:
    return lambda net, x: setattr(net, name, value(net, x))


def first(net: Any, make: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Return the table that the first call makes."""
    if net.table is None:
        net.table = make()
    return net.table


def numbered(net: Any, x: torch.Tensor) -> None:
    Stateful.total += 1


def running(net: Any, x: torch.Tensor) -> torch.Tensor:
    """Keep a mean from the second call on."""
    net.table = torch.zeros(4) if net.table is None else net.table + x.mean(0)
    return net.table


REFUSED: dict[str, tuple[Callable[[Any, torch.Tensor], Any], str]] = {
    "a buffer": (lambda net, x: net.mean.add_(1), "writes into mean"),
    "data of a buffer": (lambda net, x: net.mean.data.add_(1), "writes into mean"),
    "memory of a buffer": (lambda net, x: net.mean.numpy().fill(7), "writes into mean"),
    "one number of many": (lambda net, x: net.large.numpy().put(40_001, 7), "writes into large"),
    "another buffer": (sets("mean", lambda net, x: x.mean(0)), "changes weight mean"),
    "a new buffer": (
        lambda net, x: net.register_buffer("late", torch.ones(4)),
        "changes weight late",
    ),
    "an argument": (lambda net, x: x.mul_(2).mean(), "writes into input 1"),
    "memory of an argument": (lambda net, x: x.numpy().fill(7), "writes into input 1"),
    "a weight within": (lambda net, x: net.linear.weight.data.mul_(2).mean(), "linear.weight"),
    "a number": (sets("count", lambda net, x: net.count + 1), "changes attribute count"),
    "a list": (lambda net, x: net.history.append(1), "changes attribute history"),
    "a dict": (lambda net, x: net.cache.update({len(net.cache): x}), "changes attribute cache"),
    "a queue": (lambda net, x: net.recent.append(x[0] + len(net.recent)), "attribute recent"),
    "an iterator": (lambda net, x: next(net.numbers), "changes attribute numbers"),
    "an object": (lambda net, x: sets("scale", lambda *_: float(x.sum()))(net.config, x), "scale"),
    "the last argument": (sets("table", lambda net, x: x.clone()), "changes attribute table"),
    "a first argument": (lambda net, x: first(net, lambda: x.mean(0)), "changes attribute table"),
    "a tensor made anew": (sets("table", lambda net, x: net.linear.bias * 2), "attribute table"),
    "a running mean": (running, "changes attribute table"),
    "a class": (numbered, "changes total of class Stateful"),
    "a list of a class": (lambda net, x: net.seen.append(1), "changes seen of class Stateful"),
    "an own generator": (
        lambda net, x: torch.rand(4, generator=net.generator),
        "changes attribute generator",
    ),
    "torch's generator": (lambda net, x: torch.rand(4), "random generator of torch"),
    "dropout": (lambda net, x: nn.functional.dropout(x), "random generator of torch"),
    "a seed": (lambda net, x: bool(torch.manual_seed(0)), "random generator of torch"),
    "Python's seed": (lambda net, x: random.seed(0), "random generator of Python"),
    "numpy's generator": (lambda net, x: np.random.rand(), "random generator of numpy"),
    "Python's generator": (lambda net, x: random.random(), "random generator of Python"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_net_with_an_effect_is_refused_in_a_sentence(name: str) -> None:
    effect, said = REFUSED[name]
    call = NetCall(Stateful(effect), (X.clone(),), {})
    assert call.refusal is not None and said in call.refusal, call.refusal


GLOBAL, HIDDEN = torch.ones(4), (nn.Linear(4, 4),)


class Silent(Stateful):
    """A net with a numpy array and a log among its attributes."""

    def __init__(self, effect: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__(effect)
        self.array, self.log = np.ones(4), io.StringIO()


UNSEEN: dict[str, tuple[type[Stateful], Callable[[Any, torch.Tensor], Any], str]] = {
    "a global tensor": (Stateful, lambda net, x: GLOBAL * 2, "reads a tensor, float32[4], that"),
    "a module in a tuple": (
        Stateful,
        lambda net, x: HIDDEN[0](x),
        "reads a tensor, float32[4, 4], that",
    ),
    "a numpy array": (Silent, lambda net, x: None, "attribute array is a numpy array"),
    "a log": (Silent, lambda net, x: net.log.write("x") * 0.0, "changes attribute log"),
    "inference mode": (
        Stateful,
        lambda net, x: torch.ones(4) * torch.is_inference_mode_enabled(),
        "other values in inference mode",
    ),
}


HELD: dict[str, tuple[Any, str]] = {
    "an array in a dict": ({"a": [np.ones(4)]}, "['a'][0] is a numpy array, whose changes nobody"),
    "an array of Python": ([array.array("d", [1.0])], "[0] is an array, whose changes nobody sees"),
    "bytes": (SimpleNamespace(a=bytearray(2)), ".a is a bytearray, whose changes nobody sees"),
    "a number of C": ((ctypes.c_int(2),), "[0] is a c_int, whose changes nobody sees"),
    "too many": ([[] for _ in range(MOST)], f"holds more than {MOST:,} objects, too many to watch"),
}


@pytest.mark.parametrize("name", HELD)
def test_a_net_that_holds_what_cannot_be_watched_is_refused(name: str) -> None:
    value, said = HELD[name]
    net = Stateful(lambda net, x: None)
    net.table = value
    refusal = NetCall(net, (X.clone(),), {}).refusal
    assert refusal is not None and said in refusal, refusal


@pytest.mark.parametrize("name", UNSEEN)
def test_a_net_that_reads_what_nobody_watches_is_refused(name: str) -> None:
    kind, effect, said = UNSEEN[name]
    call = NetCall(kind(effect), (X.clone(),), {})
    assert call.refusal is not None and said in call.refusal, call.refusal


def test_higher_order_ops_are_looked_through_and_work_afterwards() -> None:
    def branches(net: Any, x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))

    net = Stateful(branches)
    call = NetCall(net, (X.clone(),), {})
    assert call.refusal is None
    with torch.no_grad():
        torch.testing.assert_close(net(-X), net.linear(-X) + X.cos())


def test_a_net_that_returns_a_weight_itself_is_refused() -> None:
    class Returns(Stateful):
        def forward(self, x: torch.Tensor) -> Any:
            return self.linear(x), self.linear.weight.detach() if x.ndim > 2 else self.mean

    call = NetCall(Returns(lambda net, x: None), (X,), {})
    assert call.refusal == "the net returns its weight mean itself; return a copy"


ALLOWED: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "nothing": lambda net, x: None,
    "a read": lambda net, x: net.mean + len(net.history) + net.config.scale + net.total,
    "a table": lambda net, x: first(net, lambda: torch.arange(4.0)),
    "a table a shape": lambda net, x: net.cache.setdefault(x.shape, torch.ones(4)),
    "the same value": sets("count", lambda net, x: 5),
    "a tensor made anew once": sets(
        "table", lambda net, x: net.linear.bias * 2 if net.table is None else net.table
    ),
    "a draw of its own seed": lambda net, x: torch.rand(
        4, generator=torch.Generator().manual_seed(0)
    ),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_a_net_without_effects_is_not_refused(name: str) -> None:
    call = NetCall(Stateful(ALLOWED[name]), (X,), {})
    assert call.refusal is None


def test_tables_of_a_first_call_are_weights() -> None:
    call = NetCall(Stateful(ALLOWED["a table"]), (X,), {})
    assert call.weights["table"] is call.net.table and call.weights["mean"] is call.net.mean


def test_a_first_call_that_differs_is_refused() -> None:
    def warms_up(net: Any, x: torch.Tensor) -> Any:
        is_warm, net.count = net.count == 1, 1
        return 0 if is_warm else x.mean()

    call = NetCall(Stateful(warms_up), (X,), {})
    assert call.refusal is not None and "the first call of the net returns other" in call.refusal
    assert NetCall(call.net, (X,), {}).refusal is None


def test_a_weight_norm_by_hooks_is_refused_and_one_by_parametrisation_is_not() -> None:
    with pytest.warns(FutureWarning):
        by_hooks = nn.utils.weight_norm(nn.Linear(4, 4)).eval()
    call = NetCall(by_hooks, (X,), {})
    assert call.refusal is not None and "computes attribute weight anew" in call.refusal
    parametrised = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)).eval()
    assert NetCall(parametrised, (X,), {}).refusal is None


def test_lists_and_dicts_among_arguments_are_watched() -> None:
    def appended(x: torch.Tensor, features: list[Any]) -> torch.Tensor:
        features.append(x)
        return x + 1

    def popped(x: torch.Tensor, options: dict[str, float]) -> torch.Tensor:
        return x * options.pop("scale", 1.0)

    for net, more in ((appended, []), (popped, {"scale": 2.0})):
        call = NetCall(net, (X, more), {})
        assert call.refusal == "the net writes into a list or dict among its arguments"
        assert len(more) == len(call.leaves) - 1


HISTORY: list[int] = []
LAST = 0


def test_variables_that_copies_share_are_as_they_were() -> None:
    num_calls, notes, tally = 0, {"first": 1}, collections.Counter(first=5)

    def tallies(x: torch.Tensor) -> torch.Tensor:
        tally["calls"] += 1
        return x + 1

    def counts(x: torch.Tensor) -> torch.Tensor:
        nonlocal num_calls
        num_calls += 1
        notes["last"] = num_calls
        return x + 1

    def remembers(x: torch.Tensor) -> torch.Tensor:
        global LAST
        LAST = len(HISTORY) + 1
        HISTORY.append(LAST)
        return x + 1

    call = NetCall(counts, (X,), {})
    assert call.refusal is not None and "changes variable" in call.refusal
    assert num_calls == 0 and notes == {"first": 1}
    assert NetCall(tallies, (X,), {}).refusal and tally == {"first": 5}
    call = NetCall(remembers, (X,), {})
    assert call.refusal is not None and "changes global variable" in call.refusal
    assert HISTORY == [] and LAST == 0
    for effect in (numbered, lambda net, x: net.seen.append(1)):
        assert NetCall(Stateful(effect), (X,), {}).refusal
        assert Stateful.total == 0 and Stateful.seen == []


def keeping(kept: list[Any]) -> Callable[..., None]:
    """Return a hook that keeps what it is given in a list."""
    return lambda *values: kept.append(values)


def test_what_a_hook_keeps_outside_of_the_net_is_seen_and_put_back() -> None:
    for register in ("register_forward_hook", "register_forward_pre_hook"):
        net, kept = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval(), []
        getattr(net[1], register)(keeping(kept))
        call = NetCall(net, (X,), {})
        assert call.refusal is not None and "changes variable kept" in call.refusal
        assert kept == []


class Extractor:
    """An object that keeps the last features of a layer."""

    features: Any = None

    def keep(self, *values: Any) -> None:
        """Keep the features, as a hook."""
        self.features = values[-1]

    __call__ = keep


def store(kept: dict[str, Any], *values: Any) -> None:
    """Keep the features in a dict, as a hook."""
    kept["features"] = values[-1]


def test_what_the_object_of_a_hook_keeps_is_seen_and_stays_as_it_was() -> None:
    for hook in (Extractor().keep, Extractor(), functools.partial(store, {})):
        net = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
        net[1].register_forward_hook(hook)
        fast = passnet.optimize(net, X, backends=("graph",))
        assert not fast.built_backends
        for container in held_by(net).containers.values():
            assert "features" not in dict(entries_of(container))
        call = NetCall(copy.deepcopy(net), (X,), {})
        assert call.refusal is not None and "features'], which a backend" in call.refusal


def test_outputs_that_need_a_gradient_are_refused() -> None:
    class Trained(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.enable_grad():
                return super().forward(x)

    refusal = "the net returns a tensor that needs a gradient; return it detached"
    assert NetCall(Trained(4, 4).eval(), (X,), {}).refusal == refusal
    assert NetCall(Trained(4, 4).requires_grad_(False).eval(), (X,), {}).refusal is None


def test_blocks_of_a_refused_net_are_not_called() -> None:
    net = nn.Sequential(Stateful(REFUSED["a number"][0])).eval()
    call = NetCall(net, (X,), {})
    count = net[0].count
    assert block_times(call) == () and net[0].count == count
    assert block_times(NetCall(nn.Sequential(nn.ReLU()).eval(), (X,), {}))


def test_a_net_whose_second_call_fails_is_refused() -> None:
    def metered(net: Any, x: torch.Tensor) -> None:
        net.count += 1
        assert net.count < 3, "no calls are left"

    call = NetCall(Stateful(metered), (X,), {})
    assert call.refusal is not None and "changes attribute count" in call.refusal


def test_a_refused_net_is_not_called_again_by_optimize() -> None:
    kept: list[Any] = []
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    net[1].register_forward_hook(keeping(kept))
    records: list[BackendRecord] = []
    fast = passnet.optimize(net, X, backends=("graph",), progress=records.append)
    assert not kept and [record.status for record in records] == ["ok", "refused"]

    def metered(net: Any, x: torch.Tensor) -> None:
        net.count += 1
        assert net.count < 4, "no calls are left"

    fast = passnet.optimize(Stateful(metered), X, backends=("graph",))
    assert not fast.built_backends


def test_a_refused_net_is_returned_and_runs_as_it_was() -> None:
    reasons = []
    net = Stateful(REFUSED["a number"][0])
    fast = passnet.optimize(net, X, backends=("graph", "compile"), progress=reasons.append)
    assert [record.status for record in reasons][1:] == ["refused", "refused"]
    assert all("changes attribute count" in record.reason for record in reasons[1:])
    with torch.no_grad():
        assert torch.equal(fast(X), net.linear(X)) and net.count == 1


class Metres(torch.Tensor):
    """A tensor of a class of its own."""


class Mode(enum.Enum):
    """A mode of a net."""

    FAST = 1


UNCHECKED: dict[str, Any] = {
    "of type SimpleNamespace": SimpleNamespace(x=X),
    "of type ndarray": np.ones(3),
    "of type set": {1},
    "of type Mode": Mode.FAST,
    "of type range": range(3),
    "a tensor with layout torch.sparse_coo": X.to_sparse(),
    "a tensor with layout torch.sparse_csr": X.to_sparse_csr(),
    "of type Metres": X.as_subclass(Metres),
    "of type Generator": torch.Generator(),
}


@pytest.mark.parametrize("kind", UNCHECKED)
def test_arguments_that_cannot_be_checked_are_refused_before_anything_is_built(kind: str) -> None:
    def net(x: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
        return x + 1

    with pytest.raises(InputError, match=rf"^input 2\['mode'\] is {kind}; give what the net reads"):
        NetCall(net, (X, {"mode": UNCHECKED[kind]}), {})


def test_other_values_have_the_form_of_the_example() -> None:
    examples = [
        torch.tensor([3, 1, 1], dtype=torch.uint8),
        torch.tensor([True, False]),
        torch.tensor(7),
        torch.randn(3, 4).t(),
        torch.randn(2, dtype=torch.complex64),
        torch.tensor([1.0, torch.inf]).half(),
    ]
    for example in examples:
        other = other_values(example)
        assert (other.shape, other.stride(), other.dtype) == (
            *(example.shape, example.stride()),
            example.dtype,
        )
        assert not torch.equal(other, example)
        if not example.is_floating_point():
            assert torch.equal(other_values(example, with_whole=False), example)
    assert other_values(examples[0]).tolist() == [1, 3, 3]
    assert other_values(torch.zeros(0)).shape == (0,)
