"""The pass folder of a rollout, as tools over MCP: each call gets the folder and leaves it changed.

Source: verifiers 0.4.0, `verifiers/v1/mcp/server.py` (`_with_state`), `mcp/toolset.py`.
"""

import verifiers.v1 as vf
from pydantic import Field

from passnet.agent.attempts.observations import task_score, variant_result
from passnet.errors import ActionError
from passnet.passes.files import created, deleted, replaced, view
from passnet.train.rewards.reward import is_correct
from passnet_passes.asked import evaluated, suite_tasks


class PassState(vf.State):
    """The state of a rollout: its pass folder, and the best evaluated one."""

    files: dict[str, str] = Field(default_factory=dict)
    best_files: dict[str, str] | None = None
    best_score: float = 0.0

    @property
    def submitted(self) -> dict[str, str]:
        """The folder that is judged at the end."""
        return self.files if self.best_files is None else self.best_files


class PassToolsConfig(vf.ToolsetConfig):
    """Settings of evaluations."""

    is_timed: bool = True
    timeout_s: float = 900.0
    """Time for a reward; an evaluation has at most `MAX_EVALUATION_S` of it."""
    num_answers: int = 0
    """Answers that are rewarded in the whole training; 0 for no staged credit."""


class PassTools(vf.Toolset[PassToolsConfig, PassState]):
    """Tools on the pass folder."""

    TOOL_PREFIX = None

    async def setup_task(self, task: vf.TaskData) -> None:
        """Read the task of the rollout."""
        self._task = suite_tasks(task.suite)[task.task]  # type: ignore[attr-defined]

    @vf.tool
    async def view(self, name: str = "") -> str:
        """Show a file of the pass folder with line numbers, or without a name the list of files."""
        return _answer(lambda: view(self.state.files, name))

    @vf.tool
    async def create(self, name: str, text: str) -> str:
        """Write a file of the pass folder, new or in place of the old one."""

        def write() -> str:
            self.state.files = created(self.state.files, name, text)
            return f"{name} is written"

        return _answer(write)

    @vf.tool
    async def replace(self, name: str, old: str, new: str) -> str:
        """Exchange a piece of a file's text that is in it exactly once."""

        def exchange() -> str:
            self.state.files = replaced(self.state.files, name, old, new)
            return f"{name} is changed"

        return _answer(exchange)

    @vf.tool
    async def delete(self, name: str) -> str:
        """Delete a file of the pass folder."""

        def remove() -> str:
            self.state.files = deleted(self.state.files, name)
            return f"{name} is deleted"

        return _answer(remove)

    @vf.tool
    async def evaluate(self) -> str:
        """Judge the pass folder on all graphs of the task. The best state so far is submitted."""
        if not self.state.files:
            return "error: the pass folder is empty"
        files, config = self.state.files, self.config
        trials = await evaluated(self._task, files, config.is_timed, config.timeout_s)
        if isinstance(trials, str):
            return trials
        score = task_score(trials)
        worth = float(all(map(is_correct, trials))) if score is None else score
        if worth > self.state.best_score:
            self.state.best_score, self.state.best_files = worth, dict(self.state.files)
        results = [variant_result(trial, "/nowhere") for trial in trials]
        lines = ["score not timed" if score is None else f"score {score:.3f}"]
        lines += [
            f"graph {number}: {result.status}, smallest t {result.smallest_t}, speedup "
            f"{result.speedup}; {result.error or ''}".rstrip("; ")
            for number, result in enumerate(results)
        ]
        return "\n".join(lines)


def _answer(action) -> str:  # noqa: ANN001 (a function of no argument that gives a text)
    try:
        return action()
    except ActionError as cause:
        return f"error: {cause}"
