"""The judge as the reward of answers in the loops form."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from statistics import mean
from typing import Any

from passnet.agent.graph_text import op_times_us
from passnet.core.records.serialise import LineWriter
from passnet.errors import GraphError, InputError
from passnet.graph.spec import Graph
from passnet.graph.text.files import graph_from_row
from passnet.judge.settings import TimingPlan
from passnet.judge.task import TaskGraph
from passnet.judge.trial import Trial
from passnet.passes.files import Files
from passnet.train.rewards.reward import (
    DEFAULT_REWARD,
    correct_reward,
    replaced_share,
    staged_credit,
    trial_reward,
)
from passnet.train.rewards.sample_log import SampleLog
from passnet.train.rewards.samples import sample_of
from passnet_loops.language.answer_text import parse_answer
from passnet_loops.language.expand import expand_answer, span_of
from passnet_loops.language.prompt import Prompt, loops_prompt
from passnet_loops.language.run_answer import EagerRun, eager_run, what_is_wrong
from passnet_loops.row_judge import JUDGE_FAILED, JudgedAnswer, open_judge

ROLLOUTS_FILE = "rollouts.jsonl"

NUM_SUBJECTS = 512
"""Subgraphs that are cached with their prompts: each gets several answers."""

SHOWN_WRONG = "shown wrong"
"""Status of an answer that failed a run of its loops and was not judged."""

RIGHT_WHERE_RUN = "right where run"
"""Status of an answer that passed a run of its loops and was not judged."""

NUM_RUNS = 4
"""Runs of subgraphs in eager torch that are cached: answers to one follow each other."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """An answer with its reward and the judge's result."""

    step: int
    graph: str
    answer: str
    reward: float | None
    status: str
    findings: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class RewardPlan:
    """How answers are rewarded."""

    timing: TimingPlan | None = None
    """How a correct answer is timed, to reward speed too; correctness alone without it."""

    stage_steps: int = 64
    """Steps after which stages earn nothing."""

    judge_every: int = 1
    """Judge one in this many of the answers that pass a run of their loops. The others earn the
    reward of a correct answer, times the share of correct ones among those judged so far.
    """


class JudgeReward:
    """The judge as the reward of answers in the loops form, a reward function of TRL.

    Each answer to a graph is judged once, and not at all if it fails a run of its loops. Where the
    judge has no verdict (a busy machine, a failure of passnet), an answer gets the mean of its
    group, so that it moves nothing.

    Args:
        out: Folder of the run, which gets the rollouts.
        log: Answers of the run, which the monitors read.
        plan: How answers are rewarded.
    """

    def __init__(self, out: Path, log: SampleLog, plan: RewardPlan = RewardPlan()) -> None:  # noqa: B008
        self._log = log
        self._plan = plan
        self._path = out / ROLLOUTS_FILE
        self._results: dict[tuple[str, str], tuple[JudgedAnswer | None, float]] = {}
        self._num_calls = 0
        self._num_right = 0
        self._num_judged = 0
        self._num_confirmed = 0
        self._stack = ExitStack()
        self.__name__ = "judged"

    def __enter__(self) -> "JudgeReward":
        self._judge = self._stack.enter_context(open_judge(self._plan.timing))
        self._writer = self._stack.enter_context(LineWriter(self._path))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __call__(
        self,
        prompts: Sequence[str],
        completions: Sequence[str],
        program: Sequence[str],
        tensors: Sequence[str],
        full: Sequence[str],
        trainer_state: Any = None,
        **_: Any,
    ) -> list[float]:
        """Return the rewards of answers; the names of the parameters are columns of the rows."""
        step = trainer_state.global_step if trainer_state is not None else self._num_calls
        progress = min(1.0, step / self._plan.stage_steps)
        self._num_calls += 1
        rewards = []
        for text, *row in zip(completions, program, tensors, full, strict=True):
            judged, replaced = self._judged(text, *row)
            reward = reward_of(judged, progress, replaced, self._confirmed_share)
            rewards.append(reward)
            self._record(
                Rollout(
                    step,
                    row[-1],
                    text,
                    reward,
                    judged.status if judged else "no folder",
                    judged.findings if judged else (),
                    judged.seconds if judged else 0.0,
                ),
                [judged.trial] if judged and judged.trial else [],
            )
        return with_group_means(rewards, full)

    def _record(self, rollout: Rollout, trials: list[Trial]) -> None:
        self._log.put(
            sample_of(
                len(self._log.samples),
                rollout.step,
                rollout.graph,
                rollout.reward,
                trials,
                {},
                num_tokens=len(rollout.answer.split()),
                is_right_where_run=rollout.status == RIGHT_WHERE_RUN,
                fault="the judge failed" if rollout.reward is None and not trials else None,
            )
        )
        self._writer.write(rollout)

    def _judged(
        self, text: str, program: str, tensors: str, name: str
    ) -> tuple[JudgedAnswer | None, float]:
        """Return the judge's result, None where the text is no folder, and the replaced share."""
        key = (name, text)
        if key in self._results:
            return self._results[key]
        subject = subject_of(program, tensors, name)
        start = time.monotonic()
        try:
            files = expand_answer(subject.prompt, text)
            share = share_of_answer(subject.prompt, text, subject.least_us)
            if wrong := _shown_wrong(program, tensors, name, text):
                seconds = time.monotonic() - start
                judged = JudgedAnswer("wrong", SHOWN_WRONG, seconds, error=wrong)
            else:
                judged = self._judged_in_turn(subject.graph, files)
        except (InputError, GraphError, RecursionError):
            self._results[key] = None, 0.0
            return self._results[key]
        if judged.status == JUDGE_FAILED:
            return judged, 0.0
        self._results[key] = judged, share
        return self._results[key]

    def _judged_in_turn(self, graph: Graph, files: Files) -> JudgedAnswer:
        """Judge one in `judge_every` answers that passed a run of their loops."""
        self._num_right += 1
        if (self._num_right - 1) % self._plan.judge_every:
            return JudgedAnswer("not judged", RIGHT_WHERE_RUN, 0.0)
        judged = self._judge.judge_files(TaskGraph("task", "graph", graph), files)
        if judged.verdict != "not judged":
            self._num_judged += 1
            self._num_confirmed += judged.verdict == "correct"
        return judged

    @property
    def _confirmed_share(self) -> float:
        """Return the share of correct answers among those judged so far.

        One correct answer is counted beforehand, so that a run does not begin without any reward.
        """
        return (1 + self._num_confirmed) / (1 + self._num_judged)


def share_of_answer(prompt: Prompt, text: str, least_us: Sequence[float]) -> float:
    """Return the share of the least time of a graph's ops, `least_us`, that an answer replaces.

    Raises:
        InputError: The text is no answer to the prompt.
    """
    replaced = {op for fused in parse_answer(text) for op in range(*span_of(prompt, fused))}
    return replaced_share(least_us, replaced)


def reward_of(
    judged: JudgedAnswer | None, progress: float, replaced: float = 0.0, confirmed: float = 1.0
) -> float | None:
    """Return the reward of an answer: zero where it is no folder, None where the judge failed.

    An answer that passed a run of its loops and was not judged is correct with probability
    `confirmed`.
    """
    if judged is not None and judged.status == RIGHT_WHERE_RUN:
        return confirmed * correct_reward(None, DEFAULT_REWARD, replaced)
    if judged is not None and judged.verdict == "not judged":
        return None
    if judged is not None and judged.status == SHOWN_WRONG:
        return staged_credit("matches", DEFAULT_REWARD, progress)
    if judged is None or judged.trial is None:
        return 0.0
    return trial_reward(judged.trial, progress=progress, replaced=replaced)


def with_group_means(rewards: Sequence[float | None], groups: Sequence[str]) -> list[float]:
    """Replace missing rewards by the mean of their group.

    Examples:
        >>> with_group_means([1.0, None, 0.0], ["a", "a", "b"])
        [1.0, 1.0, 0.0]
    """
    means = {
        group: mean(
            [r for r, g in zip(rewards, groups, strict=True) if g == group and r is not None]
            or [0.0]
        )
        for group in groups
    }
    return [means[g] if r is None else r for r, g in zip(rewards, groups, strict=True)]


@lru_cache(NUM_RUNS)
def _eager(program: str, tensors: str, full: str) -> EagerRun:
    return eager_run(subject_of(program, tensors, full).prompt)


def _shown_wrong(program: str, tensors: str, full: str, answer: str) -> str | None:
    """Return the error that a run of an answer's loops finds, if any."""
    try:
        eager = _eager(program, tensors, full)
    except GraphError:
        return None
    return what_is_wrong(eager, answer)


@dataclass(frozen=True)
class Subject:
    """A subgraph that answers are asked for."""

    graph: Graph

    @cached_property
    def prompt(self) -> Prompt:
        """Return its prompt.

        Raises:
            GraphError, InputError: It has none.
        """
        return loops_prompt(self.graph)

    @cached_property
    def least_us(self) -> list[float]:
        """Return the least time of each op of the prompt, in microseconds.

        Raises:
            GraphError: Shapes cannot be inferred.
        """
        return op_times_us(self.prompt.graph)


@lru_cache(NUM_SUBJECTS)
def subject_of(program: str, tensors: str, full: str) -> Subject:
    """Return the subgraph of a row of training data, from the columns that hold it."""
    return Subject(graph_from_row(program, tensors, full[:16]))
