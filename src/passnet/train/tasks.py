"""Tasks that an LLM may be trained on."""

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
    keys = read_suite_keys(benchmarks())
    benchmark_of: dict[str, str] = {}
    for name, task in tasks.items():
        structures = [fingerprints(graph.graph).structure for graph in task.graphs]
        found = [keys.sequences.get(task.ops), *map(keys.structures.get, structures)]
        benchmark = next(filter(None, found), None)
        if benchmark is not None:
            benchmark_of[name] = benchmark
    if benchmark_of:
        name, benchmark = next(iter(benchmark_of.items()))
        raise InputError(
            f"{suite}: {len(benchmark_of)} of its {len(tasks)} tasks are of a benchmark, such as "
            f"{name} of {benchmark}; a benchmark is not for training: use {TRAINING_SUITE}, or "
            "`passnet dataset split --eval` for data of your own"
        )
    return tasks
