"""A Ray cluster of two nodes: code is sent along, and odd or lost nodes end no run."""

import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import passnet
from passnet.core.jobs.actors import ActorDevice, run_actors
from passnet.core.jobs.executors import run_ray
from passnet.core.jobs.process import JobRunner
from passnet.errors import InputError, MeasureError
from tests.bench.ray_actors import nodes

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
ONE = ActorDevice()
TESTS = str(Path(__file__).parents[3])


@pytest.fixture
def two_nodes(tmp_path: Path) -> Iterator[Any]:
    """A cluster whose second node has another passnet in its path."""
    package = tmp_path / "other" / "passnet"
    source = Path(passnet.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__", "*.parquet"))
    with (package / "version.py").open("a") as file:
        file.write("# changed\n")
    paths = (f"{TESTS}:{folder}" for folder in (source.parent, package.parent))
    with nodes(*({"PYTHONPATH": path} for path in paths)) as cluster:
        yield cluster


def tell(_: JobRunner, item: object) -> tuple[str, str]:
    import ray

    return passnet.__file__, ray.get_runtime_context().get_node_id()


def tell_slowly(runner: JobRunner, item: int) -> tuple[str, str]:
    time.sleep(1.0)  # so that both nodes are asked before one has done all
    return tell(runner, item)


def open_on(refused: str | None) -> Callable[[int], tuple[int, str, bytes]]:
    """Return a worker that tells its node in a large result; refuse on a node, or on every one."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    if refused in (node, "every"):
        raise InputError("it has no such compiler")

    def work(item: int) -> tuple[int, str, bytes]:
        time.sleep(1.0)
        return item, node, bytes(1 << 20)

    return work


@pytest.mark.slow
def test_workers_of_a_joined_cluster_run_the_code_of_the_run(two_nodes: Any) -> None:
    told = list(run_ray(["a", "b", "c", "d"], tell, 2))
    assert all("py_modules_files" in file for file, _ in told)
    assert len(told) == 4


@pytest.mark.slow
def test_a_node_with_another_passnet_is_left_out_and_named(
    two_nodes: Any, caplog: pytest.LogCaptureFixture
) -> None:
    import ray

    ray.init(two_nodes.address, log_to_driver=False)  # so that no code is sent along
    told = list(run_ray(range(8), tell_slowly, 2))
    assert {node for _, node in told} == {two_nodes.head_node.node_id}
    [text] = [record.getMessage() for record in caplog.records if record.name == "passnet"]
    odd = two_nodes.list_all_nodes()[1].node_id
    assert text == (
        f"left out: machine {socket.gethostname()} (node {odd[:8]}): its passnet has other files "
        "than the run's"
    )


@pytest.mark.slow
def test_a_run_ends_only_where_no_node_is_left(
    two_nodes: Any, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = (node.node_id for node in two_nodes.list_all_nodes())
    results = list(run_actors(range(8), partial(open_on, second), 2, ONE))
    assert sorted(item for item, _, _ in results) == list(range(8))
    assert f"(node {second[:8]}): it has no such compiler" in caplog.text
    with pytest.raises(InputError, match="no machine of the Ray cluster") as caught:
        list(run_actors(range(3), partial(open_on, "every"), 2, ONE))
    assert all(
        f"(node {node[:8]}): it has no such" in str(caught.value) for node in (first, second)
    )


@pytest.mark.slow
def test_results_lost_with_a_node_are_made_again(two_nodes: Any) -> None:
    results = run_actors(range(8), partial(open_on, None), 2, ONE)
    second = two_nodes.list_all_nodes()[1]
    got = []
    while second.node_id not in [node for _, node, _ in got]:
        got.append(next(results))
    time.sleep(3.0)  # its next result is done, and lies there
    two_nodes.remove_node(second, allow_graceful=False)
    got += results
    assert sorted(item for item, _, _ in got) == list(range(8))


@pytest.mark.slow
def test_after_its_retries_an_item_tells_the_last_cause_in_one_sentence(
    two_nodes: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(MeasureError, match="3 workers were lost.*its worker process has died$"):
        list(run_ray(["a"], end_worker, 1))
    time.sleep(2.0)
    assert "raylet" not in capfd.readouterr().out, "output of commands goes there"


def end_worker(_: JobRunner, item: str) -> str:
    os._exit(1)


@pytest.mark.parametrize("is_silent", [True, False], ids=["a silent port", "a closed port"])
def test_an_address_without_a_cluster_is_told_in_seconds(
    monkeypatch: pytest.MonkeyPatch, is_silent: bool
) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        if not is_silent:
            server.close()
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
        with pytest.raises(InputError, match=f"no Ray cluster answers at 127.0.0.1:{port}"):
            list(run_ray(["net"], tell, 1))
