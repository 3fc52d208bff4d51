"""What the judge found out about a candidate's honesty, with the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["reject", "flag", "note"]
"""reject: proven, the trial scores as a cheat. flag: a strong sign, for a person to read. note:
information."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: how much it weighs, the name of the exploit or rule, and what shows it.

    `place` is `file:line` in the pass folder where that is known.
    """

    weight: Severity
    name: str
    evidence: str
    place: str | None = None
