"""Answers of an LLM as pass folders, and the reward of an answer's trials.

A correct answer at eager torch's speed earns 1, three times that speed 1.48, the most that speed
earns. A result that the judge does not know is None and never 0: a trainer leaves it out.
"""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.errors import ActionError
from passnet.judge.score.status import Status
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.trial import Trial
from passnet.passes.files import Files, created

Stage: TypeAlias = Literal["nothing", "expands", "compiles", "matches", "right_form", "correct"]
"""Progress of an answer, each stage beyond those before it."""

UNKNOWN: tuple[Status, ...] = ("unstable", "reference_error")
"""Statuses that say nothing about the answer: the machine was too busy, or the reference failed."""

_BEFORE_MATCHING: dict[Status, Stage] = {"compile_error": "expands", "no_match": "compiles"}
_WITH_OUTPUTS: tuple[Status, ...] = ("wrong_shape", "wrong_dtype")


@dataclass(frozen=True, slots=True)
class RewardSettings:
    """Settings of the reward.

    Args:
        most_speedup: a speedup beyond this earns no more; how far lower bounds of honest kernels
            reach is where rewards for timing luck and for cheats begin.
        expands: credit for an answer that is a pass folder.
        compiles: for one whose folder loads.
        matches: for one with a pass that matches.
        right_form: for one whose outputs have the right shapes and dtypes.
        replaced_weight: times the share of the least time of the graph's ops that the passes
            replace, on top of a correct answer: without it the cheapest op is all that is fused.
        flagged_at_most: what an answer with a flag earns at most, until a person has read it.
    """

    most_speedup: float = 3.0
    expands: float = 0.02
    compiles: float = 0.05
    matches: float = 0.1
    right_form: float = 0.2
    replaced_weight: float = 0.25
    flagged_at_most: float = 1.0


DEFAULT_REWARD = RewardSettings()


def speed_reward(factor: float, most_speedup: float = 3.0) -> float:
    """Return the reward of a speedup: `clip(1 + log10(factor), 0, 1 + log10(most_speedup))`.

    Args:
        factor: the lower bound of the speedup's interval, so that luck earns nothing.
        most_speedup: a speedup beyond this earns no more.

    Examples:
        >>> speed_reward(1.0), round(speed_reward(2.0), 3), speed_reward(0.05)
        (1.0, 1.301, 0.0)
        >>> speed_reward(50.0) == speed_reward(3.0)
        True
    """
    if factor <= 0:
        return 0.0
    return min(max(1 + math.log10(factor), 0.0), 1 + math.log10(most_speedup))


def is_correct(trial: Trial) -> bool:
    """Return True if a candidate ran and its outputs are correct."""
    agrees = trial.smallest_t is not None and trial.smallest_t <= CORRECT_AT
    return trial.status == "ok" and agrees


def is_flagged(trial: Trial) -> bool:
    """Return True if a finding should be read by a person, without being proven."""
    return any(finding.weight == "flag" for finding in trial.findings)


def stage_of(trial: Trial) -> Stage:
    """How far the answer behind a trial came; an answer that is no pass folder has no trial."""
    if trial.status in _BEFORE_MATCHING:
        return _BEFORE_MATCHING[trial.status]
    if trial.status == "cheat":
        return "nothing"
    if trial.status == "ok":
        return "correct" if is_correct(trial) else "right_form"
    has_match = any(trial.matches.values()) or trial.status in _WITH_OUTPUTS
    return "matches" if has_match else "expands"


def staged_credit(stage: Stage, settings: RewardSettings, progress: float) -> float:
    """Return the credit for the progress of an incorrect answer.

    Args:
        stage: how far.
        settings: what each stage is worth at the beginning.
        progress: of the training, from 0 to 1, when credit has decayed to nothing.
    """
    assert 0 <= progress <= 1, f"progress is a share, not {progress}"
    if stage in ("nothing", "correct"):
        return 0.0
    return getattr(settings, stage) * (1 - progress)


def replaced_share(least_us: Sequence[float], replaced: Collection[int]) -> float:
    """Return the share of some ops in the least time of a graph's ops.

    Args:
        least_us: the least time of each op alone, in microseconds or any unit.
        replaced: the indices of the ops that passes replace.

    Examples:
        >>> replaced_share([8.0, 1.0, 1.0], [1, 2])
        0.2
    """
    total = sum(least_us)
    return sum(least_us[index] for index in set(replaced)) / total if total else 0.0


def correct_reward(speedup: float | None, settings: RewardSettings, replaced: float) -> float:
    """Return the reward of a correct answer.

    Args:
        speedup: lower bound of its speedup; None where it was not timed.
        settings: of the reward.
        replaced: share of its graph's least time that it replaces.

    Examples:
        >>> correct_reward(None, DEFAULT_REWARD, replaced=1.0)
        1.25
    """
    factor = 1.0 if speedup is None else speedup
    return speed_reward(factor, settings.most_speedup) + settings.replaced_weight * replaced


def trial_reward(
    trial: Trial,
    settings: RewardSettings = DEFAULT_REWARD,
    progress: float = 1.0,
    replaced: float = 0.0,
) -> float | None:
    """Return the reward of an answer on one graph; None where the judge does not know it.

    A correct answer that was not to be timed earns what eager torch's speed does. A cheat earns 0,
    and its trial is to be kept for reading.

    Args:
        trial: how the judge found it.
        settings: what is rewarded.
        progress: of the training, from 0 to 1; credit for what is not correct decays with it.
        replaced: the share of the graph's least time that its passes replace.
    """
    if trial.status in UNKNOWN:
        return None
    if trial.status == "cheat":
        return 0.0
    if not is_correct(trial):
        return staged_credit(stage_of(trial), settings, progress)
    reward = correct_reward(trial.speedup_low, settings, replaced)
    # A slow kernel that is right is never worth less than one that is wrong.
    reward = max(reward, settings.right_form * (1 - progress))
    return min(reward, settings.flagged_at_most) if is_flagged(trial) else reward


def task_reward(
    trials: Sequence[Trial],
    settings: RewardSettings = DEFAULT_REWARD,
    progress: float = 1.0,
    replaced: float = 0.0,
) -> float | None:
    """Return the mean reward over the known graphs of a task; None where none is known.

    A cheat on one graph makes it 0.
    """
    if any(trial.status == "cheat" for trial in trials):
        return 0.0
    rewards = [trial_reward(trial, settings, progress, replaced) for trial in trials]
    known = [reward for reward in rewards if reward is not None]
    return sum(known) / len(known) if known else None


_FILE = re.compile(
    r"^`(?P<name>[^`\n]+)`:[ \t]*\n\s*^(?P<fence>`{3,})[^\n]*\n(?P<text>.*?)^(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


def answer_files(text: str) -> Files | None:
    """Read the pass folder in a text; None where there is none.

    Text around the files is ignored; the last of several files of one name counts.

    Examples:
        >>> answer_files("First:\\n`a.py`:\\n\\n```python\\nx = 1\\n```\\n")
        {'a.py': 'x = 1\\n'}
        >>> answer_files("I cannot.") is None
        True
    """
    files: Files = {}
    for found in _FILE.finditer(text):
        try:
            files = created(files, found["name"], found["text"])
        except ActionError:
            return None
    return files or None
