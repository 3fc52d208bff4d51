"""Answers of an LLM as pass folders, and the reward of an answer's trials.

A correct answer earns 1 at eager torch's speed, at most 1.48, at three times that speed, and at
least 0.2. An unknown result is None and never 0: a trainer leaves it out.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.bench.scores import is_correct
from passnet.errors import ActionError
from passnet.judge.score.status import Status
from passnet.judge.trial import Trial
from passnet.passes.files import Files, created

Stage: TypeAlias = Literal["nothing", "expands", "compiles", "matches", "right_form", "correct"]
"""Progress of an answer, in order."""

UNKNOWN: tuple[Status, ...] = ("unstable", "reference_error")
"""Statuses that say nothing about the answer."""

_BEFORE_MATCHING: dict[Status, Stage] = {"compile_error": "expands", "no_match": "compiles"}
_WITH_OUTPUTS: tuple[Status, ...] = ("wrong_shape", "wrong_dtype")


@dataclass(frozen=True, slots=True)
class RewardSettings:
    """Settings of the reward; its credits are for incorrect answers and decay to 0."""

    most_speedup: float = 3.0
    """A speedup beyond this earns no more: honest kernels rarely reach further."""

    expands: float = 0.02
    """Credit for an answer that is a pass folder."""

    compiles: float = 0.05
    """Credit for a folder that loads."""

    matches: float = 0.1
    """Credit for a pass that matches."""

    right_form: float = 0.2
    """Credit for outputs of the right shapes and dtypes; a correct answer earns it at least."""

    flagged_at_most: float = 1.0
    """Most that an answer with a flag earns until a person has read it."""


DEFAULT_REWARD = RewardSettings()


def speed_reward(factor: float, most_speedup: float = 3.0) -> float:
    """Return the reward of a speedup: `clip(1 + log10(factor), 0, 1 + log10(most_speedup))`.

    `factor` is the lower bound of the speedup's interval, so that luck earns nothing.

    Examples:
        >>> speed_reward(1.0), round(speed_reward(2.0), 3), speed_reward(0.05)
        (1.0, 1.301, 0.0)
        >>> speed_reward(50.0) == speed_reward(3.0)
        True
    """
    if factor <= 0:
        return 0.0
    return min(max(1 + math.log10(factor), 0.0), 1 + math.log10(most_speedup))


def is_flagged(trial: Trial) -> bool:
    """Return True if a person should read one of the findings."""
    return any(finding.weight == "flag" for finding in trial.findings)


def stage_of(trial: Trial) -> Stage:
    """Return the stage that the answer of a trial reached."""
    if trial.status in _BEFORE_MATCHING:
        return _BEFORE_MATCHING[trial.status]
    if trial.status == "cheat":
        return "nothing"
    if trial.status == "ok":
        return "correct" if is_correct(trial) else "right_form"
    has_match = any(trial.matches.values()) or trial.status in _WITH_OUTPUTS
    return "matches" if has_match else "expands"


def trial_reward(
    trial: Trial, settings: RewardSettings = DEFAULT_REWARD, progress: float = 1.0
) -> float | None:
    """Return the reward of an answer on one graph; None where the judge does not know it.

    A correct answer that was not timed earns as much as at eager torch's speed. A cheat earns 0.

    Args:
        trial: the trial of the answer.
        settings: settings of the reward.
        progress: progress of the training, from 0 to 1.
    """
    assert 0 <= progress <= 1, f"progress is a share, not {progress}"
    if trial.status in UNKNOWN:
        return None
    if trial.status == "cheat":
        return 0.0
    if not is_correct(trial):
        stage = stage_of(trial)
        return 0.0 if stage == "nothing" else getattr(settings, stage) * (1 - progress)
    factor = 1.0 if trial.speedup_low is None else trial.speedup_low
    # At all times, as on a small graph the call alone makes it slow.
    reward = max(speed_reward(factor, settings.most_speedup), settings.right_form)
    return min(reward, settings.flagged_at_most) if is_flagged(trial) else reward


def task_reward(
    trials: Sequence[Trial], settings: RewardSettings = DEFAULT_REWARD, progress: float = 1.0
) -> float | None:
    """Return the mean reward over the known graphs of a task; None where none is known.

    A cheat on one graph makes it 0.
    """
    if any(trial.status == "cheat" for trial in trials):
        return 0.0
    rewards = [trial_reward(trial, settings, progress) for trial in trials]
    known_rewards = [reward for reward in rewards if reward is not None]
    return sum(known_rewards) / len(known_rewards) if known_rewards else None


_NAME = re.compile(r"`(?P<name>[^`\n]+)`:[ \t]*")
"""The line before a file, which names it."""
_FENCE = re.compile(r"`{3,}")
"""The start of a fence: the line after a file has its own as a whole."""


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
    try:
        for name, content in _named_blocks(text.split("\n")):
            files = created(files, name, content)
    except ActionError:
        return None
    return files or None


def _named_blocks(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each fenced block that follows a name, in linear time."""
    ends: dict[str, list[int]] = defaultdict(list)  # lines that are a fence alone, the last first
    for number in range(len(lines) - 1, -1, -1):
        if (fence := lines[number].rstrip(" \t")) and not fence.strip("`"):
            ends[fence].append(number)
    number = 0
    while number < len(lines):
        named = _NAME.fullmatch(lines[number])
        number += 1
        if named is None:
            continue
        while number < len(lines) and not lines[number].strip():
            number += 1
        fence = _FENCE.match(lines[number]) if number < len(lines) else None
        if fence is None:
            continue
        closing = ends[fence[0]]
        while closing and closing[-1] <= number:
            closing.pop()
        if closing:
            end = closing.pop()
            yield named["name"], "".join(f"{line}\n" for line in lines[number + 1 : end])
            number = end + 1
