"""Settings of an optimisation: backends, time, and promises about the net."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from passnet.agent.settings import LlmSettings
from passnet.core.jobs.run_plan import seconds_of
from passnet.errors import InputError, no_such
from passnet.optimizer.record import Precision

if TYPE_CHECKING:
    from passnet.optimizer.backends.backend import Backend


ALLOWED_ERROR = 5e-2
"""The relative error that is allowed where a lower precision is asked for without a tolerance."""


def _is_number(value: Any, least: float = 0.0) -> bool:
    """Return whether a value is a number, and neither NaN nor smaller."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= least


def _is_time(value: Any) -> bool:
    return _is_number(value) and value > 0


def _are_names(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(name, str) for name in value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "freeze": (_is_flag, "True or False"),
    "finite": (_is_flag, "True or False"),
    "budget_s": (_is_time, "seconds above 0, or a text such as '10m'"),
    "threads": (
        lambda n: n is None or (type(n) is int and n > 0),
        "a whole number of threads from 1, or None",
    ),
    "seconds": (_is_time, "seconds above 0"),
    "dynamic": (lambda own: isinstance(own, Mapping), 'a dict such as {"batch": (1, 64)}'),
    "precision": (_are_names, "names of precisions in a tuple, such as ('int8',)"),
    "tolerance": (
        lambda own: own is None or _is_number(own),
        "a relative error from 0, such as 1e-2, or None",
    ),
    "evaluate": (
        lambda own: own is None or callable(own),
        "a function that takes a net and returns a number, or None",
    ),
    "may_lose": (_is_number, "a number from 0"),
    "backends": (
        lambda own: own is None or _are_names(own),
        "names of backends in a tuple, such as ('aot',), or None",
    ),
    "authors": (_are_names, "names of authors in a tuple, such as ('library',)"),
    "library": (lambda own: own is None or isinstance(own, str), "the path of a library, or None"),
    "llm": (
        lambda own: own is None or isinstance(own, (str, LlmSettings)),
        "an LLM as 'provider/name', LlmSettings, or None",
    ),
}
"""Of each field a test of its values, and words for those that pass."""


@dataclass(frozen=True, slots=True)
class OptimizeSettings:
    """Settings of an optimisation.

    One name may stand for a tuple of one (`backends="aot"`), and a text for a time
    (`budget_s="10m"`).

    Raises:
        InputError: a field has a value of another kind than its line says.
    """

    freeze: bool = False
    """Take weights as constant: do not check folded ones at each call."""

    finite: bool = False
    """Take arguments as finite and indices as in range: do not check them at each call.

    NaN and infinity then need no check where a backend treats them unlike eager torch (a ReLU that
    oneDNN fuses into a product makes 0 of NaN), and backends may serve that raise no error for an
    index out of range.
    """

    budget_s: float = field(
        default=600.0, metadata={"type": str, "convert": seconds_of, "default": "10m"}
    )
    """End after this time, such as 90s, 10m or 1h: each backend gets a share of what is left."""

    threads: int | None = None
    """Run torch with this many threads."""

    seconds: float = 2.0
    """Time each backend for this many seconds."""

    dynamic: Mapping[Any, Any] = field(default_factory=dict)
    """Serve all sizes in these ranges: {"batch": (1, 64)} of axis 0 and {"length": (1, 512)} of
    axis 1, in every tensor that has the example's size there; {"input_ids": {1: (1, 512)}} of an
    argument's axis. Axes of one range and size are taken to be the same in every call.
    """

    precision: tuple[Precision, ...] = ()
    """Allow backends that compute in int8, int4, bf16 or fp16, within the tolerance."""

    tolerance: float | None = field(default=None, metadata={"option": "allowed-error"})
    """Allow relative errors up to this, such as 1e-2, in any precision: of floats the root mean
    square of the error of an output over that of eager torch's, of whole numbers the share of
    other elements. 5e-2 where `precision` is given alone.
    """

    evaluate: Callable[[Callable[..., Any]], float] | None = None
    """Your metric, greater is better: takes a net and returns a number. A backend of a lower
    precision is used only if it loses at most `may_lose`.
    """

    may_lose: float = 0.0
    """What a lower precision may lose of the metric."""

    backends: tuple[str, ...] | None = field(
        default=None, metadata={"option": "backend", "metavar": "NAME"}
    )
    """Try this backend; all that fit by default."""

    authors: tuple[str, ...] = field(default=(), metadata={"option": "author", "metavar": "NAME"})
    """Let this author give passes for ranges of the net: library, compiler, search, trained:FOLDER.

    They have the time that torch's own backends leave of the budget.
    """

    library: str | None = None
    """Use this library of passes instead of the user's own."""

    llm: str | LlmSettings | None = None
    """An LLM that writes passes too, `provider/name` or how it is asked; the net's folder keeps its
    answers.
    """

    def __post_init__(self) -> None:
        """Check each field, and convert texts and lists."""
        for name in ("precision", "backends", "authors"):
            if isinstance(own := getattr(self, name), str):
                object.__setattr__(self, name, (own,))
            elif isinstance(own, list):
                object.__setattr__(self, name, tuple(own))
        if isinstance(self.budget_s, str):
            object.__setattr__(self, "budget_s", seconds_of(self.budget_s))
        if isinstance(self.library, Path):
            object.__setattr__(self, "library", str(self.library))
        for name, (is_right, allowed) in _FIELDS.items():
            if not is_right(own := getattr(self, name)):
                raise InputError(f"{name} is {own!r:.80}; give {allowed}")
        if unknown := [each for each in self.precision if each not in get_args(Precision)]:
            raise InputError(no_such("precision", unknown[0], get_args(Precision)))

    @property
    def allowed_error(self) -> float | None:
        """The relative error that is allowed; None where only the net's own precision is."""
        if self.tolerance is not None or not (self.precision or self.evaluate):
            return self.tolerance
        return ALLOWED_ERROR if self.evaluate is None else math.inf

    def allows(self, precision: Precision | None) -> bool:
        """Return whether backends of a precision are tried; None is the net's own."""
        if precision is None or precision in self.precision:
            return True
        return not self.precision and self.allowed_error is not None

    def leaves_out(self, backend: "Backend", may_fold: bool) -> bool:
        """Return whether a backend is one for changing weights where a frozen one is as good."""
        return self.freeze and may_fold and not self.backends and backend.when == "changing"

    @property
    def asked(self) -> LlmSettings | None:
        """The LLM with its settings."""
        return LlmSettings(self.llm) if isinstance(self.llm, str) else self.llm

    def tried(self, backends: "Mapping[str, Backend] | None" = None) -> tuple[str, ...]:
        """Return the names of the backends to try, of all by default.

        Raises:
            InputError: a backend or an author is unknown, or no LLM can be asked here.
            AuthorError: this LLM cannot be asked at all (no key, no such provider).
        """
        from passnet.optimizer.backends.registry import all_backends  # with torch: a second

        backends = all_backends() if backends is None else backends
        occasions = {"usual", "changing"} | ({"freeze"} if self.freeze else set())
        occasions |= {"authors"} if self.authors or self.llm else set()
        names = self.backends or tuple(
            name
            for name, backend in backends.items()
            if backend.when in occasions and not backend.missing and self.allows(backend.precision)
        )
        if not self.backends:  # whoever allows a lower precision most likely gains by it
            lower = [n for n in names if backends[n].precision and not backends[n].is_unstoppable]
            names = (*lower, *(name for name in names if name not in lower))
        unknown = [name for name in names if name not in backends]
        if unknown:
            raise InputError(no_such("backend", unknown[0], backends))
        if self.authors:
            from passnet.optimizer.choose.pass_choice import writers_of

            writers_of(self.authors)
        if self.asked is not None:
            from passnet.agent.run import open_author

            open_author(self.asked)
        return tuple(dict.fromkeys(("eager", *names)))


DEFAULTS = OptimizeSettings()
