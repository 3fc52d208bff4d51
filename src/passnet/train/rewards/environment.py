"""The agent's tools as an environment of TRL: what `GRPOTrainer(environment_factory=...)` takes.

TRL makes an instance for each rollout of a batch, resets it with the columns of its row, and offers
its public methods as tools, with their docstrings. It calls these one rollout after another and
would await rewards of environments one by one; so the reward is one function over the batch, which
judges side by side (`TrlReward`). Answers of tools are masked out of the loss by TRL itself.

Source: TRL 1.16.0, `trl/trainer/grpo_trainer.py` (`_tool_call_loop`, `_calculate_rewards`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from passnet.agent.attempts.session import Session
from passnet.agent.attempts.tools import Action as ToolAction
from passnet.agent.attempts.tools import (
    CheckMatch,
    Create,
    Delete,
    Evaluate,
    Replace,
    ShowGraph,
    Submit,
    View,
)
from passnet.agent.prompt import system_prompt, task_prompt
from passnet.errors import ActionError, InputError
from passnet.judge.desk.desk import StateJudge
from passnet.judge.task import Task
from passnet.passes.files import Files
from passnet.train.rewards.batch_rewards import BatchReward
from passnet.train.rewards.reward import answer_files


class PassEnvironment:
    """One rollout: a pass folder, the tools on it, and what was evaluated.

    Its public methods but `reset` are what the llm sees as tools.
    """

    def __init__(self, tasks: Mapping[str, Task], judge: StateJudge) -> None:
        self._tasks = tasks
        self._judge = judge
        self._session: Session | None = None

    def reset(self, task: str, start: str = "", **_: Any) -> None:
        """Begin an attempt at a task, which the row of the training data names, with an empty
        folder or with one in its column `start`, as an answer has it: a teacher's, to be bettered.
        """
        if task not in self._tasks:
            raise InputError(f"the training data asks for task {task!r}, which no suite here has")
        self._session = Session(self._tasks[task], self._judge)
        self._session.files = answer_files(start) or {}

    @property
    def submitted(self) -> Files:
        """The submission: the best evaluated state, or else the folder as it is."""
        session = self._session
        assert session is not None, "TRL resets an environment before it is used"
        if session.best is not None:
            return session.evaluations[session.best].files
        return dict(session.files)

    def _act(self, action: ToolAction) -> str:
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

        Returns:
            The lines, or the list.
        """
        return self._act(View(name))

    def create(self, name: str, text: str) -> str:
        """Write a file of the pass folder, new or in place of the old one.

        Args:
            name: File name, such as FuseNorm.py.
            text: The whole text of the file.

        Returns:
            What was written.
        """
        return self._act(Create(name, text))

    def replace(self, name: str, old: str, new: str) -> str:
        """Exchange a piece of a file's text that is in it exactly once.

        Args:
            name: File name, such as FuseNorm.py.
            old: The text to look for, as it is in the file, spaces and line ends included.
            new: What to put in its place.

        Returns:
            What was changed.
        """
        return self._act(Replace(name, old, new))

    def delete(self, name: str) -> str:
        """Delete a file of the pass folder.

        Args:
            name: File name, such as FuseNorm.py.

        Returns:
            What was deleted.
        """
        return self._act(Delete(name))

    def show_graph(self, graph: int = 0) -> str:
        """Show a graph of the task op by op: shapes, bytes, the least time of each op.

        Args:
            graph: Number of the graph in the table of the task, from 0.

        Returns:
            The graph as text.
        """
        return self._act(ShowGraph(graph))

    def check_match(self) -> str:
        """Try where the passes of the folder match, without timing anything.

        Returns:
            Where they match; for a miss, how near it came.
        """
        return self._act(CheckMatch())

    def evaluate(self) -> str:
        """Judge the pass folder on all graphs of the task: correctness and speed, the score first.

        Returns:
            The score, then a line for each graph.
        """
        return self._act(Evaluate())

    def submit(self) -> str:
        """End the attempt. The evaluated state with the highest score is what is submitted.

        Returns:
            What was submitted.
        """
        return self._act(Submit())


class RewardedEnvironment(PassEnvironment):
    """One rollout that asks for its own reward, as TRL's asynchronous trainer wants it: there
    rollouts go on side by side, and a reward function is given no environments.

    It inherits because TRL lists the methods of the class as tools.
    """

    def __init__(self, tasks: Mapping[str, Task], judge: StateJudge, batch: BatchReward) -> None:
        super().__init__(tasks, judge)
        self._batch = batch

    async def get_reward(self) -> float | None:
        """Return the reward of the submission; None where it could not be judged."""
        assert self._session is not None, "TRL resets an environment before it is used"
        name = self._session.task.name
        step = self._batch.num_batches
        [reward] = await self._batch.rewards([name], [self.submitted or None], step, 1.0)
        return reward


def environment_factory(
    tasks: Mapping[str, Task], judge: StateJudge, rewarded_by: BatchReward | None = None
) -> Callable[[], PassEnvironment]:
    """Return a factory of environments for TRL; they share the judge, as TRL calls tools in turn.

    `judge` was entered, and stays so while it is trained. With `rewarded_by` environments ask for
    their own rewards, for the asynchronous trainer.
    """
    if rewarded_by is not None:
        return partial(RewardedEnvironment, tasks, judge, rewarded_by)
    return partial(PassEnvironment, tasks, judge)


def chat_rows(tasks: Mapping[str, Task], judge: StateJudge, num_turns: int) -> list[dict[str, Any]]:
    """Return rows for a training with tools: the name and prompt of each task.

    Raises:
        GraphError: shapes of a task's first graph cannot be inferred.
    """
    system = system_prompt(judge.settings, num_turns)
    return [
        {
            "task": name,
            "prompt": [
                {"role": "system", "content": system},
                {"role": "user", "content": task_prompt(task, judge.settings)},
            ],
        }
        for name, task in tasks.items()
    ]


@dataclass(frozen=True)
class TrlReward:
    """The reward function of a TRL trainer: one call for a batch, judged side by side.

    Rows need a column `task`. With environments, what each submits is judged; without, answers are
    read as pass folders. It can be pickled, as asynchronous trainers ask for.

    Args:
        batch: what judges and records.
        num_batches: of the training, for trainers that do not say how far they are.
    """

    batch: BatchReward
    num_batches: int = 1

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
            answers = [each.submitted or None for each in environments]
        step, num_steps = self.batch.num_batches, self.num_batches
        if trainer_state is not None:
            step, num_steps = trainer_state.global_step, trainer_state.max_steps
        progress = min(step / max(num_steps, 1), 1.0)
        facts = [{"num_tokens": len(ids)} for ids in completion_ids]
        rewards = await self.batch.rewards(task, answers, step, progress, facts)
        if log_metric is not None:
            last = self.batch.samples[-len(rewards) :]
            log_metric("judge/correct", sum(each.is_correct for each in last) / len(last))
            log_metric("judge/cheats", sum(each.is_cheat for each in last) / len(last))
            log_metric("judge/unknown", sum(each.reward is None for each in last) / len(last))
        return rewards


def _text(completion: Any) -> str:
    """Return the text of a completion: a string, or the messages of a chat."""
    if isinstance(completion, str):
        return completion
    return "\n".join(
        message["content"] or "" for message in completion if message["role"] == "assistant"
    )
