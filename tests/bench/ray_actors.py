"""A Ray cluster for tests, and the actors of a run on one that judge, found by the processes that
they started.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


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


@contextmanager
def nodes(*environments: dict[str, str]) -> Iterator[Any]:
    """A cluster with a node of one processor for each environment, which RAY_ADDRESS then names."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    before = os.environ.get("RAY_ADDRESS")
    try:
        for environment in environments:
            cluster.add_node(num_cpus=1, env_vars=environment)
        cluster.wait_for_nodes()
        os.environ["RAY_ADDRESS"] = cluster.address
        yield cluster
    finally:
        os.environ.pop("RAY_ADDRESS", None)
        if before is not None:
            os.environ["RAY_ADDRESS"] = before
        ray.shutdown()
        cluster.shutdown()


def another_compiler(folder: Path) -> dict[str, str]:
    """The environment of a node whose compiler tells another version."""
    compiler = folder / "g++"
    folder.mkdir()
    compiler.write_text("#!/bin/sh\necho g++ of another machine\n")
    compiler.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
