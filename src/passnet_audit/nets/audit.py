"""One case audited: a net optimised, and each of its calls compared with a net that was not."""

import copy
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

from passnet.errors import InputError, PassnetError, no_such
from passnet.inductor.compiler import import_compilers
from passnet.optimizer.backends.backend import Backend
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.optimize import Optimized, optimize_net
from passnet.optimizer.settings import OptimizeSettings
from passnet_audit.nets.case import CaseCall, Given, NetCase, called
from passnet_audit.nets.differences import difference, place, tensors_of
from passnet_audit.nets.held import changes, held, process_state, state
from passnet_audit.nets.outcome import DEFAULT, CaseOutcome

MAX_REASON = 300
"""Most letters of a reason."""


def audit_case(
    case: NetCase,
    backend: str,
    settings: OptimizeSettings,
    backends: Mapping[str, Backend] = BACKENDS,
) -> CaseOutcome:
    """Optimise the net of a case by a backend, or by the default choice, and compare its calls.

    A backend that is asked for alone serves also where eager PyTorch is faster. InputError where
    there is no such backend.
    """
    if backend not in (DEFAULT, *backends):
        raise InputError(no_such("backend", backend, (DEFAULT, *backends)))
    use_dynamo_once()
    start = time.monotonic()
    outcome = CaseOutcome(str(case.path), case.kind, backend, "served")
    outcome = _audited(case, outcome, settings, backends)
    reason = " ".join(outcome.reason.split())[:MAX_REASON]
    return replace(outcome, reason=reason, seconds=round(time.monotonic() - start, 3))


@cache
def use_dynamo_once() -> None:
    """Use Dynamo, as torch itself patches its modules and functions when that happens first."""
    import_compilers()
    torch.compile(torch.nn.Linear(1, 1), backend="eager")(torch.ones(1, 1))


def _audited(
    case: NetCase, outcome: CaseOutcome, settings: OptimizeSettings, backends: Mapping[str, Backend]
) -> CaseOutcome:
    net, twin, example = case.made(), case.made(), _seeded(case.example)
    before = _state(case, net, example), process_state()
    served, error = None, ""
    try:
        served = _optimized(net, example, outcome.asked, settings, backends)
    except PassnetError as cause:
        error = str(cause)
    except Exception as cause:  # noqa: BLE001 (any other error is what an audit looks for)
        return replace(outcome, outcome="crashed", reason=f"{type(cause).__name__}: {cause}")
    moved = list(changes(before[1], process_state()))
    changed = replace(outcome, outcome="changed", reason=", ".join(moved))
    if moved_net := list(changes(before[0], _state(case, net, example))):
        return replace(changed, reason=", ".join(moved_net))
    if served is None:
        return changed if moved else replace(outcome, outcome="refused", reason=error)
    if case.change is not None:
        case.change(net)
        case.change(twin)
    uses = [("the example", example), *_seeded(case.calls)]
    wrong = next(wrongs(served.net, net, twin, uses), None)
    if wrong is not None:
        return replace(outcome, outcome="wrong", reason=wrong)
    return changed if moved else _outcome(served, outcome)


def _state(case: NetCase, net: Any, example: Given) -> dict[str, Any]:
    named = {} if case.state is None else {"the state that the case names": case.state(net)}
    return {**state(net, example), **named}


def _optimized(
    net: Any,
    example: Given,
    backend: str,
    settings: OptimizeSettings,
    backends: Mapping[str, Backend],
) -> Optimized:
    """Optimise a net; a backend that is asked for alone serves if it is right, fast or not."""
    calls = [_arguments(example)]
    if backend == DEFAULT:
        return optimize_net(net, calls, settings, backends=backends)
    settings = replace(settings, backends=(backend,))
    return optimize_net(net, calls, settings, backends=backends, serves=backend)


def _outcome(optimized: Optimized, outcome: CaseOutcome) -> CaseOutcome:
    """Return the outcome of a net that is right on all calls."""
    [signature] = optimized.record.forms
    return replace(
        outcome,
        outcome="served" if optimized.net.built_backends else "refused",
        reason="; ".join(f"{b.engine}: {b.reason}" for b in signature.engines if b.reason),
        backend=signature.chosen,
        speedup=signature.speedup,
        is_faster=signature.chosen != "eager" and (signature.speedup_low or 0.0) > 1,
    )


def _seeded(function: Callable[[], Any]) -> Any:
    torch.manual_seed(1)
    arguments = function()
    return arguments if isinstance(arguments, (tuple, dict)) else list(arguments)


def _arguments(arguments: Given) -> tuple[Sequence[Any], dict[str, Any]]:
    return (arguments, {}) if isinstance(arguments, tuple) else ((), dict(arguments))


def wrongs(fast: Any, net: Any, twin: Any, uses: Sequence[tuple[str, CaseCall]]) -> Iterator[str]:
    """Yield how calls of an optimised net differ from those of its twin."""
    earlier: list[tuple[str, _Used, _Used]] = []
    unsettled: dict[str, Any] = {}
    for label, use in uses:
        exact = _exact(twin, use)
        right, own = _used(twin, twin, use), _used(fast, net, use)
        if wrong := _wrong(own, right, exact):
            yield f"{label}: {wrong}"
        if difference(_weights(net), _weights(twin)):
            yield f"{label}: it leaves other weights or buffers"
        differing = _differing_attributes(net, twin)
        unsettled = unsettled if earlier else differing
        if moved := [name for name, both in differing.items() if unsettled.get(name) != both]:
            yield f"{label}: it leaves another {moved[0]} than the net"
        earlier.append((label, own, right))
        for former, earlier_own, earlier_right in earlier:
            if earlier_own.is_stale and not earlier_right.is_stale:
                yield f"{label}: it overwrites what it returned for {former}"


def _wrong(own: "_Used", right: "_Used", exact: Callable[[], Any]) -> str | None:
    if (own.error is None) != (right.error is None):
        return f"it {own.ending}, and the net {right.ending}"
    if own.error is None:
        if wrong := difference(own.value, right.value, exact):
            return wrong
        if own.shares != right.shares:
            return f"it returns memory of {own.shares}, and the net of {right.shares}"
    if wrong := difference(own.given, right.given, path="they"):
        return f"its arguments: {wrong}"
    if moved := next(changes(right.process, own.process), None):
        return f"it changes {moved}, and the net does not"
    return None


def _differing_attributes(net: Any, twin: Any) -> dict[str, Any]:
    """Return the contents of public attributes in which a net and its twin differ after a call.

    What the first call leaves may differ, as a table that it keeps, if it is the same ever after.
    """
    own, right = _attributes(net), _attributes(twin)
    return {
        name: (held(own.get(name)), held(right.get(name)))
        for name in {**own, **right}
        if difference(own.get(name), right.get(name))
    }


def _attributes(net: Any) -> dict[str, Any]:
    """Return the public attributes of all modules."""
    return {
        f"{path}.{name}".lstrip("."): value
        for path, module in (net.named_modules() if isinstance(net, torch.nn.Module) else ())
        for name, value in vars(module).items()
        if not name.startswith("_")
    }


def _weights(net: Any) -> dict[str, torch.Tensor]:
    if not isinstance(net, torch.nn.Module):
        return {}
    return {**dict(net.named_parameters()), **dict(net.named_buffers())}


@dataclass(frozen=True, slots=True)
class _Used:
    """A call that was made: its arguments afterwards, its result or error, and the state left."""

    given: Any
    value: Any
    error: Exception | None
    shares: list[str]
    """The argument or weight that each returned tensor shares memory with, or "nothing"."""
    process: dict[str, Any]
    contents: list[Any]

    @property
    def ending(self) -> str:
        return "returns" if self.error is None else f"raises {type(self.error).__name__}"

    @property
    def is_stale(self) -> bool:
        """True if the result was changed after the call."""
        return list(map(held, tensors_of(self.value))) != self.contents


def _used(net: Callable[..., Any], holder: Any, use: CaseCall) -> _Used:
    """Use a net on a copy of the arguments; `holder` has its weights."""
    arguments_used = use if callable(use) else _copied(use)
    value, error = None, None
    _seed()
    try:
        value = called(net, arguments_used)
    except Exception as cause:  # noqa: BLE001 (a net may raise anything)
        error = cause
    process = process_state()
    arguments = {f"argument {number}": t for number, t in enumerate(tensors_of(arguments_used))}
    tensors = {**arguments, **_weights(holder)}
    holders = {place(tensor): name for name, tensor in tensors.items()} | {0: "nothing"}
    outputs = tensors_of(value)
    shares = [holders.get(place(tensor), "nothing") for tensor in outputs]
    return _Used(arguments_used, value, error, shares, process, list(map(held, outputs)))


def _seed() -> None:
    torch.manual_seed(2)
    np.random.seed(2)
    random.seed(2)


def _copied(arguments: Given) -> Given:
    memo: dict[int, Any] = {}
    copied: Given = tree_map(lambda leaf: copy.deepcopy(leaf, memo), arguments)
    return copied


def _exact(twin: Any, use: CaseCall) -> Callable[[], Any]:
    """Return a function of the value of a call in float64, None where the net does not run in it.

    The net is a copy of the twin as it is now, as a call may change it.
    """
    if callable(use):
        return lambda: None
    net = _doubled(twin)

    def exact() -> Any:
        if net is None:
            return None
        _seed()
        try:
            return called(net, tree_map(_double, _copied(use)))
        except Exception:  # noqa: BLE001 (a net may raise anything)
            return None

    return exact


def _doubled(net: Any) -> Any:
    """Return a copy of a net in float64, None where there is none that shares no weight."""
    if not isinstance(net, torch.nn.Module):
        return net
    try:
        copied = copy.deepcopy(net)
        memories = {place(weight) for weight in _weights(net).values()} - {0}
        shares = any(place(weight) in memories for weight in _weights(copied).values())
        return None if shares else copied.double()
    except Exception:  # noqa: BLE001 (a net may hold anything)
        return None


def _double(leaf: Any) -> Any:
    is_float = isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
    return leaf.double() if is_float else leaf
