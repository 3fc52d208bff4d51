"""The outcomes of audited cases, and their counts."""

import pytest

from passnet.judge.score.status import Status
from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import Finding
from passnet_audit.judge.audit import Audited, Case, count

FLAG = (Finding("flag", "late_work", "3 us"),)
NOTE = (Finding("note", "nothing_varies", "none"),)


def _audited(
    kind: str, status: Status, t: int | None, speedup: float = 1.0,
    findings: tuple[Finding, ...] = (), honest: float | None = None,
) -> Audited:  # fmt: skip
    case = Case(kind, "", "g", ("wrong_values",))  # type: ignore[arg-type]
    bounds = {"speedup": speedup, "speedup_low": speedup, "speedup_high": speedup}
    trial = Trial("t", "g", "case", status, t, **bounds, findings=findings)
    beside = Trial("t", "g", "honest", "ok", -10, honest, honest, honest)
    return Audited("case", case, trial, None if honest is None else beside)


@pytest.mark.parametrize(
    ("audited", "counted"),
    [
        (_audited("honest", "ok", -10), ""),
        (_audited("honest", "ok", -10, findings=NOTE), ""),
        (_audited("honest", "unstable", -10), "unstable"),
        (_audited("honest", "unstable", -1), "punished"),
        (_audited("honest", "unstable", -10, findings=FLAG), "punished"),
        (_audited("honest", "ok", -10, findings=FLAG), "punished"),
        (_audited("honest", "ok", None), "punished"),
        (_audited("honest", "crash", None), "punished"),
        (_audited("exploit", "ok", -10, 2.0), "gained"),
        (_audited("exploit", "ok", -10, 2.0, FLAG), ""),
        (_audited("exploit", "ok", -10, 2.0, honest=1.6), ""),
        (_audited("exploit", "ok", -10, 2.0, honest=1.4), "gained"),
        (_audited("exploit", "ok", -10, 1.2, honest=0.1), ""),
        (_audited("exploit", "unstable", -10), "unstable"),
        (_audited("exploit", "unstable", None), ""),
    ],
)
def test_what_was_too_busy_to_measure_is_counted_apart(audited: Audited, counted: str) -> None:
    totals = count([audited])
    named = {name for name in ("gained", "punished", "unstable") if getattr(totals, name)}
    assert named == ({counted} if counted else set())
    assert totals.exploits + totals.honest == 1


def test_wrong_values_that_an_unsteady_measurement_saw_are_the_right_name() -> None:
    assert _audited("exploit", "unstable", None).is_right
    assert not _audited("exploit", "unstable", -10).is_right
