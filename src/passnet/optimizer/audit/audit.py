"""One case audited: a net optimised, and each of its calls compared with a net that was not."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import torch
from torch.utils._pytree import tree_leaves, tree_map

from passnet.errors import PassnetError
from passnet.optimizer.audit.case import HARMLESS, Given, NetCase, Use, called
from passnet.optimizer.audit.differences import difference
from passnet.optimizer.audit.held import changes, state
from passnet.optimizer.optimize import Optimized, optimize_net
from passnet.optimizer.settings import OptimizeSettings

Outcome: TypeAlias = Literal["wrong", "changed", "crashed", "refused", "served"]

OUTCOMES: tuple[Outcome, ...] = ("wrong", "changed", "crashed", "refused", "served")
"""What an audit can find: values unlike eager PyTorch's; a net, arguments or a process that the
optimisation changed; an error that is no sentence, or the end of the process; no backend for the
example; a backend that is right on all calls.
"""


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The outcome of a case with one choice of backends."""

    case: str
    kind: str
    asked: str
    """The backend, or `default`."""
    outcome: Outcome
    reason: str = ""
    backend: str = "eager"
    """The backend that serves the example."""
    speedup: float | None = None
    """Over eager PyTorch."""
    is_faster: bool = False
    """True where the interval of the speedup lies above 1."""
    seconds: float = 0.0

    @property
    def is_right(self) -> bool:
        """True if the net is right, and served by a faster backend where it is harmless."""
        if self.kind == HARMLESS and self.asked == "default":
            return self.outcome == "served" and self.is_faster
        return self.outcome in ("refused", "served")


def audit_case(case: NetCase, asked: str, settings: OptimizeSettings) -> CaseOutcome:
    """Optimise the net of a case by a backend, or by the default choice, and compare its calls."""
    found = CaseOutcome(case.name, case.kind, asked, "served")
    backends = None if asked == "default" else (asked,)
    settings = replace(settings, backends=backends)
    net, twin, example = case.made(), case.made(), _seeded(case.example)
    before = state(net, example), case.state and case.state(net)
    optimized, error = None, ""
    try:
        optimized = optimize_net(net, [_arguments(example)], settings)
    except PassnetError as cause:
        error = str(cause)
    except Exception as cause:  # noqa: BLE001 (any other error is what an audit looks for)
        return replace(found, outcome="crashed", reason=f"{type(cause).__name__}: {cause}")
    after = state(net, example), case.state and case.state(net)
    if moved := list(changes(before[0], after[0])):
        return replace(found, outcome="changed", reason=f"changed: {', '.join(moved[:3])}")
    if before[1] != after[1]:
        return replace(found, outcome="changed", reason=f"{before[1]} became {after[1]}"[:300])
    if optimized is None:
        return replace(found, outcome="refused", reason=error)
    found = _served(found, optimized)
    if case.change is not None:
        case.change(net)
        case.change(twin)
    uses: list[tuple[str, Use]] = [("the example", example), *_seeded(case.calls)]
    for label, use in uses:
        if wrong := _wrong(case, optimized.net, net, twin, use):
            return replace(found, outcome="wrong", reason=f"{label}: {wrong}")
    return found


def _served(found: CaseOutcome, optimized: Optimized) -> CaseOutcome:
    [signature] = optimized.record.forms
    reasons = [f"{b.engine}: {b.reason}" for b in signature.engines if b.reason]
    return replace(
        found,
        outcome="served" if optimized.net.built_backends else "refused",
        reason="; ".join(reasons),
        backend=signature.chosen,
        speedup=signature.speedup,
        is_faster=signature.chosen != "eager" and signature.speedup_low > 1,
    )


def _seeded(function: Callable[[], Any]) -> Any:
    torch.manual_seed(1)
    made = function()
    return made if isinstance(made, (tuple, dict)) else list(made)


def _arguments(given: Given) -> tuple[Sequence[Any], dict[str, Any]]:
    return (given, {}) if isinstance(given, tuple) else ((), dict(given))


def _wrong(case: NetCase, fast: Callable[..., Any], net: Any, twin: Any, use: Use) -> str | None:
    """Return how a call of the optimised net differs from that of its twin, or None."""
    own, right = _used(fast, use), _used(twin, use)
    if own.error is not None or right.error is not None:
        if (own.error is None) != (right.error is None):
            return f"it {own.ending}, and the net {right.ending}"
        return None
    if wrong := difference(own.value, right.value, lambda: _exact(case, use)):
        return wrong
    if wrong := difference(own.given, right.given):
        return f"its arguments: {wrong}"
    if own.shares != right.shares:
        return "what it returns shares memory with its arguments otherwise"
    if own.generator != right.generator:
        return "it leaves torch's random generator elsewhere"
    if isinstance(net, torch.nn.Module):
        states = dict(net.state_dict()), dict(twin.state_dict())
        wrong = difference(*states) or difference(_counts(net), _counts(twin))
        return wrong and f"the state of the net: {wrong}"
    return None


def _counts(net: torch.nn.Module) -> dict[str, Any]:
    """Return the plain attributes of all modules."""
    return {
        f"{path}.{name}": value
        for path, module in net.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, (int, float, str)) and not name.startswith("_")
    }


@dataclass(frozen=True, slots=True)
class _Used:
    value: Any
    given: Any
    shares: list[bool]
    generator: bytes
    error: Exception | None

    @property
    def ending(self) -> str:
        return "returns" if self.error is None else f"raises {type(self.error).__name__}"


def _used(net: Callable[..., Any], use: Use) -> _Used:
    """Use a net on a copy of the arguments."""
    given = use if callable(use) else _copied(use)
    value, error = None, None
    torch.manual_seed(2)
    try:
        value = called(net, given)
    except Exception as cause:  # noqa: BLE001 (a net may raise anything)
        error = cause
    places = {_place(leaf) for leaf in tree_leaves(given)} - {0}
    shares = [_place(leaf) in places for leaf in tree_leaves(value)]
    return _Used(value, given, shares, torch.get_rng_state().numpy().tobytes(), error)


def _place(leaf: Any) -> int:
    if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
        return 0
    return leaf.untyped_storage().data_ptr()


def _copied(given: Given) -> Given:
    memo: dict[int, Any] = {}
    copied: Given = tree_map(lambda leaf: copy.deepcopy(leaf, memo), given)
    return copied


def _exact(case: NetCase, use: Use) -> Any:
    """Return the value of a call in float64 by a new net, or None."""
    if callable(use):
        return None
    try:
        net = case.made().double()
        if case.change is not None:
            case.change(net)
        return called(net, tree_map(_double, _copied(use)))
    except Exception:  # noqa: BLE001 (a net may raise anything)
        return None


def _double(leaf: Any) -> Any:
    is_float = isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
    return leaf.double() if is_float else leaf
