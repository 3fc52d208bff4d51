"""Tasks of a suite of passnet as tasks of verifiers, and their reward.

Source: verifiers 0.4.0, `verifiers/v1/taskset.py`, `task.py` (`score`: what a reward raises is an
error of the rollout, which then has no reward).
"""

from collections.abc import Iterator

import verifiers.v1 as vf

from passnet.agent.prompt import instruction
from passnet.agent.trajectories.training_data import ANSWER_FORM
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.train.rewards.reward import answer_files, is_correct, task_reward
from passnet.train.service.client import count_answer, service_address
from passnet.train.tasks import TRAINING_SUITE
from passnet_passes.asked import NotJudgedError, judged, suite_tasks
from passnet_passes.tools import PassState, PassTools, PassToolsConfig

TOOLS_FORM = """
Write the pass folder with the tools, evaluate it, and better it until you know of nothing more to
gain. Your best evaluated state is submitted when you stop.
"""


class PassTaskData(vf.TaskData):
    """The names of a task and its suite."""

    suite: str
    task: str


class PassTaskConfig(vf.TaskConfig):
    """Settings of answers and their judge."""

    with_tools: bool = True
    """Give the LLM tools; without them it answers with the whole folder."""
    tools: PassToolsConfig = PassToolsConfig()
    """Settings of evaluations and of the final judgement."""


class PassTask(vf.Task[PassTaskData, PassState, PassTaskConfig]):
    """One task: the reward is that of the pass folder, judged by the service."""

    @classmethod
    def toolsets(cls, config: PassTaskConfig) -> list[vf.Toolset]:
        """Return the tools on the pass folder, if the LLM has any."""
        return [PassTools(config.tools)] if config.with_tools else []

    @vf.reward(weight=1.0)
    async def judged(self, trace: vf.Trace) -> float:
        """Return the reward of the judge's trials.

        Raises:
            NotJudgedError: nothing is known of the answer.
        """
        tools = self.config.tools
        progress = await count_answer(service_address(tools.timeout_s), tools.num_answers)
        files = trace.state.submitted if self.config.with_tools else None
        files = files or answer_files(trace.last_reply)
        if not files:
            return 0.0
        task = suite_tasks(self.data.suite)[self.data.task]
        trials = await judged(task, files, tools.is_timed, tools.timeout_s, "reward")
        trace.info["statuses"] = [trial.status for trial in trials]
        trace.record_metric("correct", sum(map(is_correct, trials)) / len(trials))
        trace.record_metric("cheats", float(any(trial.status == "cheat" for trial in trials)))
        reward = task_reward(trials, progress=progress)
        if reward is None:
            raise NotJudgedError(f"no graph of {task.name} could be measured")
        return reward


class PassTasksetConfig(vf.TasksetConfig):
    """The suite, and settings of the prompt."""

    suite: str = TRAINING_SUITE
    """A shipped suite, or a Parquet file or folder of graphs that this machine has."""
    rules: str = "strict"
    """The rules that the service was started with: "strict" or "open"."""
    task: PassTaskConfig = PassTaskConfig()


class PassTaskset(vf.Taskset[PassTask, PassTasksetConfig]):
    """The tasks of a suite, in its order."""

    def load(self) -> Iterator[PassTask]:
        """Yield each task with its prompt."""
        settings = RunSettings(JudgeSettings(rules=self.config.rules))  # type: ignore[arg-type]
        form = TOOLS_FORM if self.config.task.with_tools else ANSWER_FORM
        for task in suite_tasks(self.config.suite).values():
            prompt = f"{instruction(task, settings).rstrip()}\n{form.rstrip()}"
            data = PassTaskData(
                name=task.name, prompt=prompt, suite=self.config.suite, task=task.name
            )
            yield PassTask(data, self.config.task)
