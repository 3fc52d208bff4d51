"""Tasks that an LLM may be trained on."""

from passnet.data.dataset.splits import RowKeys, leaks
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints
from passnet.judge.suite.suite import benchmarks, load_suite, read_suite_keys
from passnet.judge.task import Task

TRAINING_SUITE = "train-v1"
"""The shipped suite for training."""


def training_tasks(suite: str = TRAINING_SUITE) -> dict[str, Task]:
    """Return the tasks of a suite by name.

    Raises:
        InputError: one has an op sequence or a structure of PassBench.
    """
    tasks = {task.name: task for task in load_suite(suite).tasks}
    rows = [
        RowKeys(name, fingerprints(graph.graph).structure, task.ops)
        for name, task in tasks.items()
        for graph in task.graphs
    ]
    found = leaks(rows, dict.fromkeys(tasks, "train"), read_suite_keys(benchmarks()))
    if found:
        count, name, benchmark = len({leak.row for leak in found}), found[0].row, found[0].other
        raise InputError(
            f"{suite}: {count} of its {len(tasks)} tasks are of a benchmark, such as "
            f"{name} of {benchmark}; a benchmark is not for training: use {TRAINING_SUITE}, or "
            "`passnet dataset split --eval` for data of your own"
        )
    return tasks
