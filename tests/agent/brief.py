"""Settings under which the judge measures for a moment, and calls no trial unstable."""

from typing import Any

from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan


def brief_settings(seconds: float = 0.01, **judge: Any) -> RunSettings:
    """For so many seconds a trial, and with more settings of the judge."""
    brief = JudgeSettings(
        timing=TimingPlan(seconds=seconds, keeps_awake=False), self_tolerance=1e9, **judge
    )
    return RunSettings(brief, 1, find_sandbox("auto").name)
