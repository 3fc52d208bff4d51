"""What a call does outside of its net is seen before the call is repeated, and nothing of the
user's net is written by a copy of it.
"""

import logging
import os
import socket
import subprocess
import sys
import threading
import types
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import passnet
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.optimize import optimize_net
from passnet.optimizer.outside.quiet import quiet
from passnet.optimizer.outside.watched import watched
from passnet.optimizer.settings import OptimizeSettings

X = torch.linspace(-1, 2, 12).reshape(3, 4)

METRICS = types.ModuleType("metrics_of_the_application")
METRICS.seen, METRICS.history, METRICS.counts = 0, [], Counter()


class Meter:
    """A count of the class, and one of each object."""

    total = 0

    def __init__(self) -> None:
        self.own = 0

    @classmethod
    def add(cls, number: int) -> None:
        cls.total += number

    def note(self) -> None:
        type(self).total += 1


METER = Meter()


class Calls(nn.Module):
    """A net whose calls do something besides."""

    def __init__(self, effect: Callable[..., Any], held: Any = None) -> None:
        super().__init__()
        self.effect, self.linear, self.held = effect, nn.Linear(4, 4), held
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.effect(self.held)
        return self.linear(x)


def a_module(_: Any) -> None:
    METRICS.seen += 1


def a_list_of_a_module(_: Any) -> None:
    METRICS.history.append(1)


def a_counter_of_a_module(_: Any) -> None:
    METRICS.counts["calls"] += 1


def a_class(_: Any) -> None:
    Meter.add(1)


def an_object(_: Any) -> None:
    METER.own += 1


def the_class_of_an_object(held: Any) -> None:
    held.note()


NAMED = {
    a_module: "seen",
    a_list_of_a_module: "history",
    a_counter_of_a_module: "counts",
    a_class: "total of class Meter",
    an_object: "METER.own",
    the_class_of_an_object: "total of class Meter",
}


@pytest.mark.parametrize("effect", NAMED, ids=lambda effect: effect.__name__)
def test_variables_that_code_names_are_seen_and_put_back(effect: Callable[..., Any]) -> None:
    call = NetCall(Calls(effect, Meter()), (X,), {})
    assert call.refusal is not None and f"{NAMED[effect]}, which" in call.refusal, call.refusal
    assert (METRICS.seen, METRICS.history, METRICS.counts) == (0, [], Counter())
    assert Meter.total == METER.own == 0


FILE = os.open(os.devnull, os.O_WRONLY)
LOG = logging.getLogger("an_application.of_tests")


def write(path: Path) -> None:
    with path.open("a") as file:
        file.write("x")


OUTSIDE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a file": (write, "opens a file for writing"),
    "a file of torch": (lambda path: torch.save(X, path), "writes to a file"),
    "an open file": (lambda path: os.write(FILE, b"x"), "writes to a file"),
    "a folder": (lambda path: (path.parent / "new").mkdir(exist_ok=True), "changes a file"),
    "a log": (lambda path: LOG.warning("called"), "logs to an_application.of_tests"),
    "a print": (lambda path: print("called"), "prints"),
    "a print to stderr": (lambda path: print("called", file=sys.stderr), "prints"),
    "a process": (lambda path: subprocess.run(["true"], check=True), "starts a process"),
    "a message": (
        lambda path: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)),
        "sends a message",
    ),
    "the environment": (lambda path: os.environ.update(OF_TESTS="1"), "the environment"),
    "a warning": (lambda path: warnings.warn("called", stacklevel=1), ""),
    "a read": (lambda path: Path(__file__).read_text(encoding="utf-8"), ""),
    "an import": (lambda path: __import__("wave"), ""),
}


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.filterwarnings("ignore:called")
def test_what_each_call_does_outside_is_seen_at_the_second(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_TESTS", "0")
    effect, said = OUTSIDE[name]
    call = NetCall(Calls(effect, tmp_path / "file"), (X,), {})
    if not said:
        assert call.refusal is None
        return
    assert call.refusal is not None, name
    assert call.refusal.startswith("each call ") and said in call.refusal, call.refusal


def test_a_net_that_writes_is_called_but_twice_and_then_runs_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "file"
    net = Calls(write, file)
    fast = passnet.optimize(net, X, backends=("graph",), seconds=0.01)
    assert not fast.built_backends and file.read_text() == "xx"
    fast(X)
    assert file.read_text() == "xxx"


def test_prints_of_a_watched_call_appear_and_other_threads_are_not_watched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    go, done = threading.Event(), threading.Event()

    def other() -> None:
        go.wait(10)
        print("of another thread")
        LOG.warning("of another thread")
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with watched() as seen:
        go.set()
        assert done.wait(10)
        assert not seen
        print("of this one")
    thread.join()
    assert seen["prints"] and capsys.readouterr().out == "of another thread\nof this one\n"


class Child(nn.Linear):
    """A layer that writes into the net that it is part of."""

    def __init__(self, parent: nn.Module) -> None:
        super().__init__(4, 4)
        self.parent = weakref.ref(parent)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parent: Any = self.parent()
        parent.steps += 1
        parent.seen.append(len(parent.seen))
        parent.linear.weight.data.mul_(2)
        return super().forward(x)


class Parent(nn.Module):
    """A net with a layer that knows it."""

    def __init__(self, steps: Any) -> None:
        super().__init__()
        self.seen: list[int] = []
        if isinstance(steps, torch.Tensor):
            self.register_buffer("steps", steps)
        else:
            self.steps = steps
        self.linear, self.child = nn.Linear(4, 4), Child(self)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.child(x)


@pytest.mark.parametrize("steps", [0, torch.zeros(())], ids=["a number", "a buffer"])
def test_what_a_copy_writes_into_the_net_itself_is_put_back(steps: Any) -> None:
    net = Parent(steps)
    weight, version = net.linear.weight.clone(), net.linear.weight._version
    records: list[Any] = []
    fast = passnet.optimize(net, X, backends=("graph",), progress=records.append)
    assert not fast.built_backends
    assert "of a copy of the net changes" in records[-1].reason and "steps" in records[-1].reason
    assert net.steps == 0 and net.seen == [] and torch.equal(net.linear.weight, weight)
    assert net.linear.weight._version == version
    assert not isinstance(net.steps, torch.Tensor) or net.steps._version == 0


class Itself:
    """An object whose copies are itself."""

    number = 0

    def __deepcopy__(self, memo: Any) -> "Itself":
        return self


def test_an_object_whose_copies_are_itself_is_as_it_was() -> None:
    def count(held: Itself) -> None:
        held.number += 1

    net = Calls(count, Itself())
    assert not passnet.optimize(net, X, backends=("graph",)).built_backends
    assert net.held.number == 0 and vars(net.held) == {}


def counting(x: torch.Tensor) -> torch.Tensor:
    if bool(x.isnan().any()):
        METRICS.seen += 1
    return x.tanh() + 1


def logging_net(x: torch.Tensor) -> torch.Tensor:
    if bool(x.isnan().any()):
        LOG.warning("there is a NaN")
    return x.tanh() + 1


@pytest.mark.parametrize("net", [counting, logging_net])
def test_effects_of_calls_on_other_arguments_are_seen_too(net: Any) -> None:
    records: list[Any] = []
    fast = passnet.optimize(net, X, backends=("graph",), progress=records.append)
    assert not fast.built_backends and records[-1].reason.startswith("some calls "), records
    assert METRICS.seen == 0


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"])
def test_arguments_of_unusual_dtypes_are_drawn(dtype: str) -> None:
    def net(x: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        return x * scales.float().sum()

    scales = torch.tensor([1.0, 2.0, 3.0]).to(getattr(torch, dtype))
    settings = OptimizeSettings(backends=("graph",), seconds=0.01)
    fast = optimize_net(net, [((X, scales), {})], settings, serves="graph").net
    assert fast.built_backends
    other = torch.tensor([0.0, 5.0, 32.0]).to(scales.dtype)
    with torch.no_grad():
        torch.testing.assert_close(fast(X, other), net(X, other))


def test_complex_outputs_with_nan_are_the_same_twice() -> None:
    settings = OptimizeSettings(backends=("graph",), seconds=0.01)
    net = Spectrum().eval()
    fast = optimize_net(net, [((X,), {})], settings, serves="graph").net
    assert fast.built_backends
    with torch.no_grad():
        torch.testing.assert_close(fast(X * 2), net(X * 2))


class Spectrum(nn.Linear):
    """A net with a complex output."""

    def __init__(self) -> None:
        super().__init__(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(super().forward(x))


def test_a_net_is_optimised_where_the_folder_was_removed(tmp_path: Path) -> None:
    code = (
        "import os, torch, passnet\n"
        f"os.chdir({str(tmp_path)!r}); os.rmdir({str(tmp_path)!r})\n"
        "fast = passnet.optimize(torch.nn.Linear(8, 8).eval(), torch.ones(4, 8), "
        "backends=('graph',), seconds=0.01)\n"
        "assert fast(torch.ones(4, 8)).shape == (4, 8)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


GO, DONE = threading.Event(), threading.Event()


def let_another_draw(_: Any) -> None:
    GO.set()
    assert DONE.wait(10)


def test_numbers_that_another_thread_draws_are_not_of_the_net_and_not_drawn_again() -> None:
    drawn: list[torch.Tensor] = []

    def draw() -> None:
        GO.wait(10)
        drawn.append(torch.rand(4))
        DONE.set()

    thread = threading.Thread(target=draw)
    thread.start()
    call = NetCall(Calls(let_another_draw), (X,), {})
    thread.join()
    assert call.refusal is None
    assert not torch.equal(torch.rand(4), drawn[0])


def test_numbers_that_a_net_draws_are_drawn_again_beside_other_threads() -> None:
    net, go = Calls(lambda _: torch.rand(4)), threading.Event()
    state = torch.get_rng_state()
    thread = threading.Thread(target=go.wait)
    thread.start()
    call = NetCall(net, (X,), {})
    go.set()
    thread.join()
    assert call.refusal is not None and "random generator of torch" in call.refusal
    assert torch.equal(torch.get_rng_state(), state)


def test_one_thread_is_silenced_and_others_are_not(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    def tell(who: str) -> None:
        LOG.warning("log of %s", who)
        warnings.warn(f"warning of {who}", stacklevel=1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        filters = [*warnings.filters]
        with quiet():
            tell("this one")
            thread = threading.Thread(target=tell, args=("another",))
            thread.start()
            thread.join()
        tell("the end")
        assert warnings.filters == filters
        told = [str(each.message) for each in caught]
    assert told == ["warning of another", "warning of the end"]
    assert [record.getMessage() for record in caplog.records] == [
        "log of another",
        "log of the end",
    ]


def test_what_torch_logs_from_c_is_silenced_for_a_while(capfd: pytest.CaptureFixture[str]) -> None:
    def warn() -> str:
        torch.ops.aten.std.correction(torch.ones(2, 1), [1], correction=1)
        return capfd.readouterr().err

    assert "degrees of freedom" in warn()
    with quiet():
        assert warn() == ""
        with quiet():
            pass
        assert warn() == ""
    assert "degrees of freedom" in warn()


def test_threads_that_watch_at_once_leave_streams_and_logs_as_they_were(
    capsys: pytest.CaptureFixture[str],
) -> None:
    began, may_end = threading.Event(), threading.Event()
    before = sys.stdout, sys.stderr, logging.getLogRecordFactory()

    def watch() -> None:
        with watched():
            began.set()
            may_end.wait(10)

    thread = threading.Thread(target=watch)
    with watched() as seen:
        thread.start()
        assert began.wait(10)
        print("of the first")
        assert seen
    print("of nobody")
    may_end.set()
    thread.join()
    assert (sys.stdout, sys.stderr, logging.getLogRecordFactory()) == before
    assert capsys.readouterr().out == "of the first\nof nobody\n"
