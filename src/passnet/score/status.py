"""How a trial can end, and from which tolerance on each kind of failure is tolerated."""

from __future__ import annotations

from typing import Literal, TypeAlias

Status: TypeAlias = Literal[
    "ok",
    "no_match",
    "compile_error",
    "runtime_error",
    "wrong_shape",
    "wrong_dtype",
    "crash",
    "timeout",
    "out_of_memory",
    "reference_error",
    "cheat",
    "unstable",
]
"""`ok`: it ran and its outputs have the right form; how close they are is `smallest_t`.

`unstable` is a failure of the machine, not of the candidate: it is re-run and never scored.
"""

TOLERATED_FROM: dict[str, int | None] = {
    "ok": 1,
    "compile_error": 3,
    "runtime_error": 3,
    "wrong_shape": 3,
    "wrong_dtype": 3,
    "out_of_memory": 3,
    "no_match": None,
    "crash": None,
    "timeout": None,
    "reference_error": None,
    "cheat": None,
}
"""The smallest t at which a failure counts as tolerated; None is never.

The entry of `ok` is that of wrong values. Running out of memory is a failure while running. Source:
PassNet paper, Eq. 10, and GraphNet report, Appendix C.
"""

STATUSES: tuple[str, ...] = (*TOLERATED_FROM, "unstable")
