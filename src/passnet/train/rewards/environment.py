"""The agent's tools as an environment of TRL, for `GRPOTrainer(environment_factory=...)`.

TRL makes an instance for each rollout of a batch, resets it with the columns of its row, and offers
its public methods as tools, with their docstrings. It would await the rewards of environments one
by one, so the reward is one function over the batch (`TrlReward`).

Source: TRL 1.16.0, `trl/trainer/grpo_trainer.py` (`_tool_call_loop`, `_calculate_rewards`; what
`reset` returns is added to the last message of the prompt).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from passnet.agent.attempts import tools
from passnet.agent.attempts.session import Session
from passnet.agent.prompt import system_prompt, task_prompt
from passnet.core.terminal.progress import progress
from passnet.errors import ActionError, InputError
from passnet.judge.desk.desk import StateJudge
from passnet.judge.task import Task
from passnet.passes.files import Files
from passnet.train.rewards.batch_rewards import BatchReward
from passnet.train.rewards.reward import answer_files

STARTED = (
    "In this attempt the pass folder is not empty at first: it holds {names}. View these files "
    "before you change them."
)
"""The end of the prompt of an attempt that starts from a pass folder."""


class PassEnvironment:
    """One rollout; the LLM sees its public methods but `reset` as tools."""

    def __init__(self, tasks: Mapping[str, Task], judge: StateJudge) -> None:
        self._tasks = tasks
        self._judge = judge
        self._session: Session | None = None

    def reset(self, task: str, start: str = "", **_: Any) -> str | None:
        """Begin an attempt at a task, with an empty folder or with the answer `start`.

        Returns:
            A text that TRL adds to the prompt, as that says that the folder is empty at first.
        """
        if task not in self._tasks:
            raise InputError(f"the training data asks for task {task!r}, which no suite here has")
        self._session = Session(self._tasks[task], self._judge)
        self._session.files = answer_files(start) or {}
        if not self._session.files:
            return None
        names = ", ".join(f"`{name}`" for name in sorted(self._session.files))
        return f"\n\n{STARTED.format(names=names)}"

    @property
    def submitted(self) -> Files:
        """Submission: the best evaluated state, or else the present folder."""
        session = self._session
        assert session is not None, "TRL resets an environment before it is used"
        if session.best is not None:
            return session.evaluations[session.best].files
        return dict(session.files)

    def _act(self, action: tools.Action) -> str:
        assert self._session is not None, "TRL resets an environment before it is used"
        try:
            return self._session.act(action)
        except ActionError as cause:
            self._session.num_bad_actions += 1
            return f"error: {cause}"

    def view(self, name: str = "") -> str:
        """Show a file of the pass folder with line numbers, or without a name the list of files.

        Args:
            name: File name as the list of files has it, such as FuseNorm.py.
        """
        return self._act(tools.View(name))

    def create(self, name: str, text: str) -> str:
        """Write a file of the pass folder, new or in place of the old one.

        Args:
            name: File name, such as FuseNorm.py.
            text: The whole text of the file.
        """
        return self._act(tools.Create(name, text))

    def replace(self, name: str, old: str, new: str) -> str:
        """Exchange a piece of a file's text that is in it exactly once.

        Args:
            name: File name, such as FuseNorm.py.
            old: The text to look for, as it is in the file, spaces and line ends included.
            new: What to put in its place.
        """
        return self._act(tools.Replace(name, old, new))

    def delete(self, name: str) -> str:
        """Delete a file of the pass folder.

        Args:
            name: File name, such as FuseNorm.py.
        """
        return self._act(tools.Delete(name))

    def show_graph(self, graph: int = 0) -> str:
        """Show a graph of the task op by op: shapes, strides, bytes, the least time of each op.

        Args:
            graph: Number of the graph in the table of the task, from 0.
        """
        return self._act(tools.ShowGraph(graph))

    def check_match(self) -> str:
        """Try where the passes of the folder match, without timing anything."""
        return self._act(tools.CheckMatch())

    def evaluate(self) -> str:
        """Judge the pass folder on all graphs of the task: score, correctness and speed."""
        return self._act(tools.Evaluate())

    def submit(self) -> str:
        """End the attempt and submit the evaluated state with the highest score."""
        return self._act(tools.Submit())


class RewardedEnvironment(PassEnvironment):
    """One rollout that asks for its own reward, as TRL's asynchronous trainer requires.

    It inherits because TRL lists the methods of the class as tools.
    """

    def __init__(self, tasks: Mapping[str, Task], judge: StateJudge, batch: BatchReward) -> None:
        super().__init__(tasks, judge)
        self._batch = batch
        self._step = 0

    def reset(self, task: str, start: str = "", **_: Any) -> str | None:
        """See `PassEnvironment`."""
        text = super().reset(task, start)
        self._step = self._batch.rollout_step(task, start)
        return text

    async def get_reward(self) -> float | None:
        """Return the reward of the submission; None where it could not be judged."""
        assert self._session is not None, "TRL resets an environment before it is used"
        names, answers = [self._session.task.name], [self.submitted or None]
        [reward] = await self._batch.rewards(names, answers, self._step, self._batch.progress)
        return reward


def environment_factory(
    tasks: Mapping[str, Task], judge: StateJudge, rewarded_by: BatchReward | None = None
) -> Callable[[], PassEnvironment]:
    """Return a factory of environments for TRL, which share a judge that the caller entered.

    With `rewarded_by` environments ask for their own rewards, for the asynchronous trainer.
    """
    if rewarded_by is not None:
        return partial(RewardedEnvironment, tasks, judge, rewarded_by)
    return partial(PassEnvironment, tasks, judge)


def chat_rows(tasks: Mapping[str, Task], judge: StateJudge, num_turns: int) -> list[dict[str, Any]]:
    """Return rows for a training with tools: the name and prompt of each task.

    Raises:
        GraphError: shapes of a task's first graph cannot be inferred.
    """
    system = {"role": "system", "content": system_prompt(judge.settings, num_turns)}
    rows: list[dict[str, Any]] = []
    with progress("writing prompts", len(tasks)) as step:
        for name, task in tasks.items():
            user = {"role": "user", "content": task_prompt(task, judge.settings)}
            rows.append({"task": name, "prompt": [system, user]})
            step(name)
    return rows


@dataclass(frozen=True)
class TrlReward:
    """The reward function of a TRL trainer, which asynchronous trainers can pickle.

    Rows need a column `task`. It judges the submissions of environments; without environments it
    reads answers as pass folders.
    """

    batch: BatchReward
    before: float = 0.0
    """Share of the training that earlier stages have done."""

    share: float = 1.0
    """Share of the training that is this trainer's."""

    async def __call__(
        self,
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]],
        task: Sequence[str],
        trainer_state: Any = None,
        environments: Sequence[PassEnvironment] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **_: Any,
    ) -> list[float | None]:
        """Return the rewards of answers; None, which TRL leaves out, where one was not judged."""
        if environments is None:
            answers = [answer_files(_text(completion)) for completion in completions]
        else:
            answers = [environment.submitted or None for environment in environments]
        step, progress = self.batch.num_batches, self.batch.progress
        if trainer_state is not None:
            step = trainer_state.global_step
            done = min(step / max(trainer_state.max_steps, 1), 1.0)
            progress = min(self.before + self.share * done, 1.0)
        facts = [{"num_tokens": len(ids)} for ids in completion_ids]
        rewards = await self.batch.rewards(task, answers, step, progress, facts)
        if log_metric is not None:
            last = self.batch.last
            log_metric("judge/correct", sum(sample.is_correct for sample in last) / len(last))
            log_metric("judge/cheats", sum(sample.is_cheat for sample in last) / len(last))
            log_metric("judge/unknown", sum(sample.reward is None for sample in last) / len(last))
        return rewards


def _text(completion: Any) -> str:
    """Return the text of a completion: a string, or the messages of a chat."""
    if isinstance(completion, str):
        return completion
    return "\n".join(
        message["content"] or "" for message in completion if message["role"] == "assistant"
    )
