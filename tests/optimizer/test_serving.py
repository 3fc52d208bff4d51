"""One optimised net in several processes: loaded before a fork, and in workers that are spawned."""

import multiprocessing
import os
import pickle
import signal
from pathlib import Path

import pytest
import torch

import passnet
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.fast_net import FastNet
from passnet.optimizer.optimize import optimize_net
from passnet.optimizer.settings import OptimizeSettings

X = torch.linspace(-1, 1, 64 * 256).reshape(64, 256)


def mlp() -> torch.nn.Module:
    torch.manual_seed(0)
    layers = torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)
    return torch.nn.Sequential(*layers).eval()


def made(backend: str, folder: Path) -> None:
    settings = OptimizeSettings(backends=(backend,), seconds=0.02, freeze=True, threads=1)
    record = optimize_net(mlp(), [((X,), {})], settings, folder, serves=backend).record
    assert record.forms[0].chosen == backend, record.forms[0].engines[-1].reason


SLOW = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("aot", "onnxruntime_frozen", "openvino_frozen")
]


@pytest.fixture(scope="module", params=["graph", *SLOW])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A net that a backend runs."""
    if BACKENDS[request.param].missing:
        pytest.skip("pip install 'passnet[runtimes]'")
    out = tmp_path_factory.mktemp(request.param) / "made"
    made(request.param, out)
    return out


def in_worker(folder: Path) -> tuple[torch.Tensor, int]:
    """Load the net and call it, as a worker does."""
    torch.set_num_threads(1)
    fast = passnet.load(folder, mlp())
    with torch.no_grad():
        return fast(X), len(fast.built_backends)


def test_a_net_that_was_loaded_and_called_before_a_fork_runs_in_the_child(folder: Path) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as eager torch needs it, whose threads do not survive a fork
    try:
        fast, reader, writer = passnet.load(folder, mlp()), *os.pipe()
        with torch.no_grad():
            right = fast(X)
            child = os.fork()
            if not child:
                signal.alarm(60)
                os.write(writer, bytes([torch.equal(fast(X), right)]))
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            assert os.read(reader, 1) == b"\1"
            assert torch.equal(fast(X), right)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.slow
def test_spawned_workers_load_it(folder: Path) -> None:
    with torch.no_grad():
        right = mlp()(X)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for found, num_backends in pool.map(in_worker, [folder] * 2):
            assert num_backends == 1
            torch.testing.assert_close(found, right)


def test_a_pickled_net_arrives_without_its_backends() -> None:
    fast = passnet.optimize(mlp(), X, backends=("graph",), seconds=0.02)
    arrived = pickle.loads(pickle.dumps(fast))
    assert type(arrived) is torch.nn.Sequential and not isinstance(arrived, FastNet)
