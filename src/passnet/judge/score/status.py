"""The statuses of a trial, and the tolerance levels that forgive them."""

from typing import Literal, TypeAlias

Status: TypeAlias = Literal[
    "ok", "no_match", "compile_error", "runtime_error", "wrong_shape", "wrong_dtype", "crash",
    "timeout", "out_of_memory", "reference_error", "cheat", "unstable",
]  # fmt: skip
"""`ok`: it ran and its outputs have the right form. `unstable` is the machine's failure, re-run."""
TOLERATED_FROM: dict[str, int | None] = {
    "ok": 1,
    **dict.fromkeys(("compile_error", "runtime_error", "wrong_shape", "wrong_dtype"), 3),
    "out_of_memory": 3,
    **dict.fromkeys(("no_match", "crash", "timeout", "reference_error", "cheat"), None),
}
"""The smallest t at which a failure counts as tolerated, for `ok` that of wrong values; None is
never. Source: PassNet paper, Eq. 10, and GraphNet report, Appendix C."""
NOT_RUN: frozenset[str] = frozenset(
    ("compile_error", "runtime_error", "crash", "timeout", "out_of_memory", "reference_error")
)
"""The statuses of trials that computed nothing to judge."""

MACHINES_FAULT: tuple[Status, ...] = ("unstable", "reference_error")
"""Statuses that may be the machine's fault, and are no judgement of a candidate."""

STATUSES: tuple[str, ...] = (*TOLERATED_FROM, "unstable")
