"""A reward function for verl 0.9: answers that are pass folders, judged by a reward service.

verl awaits it for each answer, many at a time. Rows of its data need `ground_truth` (the name of a
task) and `extra_info.suite`. verl cannot leave an answer out: one that could not be judged is asked
for again, and if that does not help either, it ends the step with an error, as a zero would teach
something false. With the number of answers of the training in `PASSNET_TRAINING_ANSWERS`, a wrong
answer earns the staged credit, which decays with each answer, validation included.

Source: verl 0.9.1, `verl/experimental/reward_loop/reward_manager/naive.py`,
`verl/trainer/config/reward/reward.yaml`.
"""

import os
from functools import cache
from typing import Any

from passnet.judge.suite.suite import row_of_graph
from passnet.train.rewards.reward import answer_files, is_correct, task_reward
from passnet.train.service.client import count_answer, judge_all, service_address
from passnet.train.service.submission import Submission
from passnet.train.tasks import training_tasks

ANSWERS_VARIABLE = "PASSNET_TRAINING_ANSWERS"
NUM_ASKED = 3

_tasks = cache(training_tasks)


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any],
    **_: Any,
) -> dict[str, float]:
    """Return the reward of an answer, and 1 as `acc` if it is correct on all graphs.

    Raises:
        InputError: the suite holds tasks of PassBench, which are not for training.
        RuntimeError: it could not be judged.
    """
    address = service_address()
    progress = await count_answer(address, int(os.environ.get(ANSWERS_VARIABLE, "0")))
    files = answer_files(solution_str)
    if files is None:
        return {"score": 0.0, "acc": 0.0, "cheat": 0.0}
    task = _tasks(extra_info["suite"])[ground_truth]
    graphs = tuple(map(row_of_graph, task.graphs))
    why = ""
    for number in range(NUM_ASKED):
        submission = Submission(task.name, files, graphs=graphs, repeat=number, purpose="reward")
        [report] = await judge_all(address, [submission])
        judged = report.judged
        if judged is not None and judged.fault is None:
            reward = task_reward(judged.trials, progress=progress)
            if reward is not None:
                correct = float(all(map(is_correct, judged.trials)))
                return {"score": reward, "acc": correct, "cheat": float(judged.has_cheat)}
        why = "the machine was too busy" if judged is None else judged.fault or "unstable"
    raise RuntimeError(f"{task.name} could not be judged: {why}")
