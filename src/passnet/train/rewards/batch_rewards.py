"""The reward of a batch of answers, judged side by side and recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from passnet.agent.graph_text import one_kernel_us
from passnet.core.records.serialise import encode
from passnet.errors import GraphError, InputError
from passnet.judge.suite.suite import row_of_graph
from passnet.judge.task import Task, TaskGraph
from passnet.passes.files import Files
from passnet.train.rewards.monitors import to_measure_again
from passnet.train.rewards.reward import DEFAULT_REWARD, RewardSettings, task_reward
from passnet.train.rewards.sample_log import SampleLog
from passnet.train.rewards.samples import Sample, sample_of
from passnet.train.service.client import ServiceAddress, judge_all
from passnet.train.service.submission import JudgeReport, Submission, judgeable

AskJudge: TypeAlias = Callable[[Sequence[Submission]], Awaitable[list[JudgeReport]]]
"""Judge submissions side by side."""

MEASURED_AGAIN_EVERY = 100
"""Number of answers after which the fastest 1 % of them are measured again."""


@dataclass
class BatchReward:
    """Rewards of answers, a batch at a time, as trainers ask for them."""

    tasks: Mapping[str, Task]
    """Tasks by the name in column `task` of the training data."""

    ask: AskJudge
    log: SampleLog
    """The record of answers, entered by the caller."""

    reward: RewardSettings = DEFAULT_REWARD
    is_timed: bool = True
    held_out: Mapping[str, Sequence[TaskGraph]] = field(default_factory=dict)
    """Other shapes of tasks, by task name, on which answers must not be wrong."""

    num_answers: int = 0
    """Answers of the whole training, where its steps are not known; 0 for no staged credit."""

    num_batches: int = 0
    """Batches rewarded so far."""

    last: list[Sample] = field(default_factory=list)
    """Answers of the last batch."""

    _recent: list[tuple[Sample, Submission | None]] = field(default_factory=list)
    """Answers that were recorded since the fastest were measured again."""

    _least_ms: dict[str, tuple[float, ...]] = field(default_factory=dict)
    _group: tuple[str, str] | None = None
    _group_step: int | None = None

    @property
    def samples(self) -> list[Sample]:
        """Answers of all processes of the run so far."""
        return self.log.samples

    @property
    def progress(self) -> float:
        """Progress of the training by its answers, from 0 to 1."""
        return min(len(self.samples) / self.num_answers, 1.0) if self.num_answers else 1.0

    def rollout_step(self, name: str, start: str = "") -> int:
        """Return the step of a rollout that asks for its own reward: one step for its group.

        Call it when the rollout begins: trainers begin those of a group one after another.
        """
        if self._group_step is None:
            self._group_step = max((sample.step for sample in self.samples), default=-1)
        if self._group != (name, start):
            self._group = (name, start)
            self._group_step += 1
        return self._group_step

    async def rewards(
        self,
        names: Sequence[str],
        answers: Sequence[Files | None],
        step: int,
        progress: float,
        facts: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[float | None]:
        """Return the rewards of answers; None for an unjudged answer.

        Args:
            names: the task of each answer.
            answers: pass folders; None for an answer without one.
            step: step of the training.
            progress: progress of the training, from 0 to 1.
            facts: further fields of each answer's `Sample`.
        """
        facts = facts or [{}] * len(names)
        submissions = [
            None if files is None else self._submission(name, files)
            for name, files in zip(names, answers, strict=True)
        ]
        distinct = {encode(submission): submission for submission in submissions if submission}
        judged = await self.ask(list(distinct.values())) if distinct else []  # groups repeat
        reports = dict(zip(distinct, judged, strict=True))
        batch = []
        for name, submission, more in zip(names, submissions, facts, strict=True):
            report = reports[encode(submission)] if submission else None
            files = submission.files if submission else {}
            sample = self.log.put(self._sample(step, progress, name, files, report, more))
            self._recent.append((sample, submission))
            batch.append(sample)
        self.last = batch
        self.num_batches += 1
        if len(self._recent) >= MEASURED_AGAIN_EVERY:
            recent, self._recent = self._recent, []
            if self.is_timed:
                await self._measure_again(recent)
        return [sample.reward for sample in batch]

    def _submission(self, name: str, files: Files) -> Submission:
        if name not in self.tasks:
            raise InputError(f"the training data asks for task {name!r}, which no suite here has")
        graphs = tuple(row_of_graph(graph) for graph in self.tasks[name].graphs)
        unseen = tuple(row_of_graph(graph) for graph in self.held_out.get(name, ()))
        return Submission(
            name,
            judgeable(files),
            graphs=graphs,
            unseen=unseen,
            is_timed=self.is_timed,
            purpose="reward",
        )

    def _sample(
        self,
        step: int,
        progress: float,
        name: str,
        files: Files,
        report: JudgeReport | None,
        facts: Mapping[str, Any],
    ) -> Sample:
        number = 0  # the log gives it its own
        if report is None:  # no pass folder at all
            return Sample(number, step, name, 0.0, **facts)
        assert report.judged is not None, "who asks waits until it is judged"
        fault, trials = report.judged.fault, report.judged.trials
        reward = None if fault else task_reward(trials, self.reward, progress)
        facts = {**facts, "fault": fault, "id": report.id}
        return sample_of(number, step, name, reward, trials, files, self._least(name), **facts)

    def _least(self, name: str) -> tuple[float, ...]:
        """Return the least milliseconds of each graph of a task here; empty without shapes."""
        if name not in self._least_ms:
            graphs = self.tasks[name].graphs
            self._least_ms[name] = ()
            with suppress(GraphError):
                self._least_ms[name] = tuple(one_kernel_us(row.graph) / 1e3 for row in graphs)
        return self._least_ms[name]

    async def _measure_again(self, recent: Sequence[tuple[Sample, Submission | None]]) -> None:
        """Measure the fastest of some answers again, and record the new speedups."""
        by_number = {sample.number: submission for sample, submission in recent if submission}
        samples = [sample for sample, _ in recent if sample.number in by_number]
        fastest = to_measure_again(samples)
        again = [replace(by_number[sample.number], repeat=1) for sample in fastest]
        for sample, report in zip(fastest, await self.ask(again), strict=True):
            lows = [trial.speedup_low for trial in (report.judged.trials if report.judged else ())]
            if lows and None not in lows:
                self.log.amend(replace(sample, speedup_again=min(filter(None, lows))))


def service_judge(address: ServiceAddress) -> AskJudge:
    """Return a judge of batches that asks a reward service."""
    return partial(judge_all, address)
