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
from passnet.errors import GraphError, InputError, MeasureError
from passnet.graph.spec import Graph
from passnet.graph.text.files import graph_from_row
from passnet.judge.settings import TimingPlan
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
from passnet_loops.row_judge import AnswerJudge, JudgedAnswer

ROLLOUTS_FILE = "rollouts.jsonl"

NUM_SUBJECTS = 512
"""So many subgraphs are kept with their prompts: each is asked for once an answer."""

SHOWN_WRONG = "shown wrong"
"""The status of an answer that was not judged, as a run of its loops computes something else."""

RIGHT_WHERE_RUN = "right where run"
"""The status of an answer of which a run of its loops shows nothing wrong, and which is not one of
those that are judged.
"""

NUM_RUNS = 4
"""Runs of a subgraph in eager torch that are kept: its answers come one after the other."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """An answer that was paid: at which step, for which subgraph, how, and what the judge found."""

    step: int
    graph: str
    answer: str
    reward: float | None
    status: str
    findings: tuple[str, ...]
    seconds: float


class JudgeReward:
    """The judge as the reward of answers in the loops form; each answer to a graph is judged once,
    and not at all if a run of its loops shows that it is wrong, or others are judged in its place.

    What the judge cannot say (a busy machine, a failure of ours) gets the mean of its group, so
    that it moves nothing. Each answer goes into the `log`, which the monitors read.

    Args:
        out: the folder of the run, which gets the answers with what they earned.
        log: the answers of the run.
        timing: how a correct answer is timed, which pays for speed too; without, correctness alone
            is paid for.
        stage_steps: over so many steps the credit for stages goes to nothing.
        judge_every: of answers that a run of their loops does not show to be wrong, one in so many
            is judged; the others earn what a correct one does, times the share of those judged so
            far that were correct.
    """

    def __init__(
        self,
        out: Path,
        log: SampleLog,
        timing: TimingPlan | None = None,
        stage_steps: int = 64,
        judge_every: int = 1,
    ) -> None:
        self._log = log
        self._timing = timing
        self._stage_steps = stage_steps
        self._judge_every = judge_every
        self._path = out / ROLLOUTS_FILE
        self._known: dict[tuple[str, str], tuple[JudgedAnswer | None, float]] = {}
        self._num_calls = 0
        self._num_right = 0
        self._num_judged = 0
        self._num_confirmed = 0
        self._stack = ExitStack()
        self.__name__ = "judged"

    def __enter__(self) -> "JudgeReward":
        self._judge = self._stack.enter_context(AnswerJudge(self._timing))
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
        """The rewards of some answers."""
        step = trainer_state.global_step if trainer_state is not None else self._num_calls
        progress = min(1.0, step / self._stage_steps)
        self._num_calls += 1
        rewards = []
        for text, code, specs, name in zip(completions, program, tensors, full, strict=True):
            judged, replaced = self._judged(text, code, specs, name)
            reward = _reward(judged, progress, replaced, self._confirmed_share)
            rewards.append(reward)
            trials = [judged.trial] if judged and judged.trial else []
            num_words = len(text.split())
            number = len(self._log.samples)
            fault = "the judge failed" if reward is None and not trials else None
            is_right = judged is not None and judged.status == RIGHT_WHERE_RUN
            self._log.put(
                sample_of(
                    number, step, name, reward, trials, {},
                    num_tokens=num_words, is_right_where_run=is_right, fault=fault,
                )
            )  # fmt: skip
            self._writer.write(
                Rollout(
                    step,
                    name,
                    text,
                    reward,
                    judged.status if judged else "no folder",
                    judged.findings if judged else (),
                    judged.seconds if judged else 0.0,
                )
            )
        return _filled(rewards, full)

    def _judged(
        self, text: str, program: str, tensors: str, name: str
    ) -> tuple[JudgedAnswer | None, float]:
        """What the judge says, None where the text is no folder; and the share of the graph's least
        time that the answer replaces.
        """
        key = (name, text)
        if key not in self._known:
            subject = subject_of(program, tensors, name)
            begun = time.monotonic()
            try:
                files = expand_answer(subject.prompt, text)
                share = share_of_answer(subject.prompt, text, subject.least_us)
                if wrong := _shown_wrong(program, tensors, name, text):
                    seconds = time.monotonic() - begun
                    shown = JudgedAnswer("wrong", SHOWN_WRONG, seconds, error=wrong)
                    self._known[key] = shown, share
                else:
                    self._known[key] = self._judged_in_turn(subject.graph, files), share
            except (InputError, GraphError, RecursionError):
                self._known[key] = None, 0.0
            except MeasureError:
                return JudgedAnswer("not judged", "judge failed", 0.0), 0.0
        return self._known[key]

    def _judged_in_turn(self, graph: Graph, files: Files) -> JudgedAnswer:
        """What the judge says of one in so many answers that nothing is shown of, and nothing of
        the others.
        """
        self._num_right += 1
        if (self._num_right - 1) % self._judge_every:
            return JudgedAnswer("not judged", RIGHT_WHERE_RUN, 0.0)
        judged = self._judge.judge(graph, files)
        if judged.verdict != "not judged":
            self._num_judged += 1
            self._num_confirmed += judged.verdict == "correct"
        return judged

    @property
    def _confirmed_share(self) -> float:
        """How many of the answers judged so far were correct, with one that was before the first,
        so that a run does not begin without any reward.
        """
        return (1 + self._num_confirmed) / (1 + self._num_judged)


def share_of_answer(prompt: Prompt, text: str, least_us: Sequence[float]) -> float:
    """The share of the least time of a graph's ops, `least_us`, that an answer replaces.

    Raises:
        InputError: the text is no answer to the prompt.
    """
    replaced = {op for fused in parse_answer(text) for op in range(*span_of(prompt, fused))}
    return replaced_share(least_us, replaced)


def _reward(
    judged: JudgedAnswer | None, progress: float, replaced: float = 0.0, confirmed: float = 1.0
) -> float | None:
    """What an answer earns; nothing where it is no folder, None where the judge cannot say. One
    that is right where it was run, and was not judged, is correct with a likelihood of `confirmed`.
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


def _filled(rewards: Sequence[float | None], groups: Sequence[str]) -> list[float]:
    """Rewards with those that are missing as the mean of their group.

    Examples:
        >>> _filled([1.0, None, 0.0], ["a", "a", "b"])
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
    """What a run of an answer's loops shows to be wrong; None where it shows nothing."""
    try:
        eager = _eager(program, tensors, full)
    except GraphError:
        return None
    return what_is_wrong(eager, answer)


@dataclass(frozen=True)
class Subject:
    """A subgraph that answers are asked for, with the least time of each op of its prompt."""

    graph: Graph

    @cached_property
    def prompt(self) -> Prompt:
        """What is asked.

        Raises:
            GraphError, InputError: it cannot be.
        """
        return loops_prompt(self.graph)

    @cached_property
    def least_us(self) -> list[float]:
        """Microseconds of each op alone.

        Raises:
            GraphError: shapes cannot be inferred.
        """
        return op_times_us(self.prompt.graph)


@lru_cache(NUM_SUBJECTS)
def subject_of(program: str, tensors: str, full: str) -> Subject:
    """The subgraph of a row of training data, by the columns that hold it."""
    return Subject(graph_from_row(program, tensors, full[:16]))
