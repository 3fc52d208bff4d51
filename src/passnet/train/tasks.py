"""Tasks that an LLM may be trained on."""

from passnet.errors import InputError
from passnet.judge.suite.suite import benchmarks, load_suite, read_suite_keys, task_leaks
from passnet.judge.task import Task

TRAINING_SUITE = "train-v1"
"""The shipped suite for training."""


def training_tasks(suite: str = TRAINING_SUITE) -> dict[str, Task]:
    """Return the tasks of a suite by name.

    Raises:
        InputError: one has an op sequence or a structure of PassBench.
    """
    tasks = {task.name: task for task in load_suite(suite).tasks}
    found = task_leaks(tasks, read_suite_keys(benchmarks()))
    if found:
        count, name, benchmark = len({leak.row for leak in found}), found[0].row, found[0].other
        raise InputError(
            f"{suite}: {count} of its {len(tasks)} tasks are of a benchmark, such as "
            f"{name} of {benchmark}; a benchmark is not for training: use {TRAINING_SUITE}, or "
            "`passnet dataset split --eval` for data of your own"
        )
    return tasks
