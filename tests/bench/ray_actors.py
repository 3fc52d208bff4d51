"""A Ray cluster for tests, and the actors of a run on one that judge, found by the processes that
they started.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def cluster() -> Iterator[None]:
    """A cluster of this machine, whose workers find this package's tests, until the block ends."""
    import ray

    folders = (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", ""))
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, folders))}}
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False, runtime_env=environment)
    try:
        yield
    finally:
        ray.shutdown()


def children(pid: int) -> list[int]:
    """The processes that a process started, and those that these started."""
    below: list[int] = []
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                below += [child, *children(child)]
    return below


def judges_of(driver: int) -> list[int]:
    """The actors of a driver that judge: those that started parents of workers."""
    named = {}
    for pid in children(driver):
        with suppress(OSError):  # it has ended
            named[pid] = Path(f"/proc/{pid}/cmdline").read_bytes()
    return [
        pid
        for pid, words in named.items()
        if words.startswith(b"ray::_Actor")
        and any(b"zygote" in named.get(child, b"") for child in children(pid))
    ]
