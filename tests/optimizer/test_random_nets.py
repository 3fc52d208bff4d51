"""Random nets with state: optimised however it ends, they are as before, and later calls right."""

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from passnet.errors import BackendError, PassnetError
from passnet.optimizer.backends.backend import Backend
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.optimize import optimize_net
from passnet.optimizer.settings import OptimizeSettings
from passnet_audit.nets.audit import audit_case
from passnet_audit.nets.case import NetCase
from passnet_audit.nets.held import changes, process_state, state
from tests.optimizer.random_nets import PARTS, WIDTH, Net

QUICK = OptimizeSettings(threads=1, seconds=0.01, budget_s=30.0)
EXAMPLES = settings(max_examples=6, deadline=None, derandomize=True, database=None)
MORE = settings(max_examples=150, deadline=None, derandomize=True, database=None)

numbers = st.lists(st.integers(0, len(PARTS) - 1), min_size=1, max_size=4).map(tuple)
"""The numbers of a net's parts."""


@pytest.fixture(autouse=True)
def modes() -> Iterator[None]:
    """Put back what a net of these tests changes by itself."""
    kept = np.geterr()
    with torch.enable_grad():
        yield
    np.seterr(**kept)


def arguments(seed: int) -> tuple[torch.Tensor]:
    return (torch.randn(3, WIDTH, generator=torch.Generator().manual_seed(seed)),)


def case_of(parts: tuple[int, ...]) -> NetCase:
    """A net of these parts, with calls of other values, its example again, and another size."""
    calls = [("other values", arguments(1)), ("negated", (-arguments(1)[0],))]
    calls += [("the example again", arguments(0)), ("another size", (torch.ones(2, WIDTH),))]
    make: Callable[[], torch.nn.Module] = partial(Net, parts)
    return NetCase(Path("random"), "state", make, lambda: arguments(0), lambda: calls)


def check_calls(parts: tuple[int, ...]) -> None:
    outcome = audit_case(case_of(parts), "graph", QUICK)
    names = [PARTS[number].__name__ for number in parts]
    assert outcome.outcome in ("served", "refused"), (names, outcome.outcome, outcome.reason)


@EXAMPLES
@given(numbers)
def test_calls_of_random_nets_are_right(parts: tuple[int, ...]) -> None:
    check_calls(parts)


@MORE
@given(numbers)
def test_calls_of_many_random_nets_are_right(parts: tuple[int, ...]) -> None:
    check_calls(parts)


def raises(error: type[BaseException]) -> Callable[..., Any]:
    def build(*_: object) -> Any:
        moves()
        raise error("on purpose")

    return build


def moves() -> None:
    """Move what a foreign compiler might."""
    torch.manual_seed(99)
    random.seed(99)
    np.random.seed(99)
    torch.set_num_threads(2)
    torch.set_grad_enabled(True)


def ends_late(call: Any, folder: Path, name: str) -> Any:
    """A backend that is right at first, and then fails in each call."""
    left = [0]

    def run(tensors: list[torch.Tensor]) -> Any:
        left[0] += 1
        if left[0] > 3:
            raise ZeroDivisionError("on purpose")
        return call.eager_outputs(call.filled(tensors))

    return call.built(name, run)


def hostile(build: Callable[..., Any]) -> Backend:
    return Backend("hostile", build, build)


def in_child(work: Callable[[], object]) -> Backend:
    """A backend whose child does this work first."""
    build = BACKENDS["graph"].build
    return Backend("hostile", build, build, make=lambda *_: work)


ENDINGS: Mapping[str, tuple[Backend, str]] = {
    "refuses": (hostile(raises(BackendError)), "on purpose"),
    "fails": (hostile(raises(RuntimeError)), "on purpose"),
    "is interrupted": (hostile(raises(KeyboardInterrupt)), "on purpose"),
    "exits": (hostile(raises(SystemExit)), "on purpose"),
    "fails late": (hostile(ends_late), "on purpose"),
    "crashes in its child": (in_child(os.abort), "SIGABRT"),
    "leaves its child": (in_child(partial(os._exit, 3)), "status 3"),
    "times out in its child": (in_child(partial(time.sleep, 60)), "was stopped"),
}
"""Backends, and what the record or the error then says."""


@pytest.mark.parametrize("ending", ENDINGS)
def test_random_nets_stay_as_they_were_however_a_backend_ends(ending: str) -> None:
    backends = {"eager": BACKENDS["eager"], "hostile": ENDINGS[ending][0]}
    budget_s = 2.0 if ending == "times out in its child" else QUICK.budget_s
    own = replace(QUICK, backends=("hostile",), budget_s=budget_s)
    reached: set[str] = set()

    @settings(EXAMPLES, max_examples=2 if "child" in ending else 6)
    @example((0,))
    @given(numbers)
    def stays(parts: tuple[int, ...]) -> None:
        torch.manual_seed(0)
        net, given = Net(parts), arguments(0)
        before = {**state(net, given), **process_state()}
        try:
            optimized = optimize_net(net, [(given, {})], own, backends=backends)
            reached.add(optimized.record.forms[0].engines[1].reason)
        except (PassnetError, ValueError, KeyboardInterrupt, SystemExit) as error:
            reached.add(str(error))
        after = {**state(net, given), **process_state()}
        assert not list(changes(before, after)), [PARTS[number].__name__ for number in parts]

    stays()
    assert any(ENDINGS[ending][1] in reason for reason in reached), reached
